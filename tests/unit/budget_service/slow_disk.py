"""A disk that keeps every commit of a ledger waiting until a test lets it go on."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any


class SlowConnection(sqlite3.Connection):
    """A connection on whose commits the disk lets wait."""

    begun = threading.Event()
    gate = threading.Event()

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Wait before a commit or a trim of the ledger, on the thread that makes it."""
        is_kept = sql.startswith(("COMMIT", "DELETE FROM journal"))
        if is_kept and threading.current_thread() is not threading.main_thread():
            self.begun.set()
            self.gate.wait(60)
        return super().execute(sql, *parameters)
