"""A ledger in SQLite is copied while it is charged, and the copy is restored as any other."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc

from budget_service.ledger.outcomes import Charged
from budget_service.ledger.values import Account, Cost, LevelLimit
from budget_service.server.audit import Verification, entries, verify
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import BackupFailedError, Store, StoreUnusableError
from budget_service.stores.opening import renew_mark
from budget_service.stores.rollback_guard import Position
from budget_service.stores.sqlite import backup as backups
from budget_service.stores.sqlite.backup import Backup
from budget_service.stores.sqlite.store import SqliteStore, mark_path
from tests.support.budget_client import failure
from tests.support.budget_process import refused
from tests.support.budget_samples import COMPANY, SteppedClock, charge, limit
from tests.support.log_events import logged_events
from tests.unit.budget_service.limit_settings import SETTINGS

ABOVE = LevelLimit(COMPANY, limit(10**9, 10**9))


@asynccontextmanager
async def opened(path: Path, clock: SteppedClock) -> AsyncIterator[SqliteStore]:
    """Open a ledger, and close it in the end."""
    store = SqliteStore.open(path, clock)
    try:
        yield store
    finally:
        await store.close()


def between_pages(monkeypatch: pytest.MonkeyPatch, work: Callable[[Backup], Awaitable[object]]) -> None:
    """Copy few pages at a time, and do something between them."""
    monkeypatch.setattr(backups, "PAGES_AT_ONCE", 5)
    monkeypatch.setattr(Backup, "_pause", work)


def waiting(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Have a backup wait after its first pages until it is stopped; return what is set then."""
    under_way = asyncio.Event()

    async def wait(backup: Backup) -> None:
        under_way.set()
        await backup.stopped.wait()

    between_pages(monkeypatch, wait)
    return under_way


async def charged(store: Store, name: str) -> str:
    """Charge an account of its own and return the request's id once it is answered."""
    who = Account(("acme", name))
    on = (ABOVE, LevelLimit(who, limit(100, 100)))
    answer = await store.apply(*charge(name, Cost(1, 1), account=who, on=on))
    assert isinstance(answer.outcome, Charged)
    return name


async def whole(path: Path, clock: SteppedClock) -> set[str]:
    """Return the requests that the ledger of a file has charged, after a verification that finds nothing wrong."""
    await (confirming := SqliteStore.open_restored(path, clock)).confirm(mark_path(path))
    await confirming.close()
    async with opened(path, clock) as store:
        await verify(store, "acme", found := Verification())
        assert not found.different
        return {entry.request_id async for _, entry in entries(store, "acme", "", "")}


async def test_a_copy_beside_charges_is_consistent_and_has_all_that_were_answered_before(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page, with charges before, between and after them; in its file nobody but the owner may read."""
    path, folder = tmp_path / "ledger.db", tmp_path / "backups"
    folder.mkdir()
    beside: list[str] = []
    async with opened(path, clock) as store:

        async def charge_one(_: Backup) -> None:
            beside.append(await charged(store, f"beside{len(beside)}"))

        between_pages(monkeypatch, charge_one)
        before = {await charged(store, f"before{number}") for number in range(60)}
        copy = await store.back_up(folder)
        after = await charged(store, "after")
    assert [copy] == list(folder.iterdir())
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    shutil.copy(copy, restored := tmp_path / "restored.db")
    kept = await whole(restored, clock)
    assert len(beside) > 3
    # Only the last one was charged when all pages had been copied.
    assert kept == before | set(beside[:-1])
    assert after not in kept


async def test_a_restored_copy_is_refused_until_what_was_charged_since_is_confirmed(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """By the mark that stayed beside the ledger; one that lacks nothing is taken as it is."""
    path = tmp_path / "ledger.db"
    async with opened(path, clock) as store:
        await charged(store, "before")
        copy = await store.back_up(tmp_path)
    shutil.copy(copy, path)
    async with opened(path, clock) as store:
        await charged(store, "after")
    shutil.copy(copy, path)
    with pytest.raises(StoreUnusableError, match=r"is behind its mark.*--confirm-restored"):
        SqliteStore.open(path, clock)
    assert await whole(path, clock) == {"before"}


async def test_no_file_is_overwritten(tmp_path: Path, clock: SteppedClock) -> None:
    """Not that of a backup of the same second; its own first one stays as it is."""
    async with opened(tmp_path / "ledger.db", clock) as store:
        first = await store.back_up(tmp_path)
        kept = first.read_bytes()
        await charged(store, "a")
        with pytest.raises(BackupFailedError, match="File exists"):
            await store.back_up(tmp_path)
        assert kept == first.read_bytes()
        clock.step(seconds=1)
        assert await store.back_up(tmp_path) != first


async def test_a_backup_that_is_interrupted_leaves_nothing_and_frees_the_ledger(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller has left; the next one is made, also over what a killed one had left behind."""
    under_way = waiting(monkeypatch)
    folder = tmp_path / "backups"
    folder.mkdir()
    async with opened(tmp_path / "ledger.db", clock) as store:
        await charged(store, "a")
        copying = asyncio.create_task(store.back_up(folder))
        await under_way.wait()
        await charged(store, "b")
        (fresh,) = folder.iterdir()
        assert fresh.match("ledger.db.backup.*.new")
        assert not copying.done()
        copying.cancel()
        await asyncio.sleep(0)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        assert not list(folder.iterdir())
        monkeypatch.undo()
        await charged(store, "d")
        fresh.write_text("half")
        os.utime(fresh, (0, 0))
        assert [await store.back_up(folder)] == list(folder.iterdir())


async def test_a_ledger_is_closed_in_the_middle_of_a_backup(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service that stops ends it first."""
    under_way = waiting(monkeypatch)
    folder = tmp_path / "backups"
    folder.mkdir()
    async with opened(tmp_path / "ledger.db", clock) as store:
        copying = asyncio.create_task(store.back_up(folder))
        await under_way.wait()
    with pytest.raises(asyncio.CancelledError):
        await copying
    assert not list(folder.iterdir())


async def test_a_ledger_that_was_exchanged_is_not_backed_up(tmp_path: Path, clock: SteppedClock) -> None:
    """What the service still has open is no ledger that anybody should restore."""
    path = tmp_path / "ledger.db"
    store = SqliteStore.open(path, clock)
    await charged(store, "a")
    path.rename(tmp_path / "moved.db")
    with pytest.raises(StoreUnusableError, match="is gone"):
        await store.back_up(tmp_path)
    await store.close()


async def test_the_administrator_backs_up(tmp_path: Path, clock: SteppedClock) -> None:
    """The answer names the file; without a folder, or one that cannot be written, there is an error with a reason."""
    folder = tmp_path / "backups"
    asked = pb.BackUpLedgerRequest()
    async with opened(tmp_path / "ledger.db", clock) as store:
        for given, reason in ((None, "NO_BACKUPS"), (folder, "BACKUP_UNWRITABLE")):
            async with (
                administering(Ledger(store), SETTINGS, "127.0.0.1:0", backups=given) as address,
                grpc.aio.insecure_channel(address) as channel,
            ):
                stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
                error = await failure(stub.BackUpLedger(asked))
                assert (grpc.StatusCode.FAILED_PRECONDITION, reason) == (error.code, error.info.reason)
                if given is not None:
                    folder.mkdir()
                    made = await stub.BackUpLedger(asked)
                    assert (folder / made.file).stat().st_size == made.bytes


@pytest.mark.usefixtures("starts_processes")
def test_the_folder_for_backups_is_checked_at_the_start(tmp_path: Path) -> None:
    """It has to be there, and the ledger in SQLite."""
    store = f"sqlite:{tmp_path}/ledger.db"
    for address, folder, problem in (
        (store, f"{tmp_path}/none", "is not a folder to keep backups in"),
        ("redis://127.0.0.1:1", str(tmp_path), "--backups is for a ledger in SQLite"),
    ):
        code, said = refused(tmp_path, address, "--backups", folder)
        assert code == 2
        assert problem in said


async def test_ledgers_of_one_name_have_one_folder(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each backup is of its own ledger, whenever the other one begins."""
    between_pages(monkeypatch, lambda _: asyncio.sleep(0.001))
    (tmp_path / "other").mkdir()
    later = SteppedClock()
    later.step(seconds=60)
    async with (
        opened(tmp_path / "ledger.db", clock) as one,
        opened(tmp_path / "other/ledger.db", later) as other,
    ):
        await charged(one, "a")
        await charged(other, "b")
        paths = await asyncio.gather(one.back_up(tmp_path), other.back_up(tmp_path))
    found = [await whole(path, each) for path, each in zip(paths, (clock, later), strict=True)]
    assert [{"a"}, {"b"}] == found


async def test_a_lost_mark_is_renewed_where_the_service_left_the_ledger(
    tmp_path: Path, clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """By the log; not at another count, such as that of a copy from before the last charge."""
    path = tmp_path / "ledger.db"
    async with opened(path, clock) as store:
        copy = await store.back_up(tmp_path)
    with caplog.at_level("INFO"):
        async with opened(path, clock) as store:
            await charged(store, "a")
    *_, left = [fields for event, fields in logged_events(caplog) if event == "rollback_guard.position"]
    stated = Position(left["ledger"], left["count"])
    mark_path(path).unlink()
    newest = path.read_bytes()
    shutil.copy(copy, path)
    with pytest.raises(StoreUnusableError, match="does not stand at that position"):
        await renew_mark(f"sqlite:{path}", stated, allow_volatile=False, mark=None)
    path.write_bytes(newest)
    await renew_mark(f"sqlite:{path}", stated, allow_volatile=False, mark=None)
    async with opened(path, clock) as store:
        assert [entry.request_id async for _, entry in entries(store, "acme", "", "")] == ["a"]
