"""Checkpoints of a journal, which later verifications begin from, and entries that move to a file."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tracemalloc
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc
from msgspec.structs import replace
from redis.asyncio import Redis

from budget_service.ledger.digests import digest
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.verification import Checkpoint, entry_parts
from budget_service.server.audit import Verification, verify
from budget_service.server.checkpoints import LedgerDiffersError, archive, make_checkpoint
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import Store
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_client import failure
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    NOON,
    UNIT,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import closing, empty
from tests.support.redis_server import RedisServer
from tests.support.some import some
from tests.unit.budget_service.limit_settings import SETTINGS
from tests.unit.budget_service.memory_store import MemoryStore

ON = levels(own=limit(100, 100, days=3), above=limit(1000, 1000))


async def play(store: Store, clock: SteppedClock, name: str, days: int = 4) -> None:
    """Charge and hold something on some days, and let a stranger do so too."""
    for day in range(days):
        await store.apply(*charge(f"{name}{day}", Cost(day + 1, 1), on=ON, release_id=f"{name}{day}"))
        await store.apply(*reserve(f"hold {name}{day}", Cost(2, 1), on=ON))
        stranger = charge(f"{name}{day}", Cost(1, 1), account=Account(("acme0", "eve")))
        await store.apply(*stranger)
        clock.step(days=1)


async def verified(store: Store, root: str = "acme") -> Verification:
    """Verify a root."""
    found = Verification()
    await verify(store, root, found)
    return found


async def test_a_verification_begins_from_the_checkpoint(any_store: Store, clock: SteppedClock) -> None:
    """It counts the entries up to the checkpoint and finds nothing wrong, even when these are gone."""
    await play(any_store, clock, "a")
    checkpointed = await make_checkpoint(any_store, "acme")
    assert (4, 64) == (checkpointed.entries, len(checkpointed.digest))
    assert checkpointed == await any_store.checkpoint("acme")
    assert await any_store.drop_checkpointed("acme", 3) == 3
    assert await any_store.drop_checkpointed("acme", 3) == 1
    assert await any_store.drop_checkpointed("acme", 3) == 0
    assert await any_store.journal("acme", "", "", 10) == []
    assert len(await any_store.journal("acme0", "", "", 10)) == 4
    assert (4, []) == ((await verified(any_store)).entries, (await verified(any_store)).differences)
    await play(any_store, clock, "b")
    assert (8, []) == ((await verified(any_store)).entries, (await verified(any_store)).differences)
    again = await make_checkpoint(any_store, "acme")
    assert (8, True) == (again.entries, again.digest != checkpointed.digest)


async def test_an_empty_journal_can_be_sealed(any_store: Store, tmp_path: Path) -> None:
    """There is nothing in it, and nothing to archive."""
    assert Checkpoint() == await make_checkpoint(any_store, "acme")
    assert await archive(any_store, "acme", tmp_path / "no-such-folder") is None


async def test_an_older_checkpoint_does_not_take_the_place_of_a_newer_one(
    any_store: Store, clock: SteppedClock
) -> None:
    """Two administrators make a checkpoint at once, and one is slow."""
    await play(any_store, clock, "a", days=1)
    slow = await make_checkpoint(any_store, "acme")
    await play(any_store, clock, "b", days=1)
    newer = await make_checkpoint(any_store, "acme")
    await any_store.write_checkpoint("acme", slow)
    assert newer == await any_store.checkpoint("acme")


async def test_a_checkpoint_keeps_a_sum_for_each_day(any_store: Store, clock: SteppedClock) -> None:
    """Of every level, also of days that have left its window: another one may count them."""
    await play(any_store, clock, "a", days=9)
    checkpointed = await make_checkpoint(any_store, "acme")
    assert [9, 9] == [len(checkpointed.spent[ANALYST]), len(checkpointed.spent[ANALYST.level(1)])]


def files_in(folder: Path) -> list[Path]:
    """Return what a folder holds."""
    return list(folder.iterdir())


@pytest.mark.slow
async def test_a_long_journal_is_archived_page_by_page(clock: SteppedClock, tmp_path: Path) -> None:
    """However long it is, the memory holds a few thousand entries; and nothing but the archive is left behind."""
    many = 12_000
    await (store := MemoryStore(clock)).apply(*charge("a", Cost(1, 1), on=ON))
    (first,) = store.entries

    class Long(MemoryStore):
        async def journal(
            self, root: str, after: str, until: str, most: int
        ) -> list[tuple[str, JournalEntry]]:
            start = int(after or 0)
            numbers = range(start + 1, min(start + most, many) + 1)
            return [(str(number), replace(first, request_id=f"{number:0100}")) for number in numbers]

        async def drop_checkpointed(self, root: str, most: int) -> int:
            return 0

    chain = ""
    for number in range(1, many + 1):
        chain = digest((chain.encode(), *entry_parts(replace(first, request_id=f"{number:0100}"))))
    ledger = Long(clock, checkpoints={"acme": Checkpoint(str(many), many, chain)})
    tracemalloc.start()
    try:
        path = await archive(ledger, "acme", tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path is not None
    with path.open() as lines:
        assert sum(1 for _ in lines) == many + 1
    assert files_in(tmp_path) == [path]
    # All entries together take more than 2 MB, and a page of them takes less than 1 MB.
    assert peak < 1_250_000


async def test_archived_entries_are_in_a_file_and_nowhere_else(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """Each segment in its own file, in order; the digest of the last line is that of all entries so far."""
    chain = ""
    for name, first, last in (("a", 1, 4), ("b", 5, 8)):
        await play(any_store, clock, name)
        checkpointed = await make_checkpoint(any_store, "acme")
        path = await archive(any_store, "acme", tmp_path, Tuning(dropped_at_once=3))
        assert path == tmp_path / f"acme.{first}-{last}.{checkpointed.digest[:12]}.jsonl"
        *entries, end = [json.loads(line) for line in path.read_text().splitlines()]
        assert [f"{name}{day}" for day in range(4)] == [each["request_id"] for each in entries]
        assert (["acme", "ann"], 1, UNIT) == (
            entries[0]["account"],
            entries[0]["information"],
            entries[0]["unit_id"],
        )
        for each in entries:
            chain = digest(part.encode() for part in [chain, *parts(each)])
        assert (
            end
            == {"entries": last, "digest": chain}
            == {"entries": checkpointed.entries, "digest": checkpointed.digest}
        )
        assert await any_store.journal("acme", "", "", 10) == []
        assert path.stat().st_mode & 0o777 == 0o600
    assert (await verified(any_store)).differences == []


async def test_an_archive_is_never_written_over_by_another_past_of_the_ledger(
    clock: SteppedClock, tmp_path: Path
) -> None:
    """A ledger that was restored has other entries of the same numbers; the same ones make the same file."""
    paths = []
    for name in ("a", "b", "a"):
        clock.now = NOON
        store = MemoryStore(clock)
        await play(store, clock, name)
        await make_checkpoint(store, "acme")
        paths.append(await archive(store, "acme", tmp_path))
    assert paths[0] == paths[2] != paths[1]
    for name, path in some(zip(("a", "b"), paths, strict=False)):
        assert path is not None
        assert f"{name}0" == json.loads(path.read_text().splitlines()[0])["request_id"]


def parts(entry: dict[str, Any]) -> list[str]:
    """Return what the digest takes of an entry, in its order."""
    names = ("information", "calls", "unit_id", "request_id", "release_id", "query_id", "time")
    said = [entry["kind"], "/".join(entry["account"]), *(str(entry[name]) for name in names)]
    return said + [str(number) for hold in entry["holds"] for number in hold]


async def test_a_ledger_that_differs_is_not_sealed(tmp_path: Path, clock: SteppedClock) -> None:
    """Later verifications must not begin from a wrong ledger; after an earlier checkpoint, the fault is still found."""
    path = tmp_path / "ledger.db"
    for checkpointed_before in (False, True):
        async with closing(SqliteStore.open(path, clock)) as store:
            await play(store, clock, f"{checkpointed_before}", days=1)
            if checkpointed_before:
                await make_checkpoint(store, "acme")
        run(path, "UPDATE balances SET spent_information = spent_information - 1 WHERE level = 'acme'")
        async with closing(SqliteStore.open(path, clock)) as store:
            with pytest.raises(LedgerDiffersError):
                await make_checkpoint(store, "acme")
            assert checkpointed_before == bool((await store.checkpoint("acme")).entries)
        run(path, "UPDATE balances SET spent_information = spent_information + 1 WHERE level = 'acme'")


def run(path: Path, statement: str) -> None:
    """Do something to a ledger by hand."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


async def test_a_sealed_entry_that_was_rewritten_is_found_by_verify(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """No other root is affected, and what is archived is not missed."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, clock, "a", days=2)
        checkpoint = await make_checkpoint(store, "acme")
        await make_checkpoint(store, "acme0")
        assert await checkpoints_that_differ(store) == []
    run(path, "DROP TRIGGER journal_is_not_changed")
    rewritten = "UPDATE journal SET information = information {} 1 WHERE entry = 1"
    run(path, rewritten.format("+"))
    async with closing(SqliteStore.open(path, clock)) as store:
        assert await checkpoints_that_differ(store) == [("acme", checkpoint.entries, 0)]
    run(path, rewritten.format("-"))
    async with closing(SqliteStore.open(path, clock)) as store:
        assert await checkpoints_that_differ(store) == []
        await store.drop_checkpointed("acme", 1)
        assert await checkpoints_that_differ(store) == []


async def checkpoints_that_differ(store: Store) -> list[tuple[str, int, int]]:
    """Return the checkpoints whose entries a verification of the ledger finds to be others."""
    async with (
        administering(Ledger(store), SETTINGS, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        found = (await stub.VerifyLedger(pb.VerifyLedgerRequest())).differences
    return [(each.path[0], each.kept, each.rebuilt) for each in found if each.sum == "checkpoint"]


async def test_only_sealed_entries_can_be_removed_from_a_sqlite_journal(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """Also by hand; and a ledger whose entries are all archived is not taken for a restored one."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, clock, "a", days=1)
        await make_checkpoint(store, "acme")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        run(path, "DELETE FROM journal WHERE account = 'acme0/eve'")
    async with closing(SqliteStore.open(path, clock)) as store:
        await make_checkpoint(store, "acme0")
        for root in ("acme", "acme0"):
            assert await store.drop_checkpointed(root, 10) == 1
    async with closing(SqliteStore.open(path, clock)) as store:
        assert (await verified(store)).entries == 1


async def test_an_interrupted_seal_of_a_redis_leaves_nothing_behind(
    shared_redis: RedisServer, clock: SteppedClock
) -> None:
    """What was written of it has a time to live, and the checkpoint in force has none."""
    await empty(shared_redis.address)
    client: Any = Redis.from_url(shared_redis.address, decode_responses=True)
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        await play(store, clock, "a", days=1)
        await make_checkpoint(store, "acme")
        assert ["gris:{acme}:checkpoint"] == [key async for key in client.scan_iter("gris:*:checkpoint*")]
        assert await client.ttl("gris:{acme}:checkpoint") == -1
    await client.aclose()


@pytest.mark.parametrize("archives", [False, True])
async def test_no_root_is_made_by_a_checkpoint_or_a_verification(
    any_store: Store, clock: SteppedClock, tmp_path: Path, archives: bool
) -> None:
    """Who mistypes its name is refused, and nothing is left of that name; nor is it in an empty ledger."""
    (folder := tmp_path / "archives").mkdir()
    nix = {"path": ["nix"]}
    async with (
        administering(Ledger(any_store), SETTINGS, "127.0.0.1:0", folder) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        for known in ([], ["acme", "acme0"]):
            if known:
                await play(any_store, clock, "a", days=1)
            for asking in (
                stub.SealJournal(pb.SealJournalRequest(account=nix, archive=archives)),
                stub.VerifyLedger(pb.VerifyLedgerRequest(account=nix)),
            ):
                error = await failure(asking)
                assert (grpc.StatusCode.NOT_FOUND, "ACCOUNT_UNKNOWN") == (error.code, error.info.reason)
            assert known == sorted(await any_store.roots())
            assert len(known) == (await stub.VerifyLedger(pb.VerifyLedgerRequest())).entries
    assert Checkpoint() == await any_store.checkpoint("nix")
    assert [] == [*folder.iterdir()]


async def test_the_administrator_seals_and_archives(clock: SteppedClock, tmp_path: Path) -> None:
    """The answer names the file; without a folder there is no archive, and a leaf gets no checkpoint."""
    store = MemoryStore(clock)
    await play(store, clock, "a")
    root = {"path": ["acme"]}
    async with (
        administering(Ledger(store), SETTINGS, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        assert (await stub.SealJournal(pb.SealJournalRequest(account=root))).entries == 4
        error = await failure(stub.SealJournal(pb.SealJournalRequest(account=root, archive=True)))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "NO_ARCHIVE") == (error.code, error.info.reason)
        leaf = await failure(stub.SealJournal(pb.SealJournalRequest(account={"path": COLLEAGUE.path})))
        assert leaf.fields == ("account.path",)
    async with (
        administering(Ledger(store), SETTINGS, "127.0.0.1:0", tmp_path) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        answer = await stub.SealJournal(pb.SealJournalRequest(account=root, archive=True))
        assert (4, f"acme.1-4.{answer.digest[:12]}.jsonl") == (answer.entries, answer.archive)
        assert (tmp_path / answer.archive).exists()
        store.kept[ANALYST] = replace(store.kept[ANALYST], spent=Cost(0, 0))
        error = await failure(stub.SealJournal(pb.SealJournalRequest(account=root)))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "LEDGER_DIFFERS") == (error.code, error.info.reason)
