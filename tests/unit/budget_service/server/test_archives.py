"""Archived journals: what was forged after its checkpoint is not archived, and the files can be checked later."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc
from redis.asyncio import Redis

from budget_service.configuration.sections import Administration
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.verification import Checkpoint
from budget_service.server.archives import check_archives, last_line, read_archive
from budget_service.server.audit import Verification, is_archived, verify
from budget_service.server.checkpoints import (
    ArchiveMissingError,
    JournalChangedError,
    archive,
    empty_old,
    make_checkpoint,
)
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from tests.support.budget_client import failure
from tests.support.budget_samples import SteppedClock, charge, levels, limit
from tests.support.ledger_stores import closing, empty
from tests.support.redis_server import RedisServer
from tests.unit.budget_service.limit_settings import CONFIGURATION, SETTINGS
from tests.unit.budget_service.memory_store import MemoryStore

ON = levels(own=limit(100, 100), above=limit(1000, 1000))


async def play(store: Store, name: str, count: int = 3) -> None:
    """Charge some releases."""
    for each in range(count):
        await store.apply(*charge(f"{name}{each}", Cost(each + 1, 1), on=ON, release_id=f"{name}{each}"))


async def archived(store: Store, folder: Path) -> Path:
    """Make a checkpoint and archive the journal before it."""
    await make_checkpoint(store, "acme")
    path = await archive(store, "acme", folder)
    assert path is not None
    return path


FORGE = (
    "DROP TRIGGER journal_is_not_changed",
    "UPDATE journal SET information = information + 1, release_id = 'forged' WHERE request_id = 'a1'",
)


def run(path: Path, *statements: str) -> None:
    """Do something to a ledger by hand."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def files_in(folder: Path) -> list[Path]:
    """Return what a folder holds."""
    return sorted(folder.iterdir())


async def test_an_entry_that_was_forged_after_its_checkpoint_is_not_archived(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """In SQLite: the range of positions is named, no file is left, and the journal stays."""
    path, folder = tmp_path / "ledger.db", tmp_path / "archive"
    folder.mkdir()
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, "a")
        await make_checkpoint(store, "acme")
    run(path, *FORGE)
    async with closing(SqliteStore.open(path, clock)) as store:
        with pytest.raises(JournalChangedError) as caught:
            await archive(store, "acme", folder)
        assert ("1", "3") == (caught.value.first, caught.value.last)
        await play(store, "b")
        with pytest.raises(JournalChangedError):
            await archived(store, folder)
        assert len(await store.journal("acme", "", "", 10)) == 6
    assert files_in(folder) == []


async def test_who_reads_a_journal_hears_what_is_in_archives_alone(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """Nobody who resumes after an entry misses others without a word, and nobody who has read all hears of it."""
    await play(any_store, "a")
    first, _, last = [position for position, _ in await any_store.journal("acme", "", "", 10)]
    await make_checkpoint(any_store, "acme")
    assert not any([await is_archived(any_store, "acme", each, 0) for each in ("", first, last)])
    await archived(any_store, tmp_path)
    clock.step(days=1)
    await play(any_store, "b")
    ((newest, entry), *_) = await any_store.journal("acme", "", "", 10)
    found = [await is_archived(any_store, "acme", each, 0) for each in ("", first, last, newest)]
    assert [True, True, False, False] == found
    assert not await is_archived(any_store, "acme", "", entry.time)
    assert not await is_archived(any_store, "other", "", 0)


async def test_an_entry_that_was_forged_in_redis_is_not_archived(
    shared_redis: RedisServer, clock: SteppedClock, tmp_path: Path
) -> None:
    """Anyone who can write to the store can replace the whole stream, with the same positions."""
    await empty(shared_redis.address)
    client: Any = Redis.from_url(shared_redis.address, decode_responses=True)
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        await play(store, "a")
        await make_checkpoint(store, "acme")
        entries = await client.xrange("gris:{acme}:journal")
        await client.delete("gris:{acme}:journal")
        for position, fields in entries:
            await client.xadd("gris:{acme}:journal", fields | {"release_id": "forged"}, id=position)
        with pytest.raises(JournalChangedError):
            await archive(store, "acme", tmp_path)
    await client.aclose()


async def test_the_next_archive_continues_the_digest_of_the_last(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """So the last file has to be there; any other may have been moved away."""
    paths = []
    folder, kept = tmp_path / "archive", tmp_path / "kept"
    for each in (folder, kept):
        each.mkdir()
    for name in "ab":
        await play(any_store, name)
        paths.append(await archived(any_store, folder))
    await play(any_store, "c")
    for path in paths:
        shutil.move(path, kept)
    with pytest.raises(ArchiveMissingError) as caught:
        await archived(any_store, folder)
    assert caught.value.last == 6
    shutil.copy(kept / paths[1].name, folder)
    await archived(any_store, folder)
    assert [each.name.split(".")[1] for each in files_in(folder)] == ["4-6", "7-9"]


async def test_a_journal_that_was_dropped_in_part_is_archived_further(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """The service died between the file and the end of dropping: the next file begins in the middle of the last."""
    whole, part, folder = tmp_path / "whole.db", tmp_path / "part.db", tmp_path / "archive"
    folder.mkdir()
    async with closing(SqliteStore.open(whole, clock)) as store:
        await play(store, "a")
        await archived(store, folder)
    async with closing(SqliteStore.open(part, clock)) as store:
        await play(store, "a")
        await make_checkpoint(store, "acme")
        await store.drop_checkpointed("acme", 1)
        await play(store, "b")
        again = await archived(store, folder)
    assert again.name.startswith("acme.2-6.")
    assert ["", ""] == [each.problem for each in check_archives(files_in(folder))]


async def test_archives_are_checked_by_their_digests(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """A changed line, a truncated file, a missing one and one that is no archive each have a message of their own."""
    paths = []
    for name in "abc":
        await play(any_store, name)
        paths.append(await archived(any_store, tmp_path))
    assert ["", "", ""] == [each.problem for each in check_archives(paths)]
    assert ["", "needs the file that ends with entry 6 of acme"] == [
        each.problem for each in check_archives([paths[0], paths[2]])
    ]
    lines = paths[1].read_text().splitlines(keepends=True)
    forged = json.loads(lines[0]) | {"information": 1000}
    paths[1].write_text("".join([json.dumps(forged) + "\n", *lines[1:]]))
    assert ["", "has entries that do not have its digest", ""] == [
        each.problem for each in check_archives(paths)
    ]
    paths[1].write_text("".join(lines[:-1]))
    (other := tmp_path / "other").write_text('{"entries": 3}')
    assert ["is no archive, or not a whole one", "has a line that is no entry"] == [
        each.problem for each in check_archives([paths[1], other])
    ]
    assert "cannot be read: No such file or directory" == check_archives([tmp_path / "none"])[0].problem


async def test_what_is_older_than_archives_keep_it_leaves_them(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """The digest goes on from the line that is left, and neither younger entries nor other roots' are touched."""
    paths = []
    for name in "abc":
        await play(any_store, name)
        paths.append(await archived(any_store, tmp_path))
        clock.step(days=10)
    other = tmp_path / paths[0].name.replace("acme", "other")
    other.write_bytes(paths[0].read_bytes())
    # One that was written for another root, or cut off, says so to who verifies it.
    for name, text in (("acme.1-3.0.jsonl", "{"), ("acme.1-1.0.jsonl", '{"account": ["x"], "time": 0}\n')):
        (tmp_path / name).write_text(text + last_line(1, "0"))
    before = {each: each.read_bytes() for each in files_in(tmp_path)}
    for days, count in ((30, 0), (29, 1), (29, 0)):
        assert count == await empty_old(any_store, "acme", tmp_path, days)
    left = read_archive(paths[0])
    assert (left.is_emptied, left.root, left.last) == (True, "acme", 3)
    assert last_line(3, left.digest, "acme") == paths[0].read_text()
    assert before.keys() - {paths[0]} == {each for each in before if each.read_bytes() == before[each]}
    await play(any_store, "d")
    paths.append(await archived(any_store, tmp_path))
    assert 2 == await empty_old(any_store, "acme", tmp_path, 5)
    assert ["", "", "", ""] == [each.problem for each in check_archives(paths)]
    paths[2].write_text(last_line(9, left.digest, "acme"))
    assert "has entries that do not have its digest" == check_archives(paths)[-1].problem
    paths[2].write_text(last_line(0, "", "acme"))
    assert "is no archive, or not a whole one" == check_archives(paths)[2].problem


async def test_what_others_go_on_from_or_was_changed_stays(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """After a crash within the removal a file begins in the midst of the one before; both go when both are old."""
    await play(any_store, "a", 5)
    first = await archived(any_store, tmp_path)
    lines = first.read_text().splitlines(keepends=True)
    # As if it had been ended after two entries.
    later = tmp_path / first.name.replace(".1-5.", ".3-6.")
    clock.step(days=10)
    await play(any_store, "b", 1)
    second = await archived(any_store, tmp_path)
    later.write_text("".join(lines[2:5]) + second.read_text())
    second.unlink()
    files = [first, later]
    assert 0 == await empty_old(any_store, "acme", tmp_path, 5)
    assert ["", ""] == [each.problem for each in check_archives(files)]
    clock.step(days=10)
    assert 2 == await empty_old(any_store, "acme", tmp_path, 5)
    assert ["", ""] == [each.problem for each in check_archives(files)]
    first.write_text("".join([lines[0].replace('"calls": 1', '"calls": 0'), *lines[1:]]))
    assert 0 == await empty_old(any_store, "acme", tmp_path, 5)
    first.unlink()
    # One of which the file before is elsewhere goes too.
    later.write_text("".join(lines[2:]))
    assert 1 == await empty_old(any_store, "acme", tmp_path, 5)


async def test_an_administrator_seals_and_what_is_old_goes(tmp_path: Path, clock: SteppedClock) -> None:
    """As the configuration in force says, also when there is nothing new to archive."""
    configuration = CONFIGURATION.model_copy(update={"administration": Administration(archive_days=7)})
    settings, folder = LiveSettings(Settings(configuration)), tmp_path / "archive"
    folder.mkdir()
    async with (
        closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store,
        administering(Ledger(store), settings, "127.0.0.1:0", folder) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        asked = pb.SealJournalRequest(account={"path": ["acme"]}, archive=True)
        await play(store, "a")
        assert 0 == (await stub.SealJournal(asked)).emptied
        clock.step(days=8)
        later = await stub.SealJournal(asked)
        assert ("", 1) == (later.archive, later.emptied)


async def test_the_administrator_is_told_which_entries_differ(tmp_path: Path, clock: SteppedClock) -> None:
    """By their positions; and which archive has to be put back."""
    path, folder = tmp_path / "ledger.db", tmp_path / "archive"
    folder.mkdir()
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, "a")
        await make_checkpoint(store, "acme")
    run(path, *FORGE)
    asked = pb.SealJournalRequest(account={"path": ["acme"]}, archive=True)
    async with (
        closing(SqliteStore.open(path, clock)) as store,
        administering(Ledger(store), SETTINGS, "127.0.0.1:0", folder) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        error = await failure(stub.SealJournal(asked))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "LEDGER_DIFFERS") == (error.code, error.info.reason)
        assert error.info.metadata == {"first_position": "1", "last_position": "3"}
        await store.drop_checkpointed("acme", 3)
        await play(store, "b")
        error = await failure(stub.SealJournal(asked))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "ARCHIVE_MISSING") == (error.code, error.info.reason)
        assert error.info.metadata == {"entries": "3"}


@pytest.mark.parametrize("root", ["ä" * 64, "東" * 42, "a" * 128], ids=["2 bytes", "3 bytes", "1 byte"])
async def test_the_longest_name_of_a_root_can_be_archived(
    any_store: Store, tmp_path: Path, root: str
) -> None:
    """Escaped it is longer than the name of a file; its files are found again, and none of a root like it."""
    folder, other = tmp_path / "archive", Account((root[:-1] + "b",))
    folder.mkdir()
    for name in ("a", "b"):
        for account in (Account((root,)), other):
            asked = charge(f"{name}{account.root}", Cost(1, 1), account=account, on=levels(account))
            await any_store.apply(*asked)
        for account in (Account((root,)), other):
            await make_checkpoint(any_store, account.root)
            assert await archive(any_store, account.root, folder) is not None
    checked = check_archives(files_in(folder))
    assert ([root, root, other.root, other.root], {""}) == (
        sorted((each.archive.root for each in checked if each.archive), key=[root, other.root].index),
        {each.problem for each in checked},
    )


async def test_what_is_archived_while_it_is_verified_is_no_difference(
    any_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is compared again from the checkpoint that was made meanwhile."""
    await play(any_store, "a")
    read, reads = any_store.checkpoint, iter(range(1000))

    async def read_and_archived(root: str, levels_: Any = None) -> Checkpoint:
        found = await read(root, levels_)
        if next(reads) == 0:
            await archived(any_store, tmp_path)
        return found

    monkeypatch.setattr(any_store, "checkpoint", read_and_archived)
    await verify(any_store, "acme", found := Verification())
    assert (found.different, found.balances > 0) == (0, True)


async def test_an_archive_that_cannot_be_written_says_why(clock: SteppedClock, tmp_path: Path) -> None:
    """The folder is gone: that is no fault of the service, and the journal stays."""
    store, folder = MemoryStore(clock), tmp_path / "gone"
    await play(store, "a")
    async with (
        administering(Ledger(store), SETTINGS, "127.0.0.1:0", folder) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        request = pb.SealJournalRequest(account={"path": ["acme"]}, archive=True)
        error = await failure(stub.SealJournal(request))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "ARCHIVE_UNWRITABLE") == (error.code, error.info.reason)
    assert "No such file or directory" in error.message
    assert len(await store.journal("acme", "", "", 10)) == 3
