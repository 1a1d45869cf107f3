"""Versions of files: a hash of the content, computed again only when the file system shows a change."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path

from pinot_connector.errors import EngineGone, EngineUnavailable

READS_OF_A_MOVING_FILE = 3

# The second and third exist while DuckDB moves the log into the database.
_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")


@dataclass(frozen=True)
class _Signature:
    """What the file system reports without reading the file.

    The change time is part of it because a program can set the modification time back, but not that one.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, path: Path) -> _Signature:
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


class VersionedFile:
    """A file whose version is `sha256:` and the hash of its bytes. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._known: tuple[_Signature, str] | None = None

    def version(self) -> str:
        """Returns the version of the content that the file has now.

        Raises:
            EngineUnavailable: the file cannot be read, or is being written all the time.
        """
        try:
            with self._lock:
                return self._read_version()
        except OSError:
            raise EngineGone("the data file cannot be read") from None

    def stamp(self) -> object:
        """Returns something that equals an earlier stamp only if the file was not replaced or written since.

        Raises:
            EngineUnavailable: the file cannot be read.
        """
        try:
            return _Signature.of(self.path)
        except OSError:
            raise EngineGone("the data file cannot be read") from None

    def _read_version(self) -> str:
        for _ in range(READS_OF_A_MOVING_FILE):
            signature = _Signature.of(self.path)
            if self._known is not None and self._known[0] == signature:
                return self._known[1]
            version = f"sha256:{_digest(self.path)}"
            # A file that was written while it was read has a hash of no version at all.
            if _Signature.of(self.path) == signature:
                self._known = (signature, version)
                return version
        raise EngineUnavailable("the data file is being written")


class VersionedDatabase(VersionedFile):
    """A DuckDB database, whose version is that of its file as long as no log is beside it.

    DuckDB reads the rows of a write-ahead log as well, and no hash of the database covers them.
    """

    def version(self) -> str:
        """See `VersionedFile.version`.

        Raises:
            EngineUnavailable: there is a log.
        """
        version = super().version()
        # Last, so that a log that appeared while the file was read is seen.
        require_no_log(self.path)
        return version


def require_no_log(path: Path) -> None:
    """Raises EngineUnavailable if DuckDB keeps changes to a database in a log beside it."""
    if any(path.with_name(path.name + suffix).exists() for suffix in _LOGS):
        raise EngineUnavailable(
            "the DuckDB database has a write-ahead log (.wal) beside it, whose rows no version covers: close what "
            "writes to the database, or run CHECKPOINT there"
        )


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
