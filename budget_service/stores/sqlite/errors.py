"""What an error of SQLite means for who asked."""

from __future__ import annotations

import sqlite3

from budget_service.stores.interface import StoreDamagedError, StoreUnavailableError

# What SQLite says of a file that cannot be read, or is not its own.
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def translated(error: sqlite3.Error) -> Exception:
    """Return what a failure before the commit means; nothing was changed."""
    is_fault_of_this_program = isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError)
    if isinstance(error, sqlite3.DatabaseError) and not is_fault_of_this_program:
        is_damage = getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE
        return StoreDamagedError("", "", str(error)) if is_damage else StoreUnavailableError(str(error))
    return error
