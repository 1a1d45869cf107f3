"""A journal that is exported while the ledger is in use, in the form that archives have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc
from msgspec import structs

from budget_service.ledger.account_states import FORGOTTEN
from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.pseudonyms import NameRow
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, Cost
from budget_service.server import exports
from budget_service.server.archives import check_archives, last_line
from budget_service.server.checkpoints import archive, make_checkpoint
from budget_service.server.exports import parts_of
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import administering
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.stores.named_store import NamedStore
from budget_service.tuning import Tuning
from tests.budget.limit_settings import SETTINGS
from tests.budget.memory_store import MemoryStore
from tests.support.budget_client import failure
from tests.support.budget_samples import SteppedClock, charge, levels, limit

ON = levels(own=limit(100, 100, days=3), above=limit(1000, 1000))
SMALL = Tuning(journal_page=2)


async def charged(store: Store, *names: str) -> None:
    """Charge for each name."""
    for name in names:
        await store.apply(*charge(name, Cost(1, 1), on=ON, release_id=name))


async def exported(store: Store, path: Path) -> pb.JournalEnd:
    """Write an export of the root to a file as an archive is; return what was said of its end."""
    text, end = "", pb.JournalEnd()
    async for part in parts_of(NamedStore(store), "acme", "dns:ops", SMALL):
        text, end = text + part.lines, part.end
    write(path, text + last_line(end.entries, end.digest))
    return end


def write(path: Path, text: str) -> None:
    """Write a file."""
    path.write_text(text)


async def test_an_export_is_what_the_archive_would_be(any_store: Store, tmp_path: Path) -> None:
    """The same bytes, up to a checkpoint; what comes later goes on from there."""
    await charged(any_store, "a", "b", "c")
    checkpointed = await make_checkpoint(any_store, "acme")
    end = await exported(any_store, tmp_path / "export.jsonl")
    assert (3, checkpointed.digest, 3, checkpointed.digest, "dns:ops") == (
        end.entries,
        end.digest,
        end.checkpoint_entries,
        end.checkpoint_digest,
        end.actor,
    )
    path = await archive(any_store, "acme", tmp_path)
    assert path is not None
    assert path.read_bytes() == (tmp_path / "export.jsonl").read_bytes()
    nothing = await exported(any_store, tmp_path / "nothing.jsonl")
    assert (3, checkpointed.digest, "") == (nothing.entries, nothing.digest, nothing.position)
    await charged(any_store, "d")
    assert 4 == (await exported(any_store, tmp_path / "later.jsonl")).entries
    assert ["", ""] == [each.problem for each in check_archives([path, tmp_path / "later.jsonl"])]


async def test_what_is_archived_in_part_is_numbered_by_the_checkpoint(
    any_store: Store, tmp_path: Path
) -> None:
    """After a crash, and where a checkpoint was made after the last archive."""
    await charged(any_store, "a", "b", "c")
    await make_checkpoint(any_store, "acme")
    whole = await exported(any_store, tmp_path / "whole.jsonl")
    await any_store.drop_checkpointed("acme", 2)
    rest = await exported(any_store, tmp_path / "rest.jsonl")
    assert (whole.entries, whole.digest) == (rest.entries, rest.digest)
    checked = check_archives([tmp_path / "whole.jsonl", tmp_path / "rest.jsonl"])
    assert [(1, 3, ""), (3, 3, "")] == [
        (each.archive.first, each.archive.last, each.problem) for each in checked if each.archive
    ]


async def test_where_all_is_archived_every_name_is_sent_some_at_a_time(
    any_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But that of who is forgotten, whose row may still be there, and names below theirs."""
    monkeypatch.setattr(exports, "NAMES_AT_ONCE", 3)
    named = NamedStore(any_store)
    for number in range(10):
        account = Account(("acme", f"u{number}"))
        await named.store.apply(*charge(f"{number}", Cost(1, 1), account=account, on=levels(account)))
    ((gone),) = await any_store.named("acme", ("acme/u3",))
    below = [NameRow.made(name, bytes(16)) for name in ("acme/u3/x", "acme/u3//sub:u3", "acme/u30")]
    await any_store.add_names("acme", below)

    async def sent() -> list[list[str]]:
        parts = [part async for part in parts_of(named, "acme", "dns:ops", SMALL)]
        return [
            [json.loads(line)["name"] for line in part.names.splitlines()] for part in parts if part.names
        ]

    assert 10 == sum(map(len, await sent()))
    await make_checkpoint(any_store, "acme")
    await archive(any_store, "acme", tmp_path)
    assert 13 == sum(map(len, await sent()))
    states, stored = {Account(("acme", gone.id)): FORGOTTEN}, await any_store.all_limits("acme")
    forgotten = structs.replace(stored, states=states)

    async def all_limits(_: str) -> StoredLimits:
        return forgotten

    monkeypatch.setattr(any_store, "all_limits", all_limits)
    found = await sent()
    assert max(map(len, found)) <= 3
    expected = sorted(f"acme/u{number}" for number in (*range(10), 30) if number != 3)
    assert expected == sorted(name for names in found for name in names)


@pytest.mark.parametrize("checkpointed_before", [False, True])
async def test_entries_that_are_archived_meanwhile_are_no_gap(
    clock: SteppedClock, tmp_path: Path, checkpointed_before: bool
) -> None:
    """The export fails at its end; another one gets what is left."""

    class Archiving(MemoryStore):
        is_archived = False

        async def journal(
            self, root: str, after: str, until: str, most: int
        ) -> list[tuple[str, JournalEntry]]:
            page = await super().journal(root, after, until, most)
            if after and not self.is_archived:
                self.is_archived = True
                await make_checkpoint(self, root)
                await archive(self, root, tmp_path)
            return page

    await charged(store := Archiving(clock), "a", "b", "c", "d", "e")
    if checkpointed_before:
        store.is_archived = True
        await make_checkpoint(store, "acme")
        store.is_archived = False
    with pytest.raises(StoreUnavailableError, match="archived while they were exported"):
        await exported(store, tmp_path / "gap.jsonl")
    assert 5 == (await exported(store, tmp_path / "again.jsonl")).entries


async def test_an_export_ends_with_the_newest_entry_of_when_it_began(
    clock: SteppedClock, tmp_path: Path
) -> None:
    """Else it would never end where charges come faster than they are read."""

    class Busy(MemoryStore):
        async def journal(
            self, root: str, after: str, until: str, most: int
        ) -> list[tuple[str, JournalEntry]]:
            await charged(self, f"later {after} {until} {most}")
            return await super().journal(root, after, until, most)

    await charged(store := Busy(clock), "a", "b", "c")
    assert 3 == (await exported(store, tmp_path / "export.jsonl")).entries


async def test_the_administrator_exports_one_root_or_all(clock: SteppedClock) -> None:
    """The answer is a stream; a damaged or unknown name is refused in the words of other methods."""
    store = MemoryStore(clock)
    await charged(store, "a", "b")
    await store.apply(*charge("c", Cost(1, 1), account=Account(("other", "eve"))))
    async with (
        administering(store, SETTINGS, "127.0.0.1:0", detector=FailureDetector(store)) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        found = [each async for each in stub.ExportJournal(pb.ExportJournalRequest())]
        one = [each async for each in stub.ExportJournal(pb.ExportJournalRequest(account={"path": ["acme"]}))]
        leaf = stub.ExportJournal(pb.ExportJournalRequest(account={"path": ["acme", "ann"]}))
        error = await failure(_read(leaf))
    assert [("acme", 2), ("acme", 0), ("other", 1), ("other", 0)] == [
        (each.root, each.lines.count("\n")) for each in found
    ]
    assert one == found[:2]
    assert "unauthenticated" == found[1].end.actor
    assert ("account.path",) == error.fields


async def _read(parts: Any) -> None:
    async for _ in parts:
        raise AssertionError("a part was sent")
