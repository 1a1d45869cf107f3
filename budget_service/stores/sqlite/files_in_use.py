"""Notices when the files of a ledger are exchanged, moved or overwritten while they are used.

SQLite goes on writing into the file that it has opened, whatever its path means meanwhile. What is charged then is gone
with the process, and the file that was put there is believed to be the ledger.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from budget_service.stores.interface import StoreUnusableError

WAL_SUFFIX = "-wal"

# Device and inode.
_Identity: TypeAlias = tuple[int, int]
# Size and time of the last change.
_Stamp: TypeAlias = tuple[int, int]


class FilesInUse:
    """The file of a ledger that is open, and its write-ahead log.

    The ledger belongs to this process alone, so its file changes only when this process commits. `require_same` is to
    be called before each commit, `committed` after it, and `check` regularly. Each raises StoreUnusableError if the
    files are not those that were opened, or somebody else has written; and so does every later call, because what was
    charged meanwhile may be missing where the path leads then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # SQLite looks for the write-ahead log beside the file that a link leads to.
        self._real = path.resolve()
        self._wal_path = self._real.with_name(self._real.name + WAL_SUFFIX)
        self._ledger, self._stamp = _identity_and_stamp(self._real.stat())
        self._found = self._stamp
        self._wal: _Identity | None = None
        self._fault = ""

    def check(self) -> None:
        """Return if the files are the same, and links still lead to them."""
        if not self._fault and self._path.exists() and self._path.resolve() != self._real:
            self._fault = self._exchanged("leads to another place than when it was opened")
        self.require_same()

    def require_same(self) -> None:
        """Return if the files are the same."""
        self._fault = self._fault or self._found_fault(self._stamp)
        if self._fault:
            raise StoreUnusableError(self._fault)

    def committed(self) -> None:
        """Return if the files are the same, and note what this process has just written."""
        self._fault = self._fault or self._found_fault(None)
        if self._fault:
            raise StoreUnusableError(self._fault)
        self._stamp = self._found

    def _found_fault(self, stamp: _Stamp | None) -> str:
        try:
            ledger, self._found = _identity_and_stamp(self._path.stat())
        except FileNotFoundError:
            return f"{self._path} is gone: what is charged now would be lost with this process"
        except OSError as error:
            return f"{self._path}: {error.strerror}"
        if ledger != self._ledger:
            return self._exchanged("is another file than the one that was opened")
        if stamp is not None and self._found != stamp:
            return self._exchanged("was written by somebody else")
        return self._found_fault_of_wal()

    def _found_fault_of_wal(self) -> str:
        try:
            wal, _ = _identity_and_stamp(self._wal_path.stat())
        except FileNotFoundError:
            # SQLite makes it with the first commit, and keeps it until the ledger is closed.
            return "" if self._wal is None else self._exchanged("has lost its write-ahead log")
        except OSError as error:
            return f"{self._path}: {error.strerror}"
        self._wal = self._wal or wal
        return "" if wal == self._wal else self._exchanged("has another write-ahead log")

    def _exchanged(self, how: str) -> str:
        return (
            f"{self._path} {how}, while it was used: what is charged now would be lost. Stop this service before you "
            "restore a ledger, and restore it again"
        )


def _identity_and_stamp(found: os.stat_result) -> tuple[_Identity, _Stamp]:
    return (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns)
