"""The file of a ledger that is exchanged, moved or overwritten while a service uses it: nothing more is charged."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from budget_service.ledger.values import Cost
from budget_service.server.hosting import serving
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import OutcomeUnknownError, StoreUnusableError
from budget_service.stores.sqlite.store import SqliteStore
from tests.support.budget_client import charging, connected, failure
from tests.support.budget_process import NOT_SERVING, SERVING, health_becomes
from tests.support.budget_samples import ANALYST, SteppedClock, charge, levels, limit
from tests.support.ledger_stores import closing
from tests.support.log_events import logged_events
from tests.unit.budget_service.served import SETTINGS

ON = levels(own=limit(1000, 1000))


def renamed_over(path: Path, copy: Path) -> None:
    """Put the copy in the place of the ledger, as a command that renames does."""
    copy.replace(path)


def linked_over(path: Path, copy: Path) -> None:
    """Put a hard link to the copy there."""
    path.unlink()
    path.hardlink_to(copy)


def symlinked_over(path: Path, copy: Path) -> None:
    """Put a symbolic link to the copy there."""
    path.unlink()
    path.symlink_to(copy)


def overwritten(path: Path, copy: Path) -> None:
    """Write the copy into the file itself, as a copying command does."""
    path.write_bytes(copy.read_bytes())


def removed(path: Path, _copy: Path) -> None:
    """Remove the ledger."""
    path.unlink()


def wal_removed(path: Path, _copy: Path) -> None:
    """Remove the write-ahead log, as a restore does."""
    wal(path).unlink()


def wal_exchanged(path: Path, _copy: Path) -> None:
    """Put another write-ahead log there."""
    other = path.with_name("other-wal")
    shutil.copyfile(wal(path), other)
    other.replace(wal(path))


def folder_exchanged(path: Path, _copy: Path) -> None:
    """Move the folder away and leave a link to where it is: the write-ahead log is no longer where it was."""
    away = path.parent.with_name("away")
    path.parent.rename(away)
    path.parent.symlink_to(away)


EXCHANGES = [
    renamed_over, linked_over, symlinked_over, overwritten, removed, wal_removed, wal_exchanged,
]  # fmt: skip
Exchange = Callable[[Path, Path], None]


def wal(path: Path) -> Path:
    """Return the path of the write-ahead log."""
    return path.with_name(path.name + "-wal")


async def copied(folder: Path, clock: SteppedClock) -> tuple[Path, Path]:
    """Make a ledger with one charge, and return its path and that of a copy."""
    (folder / "data").mkdir()
    path, copy = folder / "data" / "ledger.db", folder / "copy.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("before", Cost(1, 1), on=ON))
    shutil.copyfile(path, copy)
    return path, copy


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda each: each.__name__)
async def test_no_charge_is_acknowledged_after_the_file_was_exchanged(
    tmp_path: Path, clock: SteppedClock, exchange: Exchange
) -> None:
    """Not even before the next check; each outcome is unknown, and the check goes on failing."""
    path, copy = await copied(tmp_path, clock)
    store = SqliteStore.open(path, clock)
    await store.apply(*charge("good", Cost(1, 1), on=ON))
    exchange(path, copy)
    for index in range(30):
        with pytest.raises(OutcomeUnknownError):
            await store.apply(*charge(f"lost{index}", Cost(1, 1), on=ON))
    for _ in range(2):
        with pytest.raises(StoreUnusableError, match=r"while it was used|is gone"):
            await store.check()
    await store.close()


@pytest.mark.parametrize("exchange", [*EXCHANGES, folder_exchanged], ids=lambda each: each.__name__)
async def test_a_service_that_charges_nothing_notices_too(
    tmp_path: Path, clock: SteppedClock, exchange: Exchange
) -> None:
    """At its next check."""
    path, copy = await copied(tmp_path, clock)
    store = SqliteStore.open(path, clock)
    await store.apply(*charge("good", Cost(1, 1), on=ON))
    await store.check()
    exchange(path, copy)
    with pytest.raises(StoreUnusableError, match=r"while it was used|is gone"):
        await store.check()
    await store.close()


async def test_what_was_put_in_the_place_of_a_ledger_is_known_for_a_restored_one(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """Though no check came between the last charge and the exchange: it is behind the mark."""
    path, copy = await copied(tmp_path, clock)
    store = SqliteStore.open(path, clock)
    await store.apply(*charge("acknowledged", Cost(1, 1), on=ON))
    copy.replace(path)
    with pytest.raises(StoreUnusableError):
        await store.check()
    await store.close()
    wal(path).unlink(missing_ok=True)
    with pytest.raises(StoreUnusableError, match="is behind its mark"):
        SqliteStore.open(path, clock)


async def test_the_file_of_an_exchanged_ledger_is_left_alone(tmp_path: Path, clock: SteppedClock) -> None:
    """Neither it nor its own write-ahead log is written or removed when the service ends."""
    path, copy = await copied(tmp_path, clock)
    store = SqliteStore.open(path, clock)
    await store.apply(*charge("acknowledged", Cost(1, 1), on=ON))
    before = copy.read_bytes()
    copy.replace(path)
    wal(path).unlink()
    wal(path).write_text("of the other ledger")
    await store.close()
    assert path.read_bytes() == before
    assert wal(path).read_text() == "of the other ledger"


@pytest.mark.slow
async def test_a_ledger_behind_a_link_that_is_left_alone_is_served(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also over many commits, each of which writes into the file, and over checkpoints of the write-ahead log."""
    monkeypatch.setattr("budget_service.stores.sqlite.file.LOG_PAGES", 500)
    path, _ = await copied(tmp_path, clock)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    shutil.copyfile(path.with_name("ledger.db.mark"), tmp_path / "link.db.mark")
    async with closing(SqliteStore.open(link, clock)) as store:
        size = path.stat().st_size
        for index in range(120):
            asked = [charge(f"c{index}-{each}", Cost(0, 0), on=ON) for each in range(60)]
            await asyncio.gather(*(store.apply(*each) for each in asked))
            await store.check()
        # SQLite has moved what was committed from the write-ahead log into the file.
        assert path.stat().st_size > size
        os.utime(tmp_path / "link.db", follow_symlinks=False)
        await store.check()
    assert (await spent(path, clock)) == Cost(1, 1)


async def spent(path: Path, clock: SteppedClock) -> Cost:
    """Return what the analyst has spent."""
    async with closing(SqliteStore.open(path, clock)) as store:
        return (await store.read(ANALYST, ON)).levels[-1].spent


@pytest.mark.slow
async def test_a_service_whose_ledger_was_exchanged_refuses_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The outcome of a charge is unknown, then charges are unavailable; health and log say it."""
    path, copy = await copied(tmp_path, SteppedClock())
    store = SqliteStore.open(path, SteppedClock())
    async with (
        closing(store),
        serving(Ledger(store), SETTINGS, "127.0.0.1:0") as address,
        connected(address) as stub,
    ):
        await health_becomes(address, SERVING)
        await stub.UpdateBudget(charging(request_id="good"))
        copy.replace(path)
        lost = await failure(stub.UpdateBudget(charging(request_id="lost")))
        assert (lost.code, lost.info.reason) == (grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN")
        await health_becomes(address, NOT_SERVING)
        late = await failure(stub.UpdateBudget(charging(request_id="late")))
        assert (late.code, late.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    failed = [fields["problem"] for event, fields in logged_events(caplog) if event == "store.check_failed"]
    assert any("is another file than the one that was opened" in each for each in failed)


async def test_the_ledger_itself_is_begun_when_it_is_put_back(tmp_path: Path, clock: SteppedClock) -> None:
    """With its own write-ahead log: it lacks nothing that the mark says."""
    path, copy = await copied(tmp_path, clock)
    store = SqliteStore.open(path, clock)
    await store.apply(*charge("acknowledged", Cost(1, 1), on=ON))
    away = tmp_path / "away"
    path.parent.rename(away)
    path.parent.mkdir()
    shutil.copyfile(copy, path)
    shutil.copyfile(away / "ledger.db.mark", path.with_name("ledger.db.mark"))
    with pytest.raises(StoreUnusableError):
        await store.check()
    await store.close()
    path.unlink()
    for each in away.glob("ledger.db*"):
        if not each.name.endswith(".mark"):
            each.rename(path.with_name(each.name))
    assert await spent(path, clock) == Cost(2, 2)
