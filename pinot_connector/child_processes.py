"""Other programs of this machine that a program starts, and that end with it in whatever way it ends.

Such a program has the option `--stop-with-stdin`, and prints one line of JSON on standard output once it serves.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from pinot_connector.errors import ServiceMisconfigured, ServiceUnavailable

START_SECONDS = 30.0
POLL_SECONDS = 0.02
GRACE_SECONDS = 5.0
# With which our programs end if an option, a file or an address cannot be used.
_EXIT_MISCONFIGURED = 2

Announced: TypeAlias = Mapping[str, Any]
"""What a program says when it serves."""

_pipes: set[IO[bytes]] = set()
"""The programs' standard inputs: at its end, which comes when this process is gone, a program ends."""


def _close_pipes() -> None:
    for pipe in _pipes:
        pipe.close()
    _pipes.clear()


if hasattr(os, "register_at_fork"):
    # A fork that outlives this process would keep the programs running.
    os.register_at_fork(after_in_child=_close_pipes)


@dataclass(frozen=True)
class ChildProcess:
    """A program that was started.

    Attributes:
        name: What errors call it.
        popen: The process.
    """

    name: str
    popen: subprocess.Popen[bytes]
    _pipe: IO[bytes]
    _announced: Path
    _log: Path
    _log_begins: int
    """Where in the log this run begins: earlier ones are before it."""

    @classmethod
    def start(
        cls,
        name: str,
        arguments: tuple[str, ...],
        state: Path,
        *,
        within: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ChildProcess:
        """Starts a module of Python.

        Args:
            name: what errors call it, and its log in `state`.
            arguments: the module and its own arguments.
            state: the folder of logs.
            within: its current directory; None: this process's own.
            environment: its environment; None: this process's own.
        """
        announced, log = state / f"{name}.ready", state / f"{name}.log"
        with announced.open("wb") as stdout, log.open("ab") as stderr:
            log_begins = stderr.tell()
            popen = subprocess.Popen(  # noqa: S603 - the arguments are paths of the caller's own configuration
                # -P: nothing in the current directory is imported as a module.
                [sys.executable, "-P", "-m", *arguments, "--stop-with-stdin"],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                cwd=within,
                env=environment,
                # Ctrl-C in a terminal reaches this program, which then stops the others in order.
                start_new_session=True,
            )
        assert popen.stdin is not None, "it was started with a pipe"  # noqa: S101 - for the type checker
        _pipes.add(popen.stdin)
        return cls(name, popen, popen.stdin, announced, log, log_begins)

    def wait_until_ready(self, serves: Callable[[Announced], bool] = lambda _: True) -> Announced:
        """Waits until it has said that it serves, and `serves` finds that it does; returns what it has said.

        Raises:
            ServiceUnavailable: it has ended, or is not ready in time; with the last line of its log.
            ServiceMisconfigured: it has ended because of what it was started with.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.popen.poll() is None:
            said = self._said()
            if said is not None and "error" in said:
                raise ServiceMisconfigured(self.name, f"did not start: {said['error'].get('message')}")
            if said is not None and serves(said):
                return said
            time.sleep(POLL_SECONDS)
        raise self._failed("did not start")

    def require_running(self) -> None:
        """Checks that it runs.

        Raises:
            ServiceUnavailable: it has ended; with the last line of its log, or the signal that ended it.
        """
        if self.popen.poll() is not None:
            raise self._failed("ended")

    def terminate(self) -> None:
        """Asks it to end."""
        self.popen.terminate()

    def end(self) -> None:
        """Waits until it has ended; after five seconds it is killed."""
        try:
            self.popen.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        _pipes.discard(self._pipe)
        self._pipe.close()

    def last_log_line(self) -> str:
        """Returns the last line that this run has logged."""
        with self._log.open("rb") as written:
            written.seek(self._log_begins)
            lines = written.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "its log is empty")

    def _failed(self, how: str) -> ServiceUnavailable:
        code = self.popen.poll()
        kind = ServiceMisconfigured if code == _EXIT_MISCONFIGURED else ServiceUnavailable
        if code is not None and code < 0:
            # It was killed, and what it logged before is about something else.
            return kind(self.name, f"{how}: by {signal.Signals(-code).name}")
        return kind(self.name, f"{how}: {self.last_log_line()}")

    def _said(self) -> Announced | None:
        line, newline, _ = self._announced.read_text().partition("\n")
        return dict(json.loads(line)) if newline else None


def end_all(processes: list[ChildProcess]) -> None:
    """Ends programs: all are asked at the same time, and only then is any waited for."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.end()
    processes.clear()
