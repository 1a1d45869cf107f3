"""A library that answers in an interpreter of its own, a line of JSON for each question and one for each answer."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from research.privolap.systems.frames import Library


def command_of(python: Path, module: str) -> tuple[str, ...]:
    """Return how a worker beside this module is started: isolated, for modules here are called like libraries."""
    return str(python), "-I", "-W", "ignore", str(Path(__file__).with_name(module))


class Worker:
    """A process that starts with the first question, and answers one after the other."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._lock = Lock()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def say(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return what is said to a question: `found`, or `error`."""
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            assert self._process.stdin is not None  # noqa: S101 - for mypy
            assert self._process.stdout is not None  # noqa: S101
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            said: dict[str, Any] = json.loads(self._process.stdout.readline())
            return said


class LibraryElsewhere(Library):
    """A library that answers by a worker; `title` is what it is called, and `package` what is installed."""

    title: ClassVar[str]
    package: ClassVar[str]
    command: ClassVar[tuple[str, ...]]

    def __init__(self, *, tuned: bool = False) -> None:
        super().__init__(self.title, tuned=tuned)
        self._worker = Worker(self.command)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has a worker of its own.
        return partial(type(self), tuned=self.tuned), ()

    def version(self) -> str:
        """Return that of the package, by the worker's interpreter."""
        text = f"from importlib.metadata import version; print(version({self.package!r}))"
        made = subprocess.run(
            (self.command[0], "-I", "-c", text), stdout=subprocess.PIPE, text=True, check=False
        )
        return made.stdout.strip()

    def close(self) -> None:
        """End the worker."""
        self._worker.close()
