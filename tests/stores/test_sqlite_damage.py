"""A SQLite file with a damaged page: it is not served, and the damage is named."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from contextlib import closing as closing_file
from pathlib import Path

import pytest

from budget_service.ledger.values import Cost
from budget_service.stores.interface import StoreUnusableError
from budget_service.stores.sqlite.integrity import require_sound
from budget_service.stores.sqlite.store import SqliteStore
from tests.support.budget_samples import SteppedClock, charge, reserve
from tests.support.ledger_stores import closing
from tests.support.log_events import logged_events

PAGE_BYTES = 4096


async def filled(path: Path, clock: SteppedClock) -> None:
    """Make a ledger that has something in each table."""
    async with closing(SqliteStore.open(path, clock)) as store:
        asked = [charge(f"c{index}", Cost(1, 1), release_id=f"rel{index}") for index in range(100)]
        await asyncio.gather(*(store.apply(*each) for each in asked))
        await store.apply(*reserve("held", Cost(1, 1)))


def zeroed(path: Path, page: int) -> None:
    """Write zeros over a page, the first of which is 1."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))


async def test_a_ledger_with_a_zeroed_page_is_not_opened(tmp_path: Path, clock: SteppedClock) -> None:
    """Whichever page it is, of a table or of an index."""
    path = tmp_path / "ledger.db"
    await filled(path, clock)
    whole = path.read_bytes()
    pages = len(whole) // PAGE_BYTES
    assert pages > 12
    for page in range(1, pages + 1):
        path.write_bytes(whole)
        zeroed(path, page)
        with pytest.raises(StoreUnusableError, match=r"ledger\.db"):
            SqliteStore.open(path, clock)
    path.write_bytes(whole)
    await SqliteStore.open(path, clock).close()


async def test_the_table_that_is_damaged_is_named(tmp_path: Path, clock: SteppedClock) -> None:
    """And nothing of its content."""
    path = tmp_path / "ledger.db"
    await filled(path, clock)
    with closing_file(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'rows'"
        (page,) = connection.execute(query).fetchone()
    zeroed(path, page)
    with pytest.raises(StoreUnusableError, match="is damaged, in its table rows") as caught:
        SqliteStore.open(path, clock)
    assert "acme" not in str(caught.value)


async def test_a_ledger_that_is_too_large_is_checked_in_part(
    tmp_path: Path, clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """What decisions rest on comes first, and the log says what was left out."""
    path = tmp_path / "ledger.db"
    await filled(path, clock)
    with closing_file(sqlite3.connect(path)) as connection:
        require_sound(connection, path, 2.5, itertools.count().__next__)
    (fields,) = [each for name, each in logged_events(caplog) if name == "store.partly_checked"]
    assert fields == {"unchecked": "journal,sqlite_sequence"}
