"""The file in which a region keeps its leases."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from budget_service.regions.records import SqliteRecordStorage


@pytest.fixture
def _umask_lets_all_read() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask_lets_all_read")
def test_only_the_owner_may_read_the_files_of_leases(tmp_path: Path) -> None:
    """SQLite's journal holds the same rows as its main file."""
    storage = SqliteRecordStorage(tmp_path / "ledger.db.leases")
    try:
        asyncio.run(storage.write({("region", "name"): b"eu"}))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        asyncio.run(storage.close())
    assert modes == {"ledger.db.leases": 0o600, "ledger.db.leases-wal": 0o600}
