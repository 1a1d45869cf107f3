"""Versions of files: a hash of the content, computed again only when the file system shows a change."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path

from pinot_connector.errors import DataUnreadable, EngineError, EngineGone, EngineUnavailable

READS_OF_A_MOVING_FILE = 3
DATABASE_SUFFIXES = frozenset((".duckdb", ".db"))

# Where a file says what it is; a Parquet file does so at its end too.
_PARQUET = b"PAR1"
_DATABASE, _DATABASE_PLACE = b"DUCK", slice(8, 12)

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
            EngineUnavailable: the file is not there, or is being written all the time.
            DataUnreadable: it may not be read.
        """
        try:
            with self._lock:
                return self._read_version()
        except OSError:
            raise unreadable(self.path) from None

    def stamp(self) -> object:
        """Returns something that equals an earlier stamp only if the file was not replaced or written since.

        Raises:
            EngineUnavailable: the file is not there.
            DataUnreadable: it may not be read.
        """
        try:
            return _Signature.of(self.path)
        except OSError:
            raise unreadable(self.path) from None

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


def unreadable(path: Path) -> EngineError:
    """Returns the error of a file that cannot be read: that it is not there, or why it is not what its name says.

    Only the first and last bytes are looked at, which depend on no row.
    """
    try:
        with path.open("rb") as stream:
            first = stream.read(_DATABASE_PLACE.stop)
            stream.seek(max(0, path.stat().st_size - len(_PARQUET)))
            last = stream.read()
    except (IsADirectoryError, PermissionError) as error:
        return DataUnreadable(f"the data file {path.name} cannot be read: {error.strerror}")
    except OSError:
        return EngineGone(
            f"the data file {path.name} cannot be read: it is not there, or its disk does not answer"
        )
    return DataUnreadable(f"the data file {path.name} {_fault(path, first, last)}")


def _fault(path: Path, first: bytes, last: bytes) -> str:
    if not first:
        return "is empty"
    if path.suffix in DATABASE_SUFFIXES:
        if first[_DATABASE_PLACE] != _DATABASE:
            return "is no DuckDB database"
        return "is a DuckDB database that ends early, is damaged, or was written by a later DuckDB"
    if not first.startswith(_PARQUET):
        return "is no Parquet file"
    return f"is a Parquet file that {'ends early' if last != _PARQUET else 'is damaged'}"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
