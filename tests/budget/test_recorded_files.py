"""A file by which services decide is recorded: in each journal, once, and by who was authenticated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2
from msgspec.structs import replace

from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.server.archives import check_archives
from budget_service.server.checkpoints import archive, make_checkpoint
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import administering
from budget_service.stores.interface import Store
from tests.budget.limit_settings import SETTINGS
from tests.budget.memory_store import MemoryStore
from tests.support.budget_client import failure
from tests.support.budget_samples import SteppedClock, charge, levels

OTHER = Account(("other",))
DIGEST = "0f" * 32
TEXT = f"policy:{DIGEST}:policy.yaml"


def recording(root: str = "", **fields: Any) -> pb.RecordFileRequest:
    """Return a request to record a policy."""
    file = pb.RecordedFile(**({"kind": "policy", "name": "policy.yaml", "sha256": DIGEST} | fields))
    account = budget_pb2.Account(path=[root]) if root else None
    return pb.RecordFileRequest(account=account, file=file, request_id="file", reason="reviewed")


@asynccontextmanager
async def served(store: Store) -> AsyncIterator[Any]:
    """Serve the administrator and give a stub."""
    async with (
        administering(store, SETTINGS, "127.0.0.1:0", detector=FailureDetector(store)) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield admin_pb2_grpc.BudgetAdminServiceStub(channel)


async def files_of(store: Store, root: str) -> list[JournalEntry]:
    """Return the entries of files."""
    return [entry for _, entry in await store.journal(root, "", "", 99) if entry.kind is EntryKind.FILE]


async def test_a_file_is_recorded_once_in_every_journal(
    any_store: Store, by_names: Store, tmp_path: Path
) -> None:
    """It changes no limit, and is in what is verified, listed and archived; who retries finds those that have it."""
    await by_names.apply(*charge("a", Cost(1, 1)))
    async with served(any_store) as stub:
        first = await stub.RecordFile(recording("acme"))
        # A root came meanwhile, or the first attempt got no further.
        await by_names.apply(*charge("b", Cost(1, 1), account=OTHER, on=levels(OTHER)))
        version = (await any_store.all_limits("acme")).version
        both, again = [await stub.RecordFile(recording()) for _ in range(2)]
        listed = (await stub.ListCharges(pb.ListChargesRequest(account={"path": ["other"]}))).charges
        verified = await stub.VerifyLedger(pb.VerifyLedgerRequest())
    assert [(1, False), (2, False), (2, True)] == [
        (each.journals, each.replayed) for each in (first, both, again)
    ]
    for root in ("acme", "other"):
        (entry,) = await files_of(any_store, root)
        said = (entry.account.path, entry.actor, entry.reason, entry.change, entry.holds)
        assert ((root,), "unauthenticated", "reviewed", TEXT, ()) == said
        await make_checkpoint(any_store, root)
        assert "" == check_archives([await archive(any_store, root, tmp_path) or Path()])[0].problem
    assert (version, 0) == ((await any_store.all_limits("acme")).version, verified.different)
    assert (pb.CHARGE_KIND_FILE, recording().file) == (listed[-1].kind, listed[-1].file)


async def test_what_cannot_be_a_file_is_refused_by_field(clock: SteppedClock) -> None:
    """And so is a root that is not there, or none at all: nothing is written."""
    store = MemoryStore(clock)
    async with served(store) as stub:
        for request, whose in ((recording(), "journal yet"), (recording("acme"), "journal of acme yet")):
            refused = await failure(stub.RecordFile(request))
            assert "ACCOUNT_UNKNOWN" == refused.info.reason
            assert whose in refused.message
            assert "first charge or stored limit; record again then" in refused.message
        await store.apply(*charge("a", Cost(1, 1)))
        for field, wrong in (
            ("kind", "Policy"), ("kind", ""), ("sha256", DIGEST.upper()), ("sha256", DIGEST[1:]), ("sha256", ""),
            ("name", "etc/policy.yaml"), ("name", ""), ("name", "x" * 129), ("name", "a:b"), ("name", "a\n"),
        ):  # fmt: skip
            error = await failure(stub.RecordFile(recording(**{field: wrong})))
            assert (grpc.StatusCode.INVALID_ARGUMENT, True) == (
                error.code,
                error.message.startswith(f"file.{field} must "),
            )
        assert (await failure(stub.RecordFile(recording("acme/x")))).code is grpc.StatusCode.INVALID_ARGUMENT
        await stub.RecordFile(recording())
        reused = await failure(stub.RecordFile(recording(name="other.yaml")))
    assert "REQUEST_ID_REUSED" == reused.info.reason
    assert [TEXT] == [each.change for each in await files_of(store, "acme")]


@pytest.mark.parametrize("change", ["", "policy", f"policy:{DIGEST}", f"policy:{DIGEST}:a/b", f"{TEXT}\n"])
def test_an_entry_without_its_file_is_none(change: str) -> None:
    """Somebody has changed the store."""
    entry = JournalEntry(
        kind=EntryKind.FILE,
        account=OTHER,
        cost=NOTHING,
        unit_id="",
        request_id="r",
        release_id="",
        query_id="",
        time=1,
        holds=(),
        actor="ops",
        change=TEXT,
    )
    require_well_formed(entry)
    with pytest.raises(ValueError, match=r"must|values to unpack"):
        require_well_formed(replace(entry, change=change))
