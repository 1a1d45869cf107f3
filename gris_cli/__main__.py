"""The entry point of `gris`. Every error becomes one exit code and one message."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

MISSING_LIBRARIES = "gris needs a few more libraries: pip install 'gris-dp[all]'"
EXIT_UNEXPECTED = 1
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: What follows the program's name; None for the command line's.

    Returns:
        The exit code; `gris --help` says what each means.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from gris_cli.app import run
    except ModuleNotFoundError as error:
        # A module of our own that is missing is a fault of ours, not of the installation.
        if (error.name or "").startswith("gris"):
            raise
        _say_missing(as_json="--json" in given)
        return EXIT_UNEXPECTED
    return run(given)


def console() -> int:
    """Run a command as a process that also cleans up when it is terminated, and return its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    # gRPC would write lines about its own source between those of a command, whose errors say what went wrong.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        return main()
    except KeyboardInterrupt:
        # Ctrl-C while modules are still loading; commands see to their own.
        return EXIT_INTERRUPTED


def _say_missing(*, as_json: bool) -> None:
    if as_json:
        error = {"code": "unexpected", "message": MISSING_LIBRARIES}
        sys.stdout.write(json.dumps({"error": error}) + "\n")
    else:
        sys.stderr.write(MISSING_LIBRARIES + "\n")


def _terminated(_number: int, _frame: FrameType | None) -> None:
    # Leaving by an exception stops the services that a command has started.
    raise SystemExit(EXIT_TERMINATED)


if __name__ == "__main__":
    sys.exit(console())
