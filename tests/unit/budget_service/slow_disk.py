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
        """Wait before a commit of the ledger, on the thread that makes it."""
        if sql == "COMMIT" and threading.current_thread() is not threading.main_thread():
            self.begun.set()
            self.gate.wait(60)
        return super().execute(sql, *parameters)
