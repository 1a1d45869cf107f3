"""Commands of a page, run as a shell runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SECONDS = 120
# Debian keeps some of PostgreSQL's programs out of PATH.
_POSTGRESQL = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))


def run(commands: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run commands in a folder, up to the first that fails, and return what they print."""
    places = [str(Path(sys.executable).parent), os.environ["PATH"], *_POSTGRESQL]
    printed, errors = folder / "printed", folder / "errors"
    with printed.open("w") as output, errors.open("w") as reported:
        # In a group of its own: what the commands leave running ends with them.
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=folder,
            env={**os.environ, "PATH": ":".join(places), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=reported,
            start_new_session=True,
        )
        try:
            code = shell.wait(SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    assert code == 0, errors.read_text()[-2000:]
    return printed.read_text()
