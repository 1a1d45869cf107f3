"""Files that may be replaced while a server runs: certificates, keys, lists of who may call."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

Value = TypeVar("Value")
FileStamp = tuple[int, int, int]
"""When a file was modified (nanoseconds), its size and its inode."""

log = logging.getLogger(__name__)


class SecurityError(Exception):
    """Something that decides who may call cannot be used; the message names the file and never shows its content."""


class ReloadingFiles(Generic[Value]):
    """The content of some files, which are read again once one of them has changed. Thread-safe.

    Files that cannot be used change nothing: their previous content stays in force, and the log says why. So a
    certificate and its key may be replaced one after the other.

    Args:
        what: What the files hold, for the log.
        paths: The files.
        load: Reads all of them.

    Raises:
        SecurityError: `load` raised it the first time.
    """

    def __init__(self, what: str, paths: Sequence[Path], load: Callable[[], Value]) -> None:
        self._what = what
        self._paths = tuple(paths)
        self._load = load
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._value = load()

    def value(self) -> Value:
        """Return the content in force."""
        with self._lock:
            found = self._stamps()
            if found != self._seen:
                # The stamps are older than what is read now, so that a change in between is noticed next time.
                self._seen = found
                self._read_again()
            return self._value

    def _read_again(self) -> None:
        try:
            self._value = self._load()
        except SecurityError as error:
            fields = {"files": self._what, "problem": str(error)}
            log.error(
                "Files cannot be used; their previous content stays in force.",
                extra={"event": "files.kept", "fields": fields},
            )
            return
        log.info("Files were read again.", extra={"event": "files.reloaded", "fields": {"files": self._what}})

    def _stamps(self) -> list[FileStamp | None]:
        return [file_stamp(path) for path in self._paths]


def read_bytes(path: Path) -> bytes:
    """Return a file's content.

    Raises:
        SecurityError: It cannot be read; the message names the file.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise SecurityError(f"{path}: {error.strerror or 'cannot be read'}") from None


def file_stamp(path: Path) -> FileStamp | None:
    """Return what changes when a file is replaced or written to, None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
