"""Versions of files: a hash of their content, computed again only when the file system shows a change."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path

from pinot_connector.engines.parquet_files import ParquetFiles, base_of, files_of, is_many, said_by_folders
from pinot_connector.errors import DataUnreadable, EngineError, EngineGone, EngineUnavailable

READS_OF_A_MOVING_FILE = 3
DATABASE_SUFFIXES = frozenset((".duckdb", ".db"))
CSV_SUFFIXES = frozenset((".csv", ".tsv"))

# Where a file says what it is; a Parquet file does so at its end too.
_PARQUET = b"PAR1"
_DAMAGED = "is damaged"
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

    def files(self) -> ParquetFiles:
        """Returns what is read of a Parquet table.

        Raises:
            EngineError: they are not one table.
        """
        return files_of(self.path)

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


class VersionedFolder(VersionedFile):
    """The Parquet files of a folder or pattern, whose version is a hash of theirs and of what their folders say."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._files: dict[Path, VersionedFile] = {}

    def version(self) -> str:
        """See `VersionedFile.version`; two lists of the same files in folders of the same names have the same.

        Raises:
            EngineGone: there is no file.
            DataUnreadable: they are not one table.
        """
        with self._lock:
            paths = files_of(self.path).paths
            self._files = {path: self._files.get(path) or VersionedFile(path) for path in paths}
            base = base_of(self.path).absolute()
            held = sorted((file.version(), said_by_folders(path, base)) for path, file in self._files.items())
        return f"sha256:{hashlib.sha256(json.dumps(held).encode()).hexdigest()}"

    def stamp(self) -> object:
        """See `VersionedFile.stamp`."""
        return [(path, VersionedFile(path).stamp()) for path in files_of(self.path).paths]


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
    """Returns the error of data that cannot be read: that they are not there, or why they are not what their name says.

    Only the first and last bytes of files are looked at, which depend on no row.
    """
    if is_many(path):
        return _of_many(path)
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


def _of_many(path: Path) -> EngineError:
    """Returns the error of the first file that shows one, without its folder, whose name may say what a member has."""
    try:
        errors = map(unreadable, files_of(path).paths)
    except EngineError as error:
        return error
    damaged = DataUnreadable(f"the data folder {base_of(path).name} has a Parquet file that {_DAMAGED}")
    return next((error for error in errors if not str(error).endswith(_DAMAGED)), damaged)


def _fault(path: Path, first: bytes, last: bytes) -> str:
    if not first:
        return "is empty"
    if path.suffix in DATABASE_SUFFIXES:
        if first[_DATABASE_PLACE] != _DATABASE:
            return "is no DuckDB database"
        return "is a DuckDB database that ends early, is damaged, or was written by a later DuckDB"
    if path.suffix.lower() in CSV_SUFFIXES:
        return (
            "has a line that is not CSV in UTF-8, has more than 64 MiB, or has more or fewer values than the first "
            "line has names"
        )
    if not first.startswith(_PARQUET):
        return "is no Parquet file"
    return f"is a Parquet file that {'ends early' if last != _PARQUET else _DAMAGED}"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
