"""An account is forgotten: its names go, its charges stay, and nobody gets a budget twice by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.account_states import FORGOTTEN
from budget_service.ledger.pseudonyms import NameRow, ids_in
from budget_service.ledger.values import Account
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import administering, serving
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.stores.named_store import NamedStore
from budget_service.stores.sqlite import names as sqlite_names
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_client import cancelling, charging, connected, cost, failure, reserving
from tests.support.budget_samples import SteppedClock

CONFIGURATION = Configuration.model_validate(
    {
        "create_at_first_use": True,
        "accounts": [
            {"path": ["acme"], "limit": {"information": 100, "calls": 50}, "window": "never"},
            {"path": ["acme", "team", "*"], "limit": {"information": 9, "calls": 5}, "window": "day"},
            {"path": ["acme", "once"], "limit": {"information": 9, "calls": 5}, "window": "never"},
            {"path": ["acme", "u-new"], "limit": {"information": 9, "calls": 5}, "window": "day"},
            {"path": ["acme", "*"], "limit": {"information": 10, "calls": 5}, "window": "month"},
        ],
    }
)
LEAVER, NEW = ("acme", "Zo\u00eb-4711"), ("acme", "u-new")
BELOW = ("acme", "team", "u-1")
ASKER = "sub:zo\u00eb@example.org"


@dataclass(frozen=True)
class Ledger:
    """The services on a store, and the store by ids."""

    budget: Any
    admin: Any
    store: Store

    async def closed(self, *path: str) -> None:
        """Close an account."""
        await self.admin.CloseAccount(
            pb.CloseAccountRequest(account=named(path), reason="left", request_id=f"close {len(path[-1])}")
        )

    async def moved(self, source: tuple[str, ...], target: tuple[str, ...]) -> None:
        """Give an account another name."""
        await self.admin.MoveAccount(
            pb.MoveAccountRequest(
                account=named(source), target=named(target), reason="new ids", request_id="move"
            )
        )

    async def forgotten(self, *path: str, id_: str = "forget") -> pb.ForgetAccountResponse:
        """Forget an account."""
        found: pb.ForgetAccountResponse = await self.admin.ForgetAccount(forgetting(*path, id_=id_))
        return found

    async def refused(self, *path: str, id_: str = "forget") -> str:
        """Return why an account is not forgotten."""
        error = await failure(self.admin.ForgetAccount(forgetting(*path, id_=id_)))
        return str(error.info.reason)

    async def verified(self) -> list[tuple[str, list[str]]]:
        """Return what differs."""
        found = await self.admin.VerifyLedger(pb.VerifyLedgerRequest())
        return [(each.sum, list(each.path)) for each in found.differences]

    async def spent(self, *path: str) -> int:
        """Return what counts at an account's own level."""
        found = await self.budget.GetBudget(budget_pb2.GetBudgetRequest(account=named(path)))
        return int(found.levels[-1].spent.information)

    async def charge(self, *path: str, id_: str = "c", amount: int = 7) -> None:
        """Charge an account."""
        await self.budget.UpdateBudget(charging(cost(amount, 1), path, request_id=id_))

    async def entries(self) -> list[Any]:
        """Return the journal by ids."""
        return [entry for _, entry in await self.store.journal("acme", "", "", 100)]


def named(path: tuple[str, ...]) -> budget_pb2.Account:
    """Return an account as a message."""
    return budget_pb2.Account(path=path)


def forgetting(*path: str, id_: str = "forget") -> pb.ForgetAccountRequest:
    """Return a request to forget."""
    return pb.ForgetAccountRequest(account=named(path), reason="erasure 17", request_id=id_)


@pytest_asyncio.fixture
async def ledger(any_store: Store, tuning: Tuning) -> AsyncIterator[Ledger]:
    """Serve a ledger on each store."""
    async with served(any_store, tuning) as found:
        yield found


@asynccontextmanager
async def served(store: Store, tuning: Tuning) -> AsyncIterator[Ledger]:
    """Serve a ledger, as one process does."""
    settings, detector = LiveSettings(Settings(CONFIGURATION)), FailureDetector(store)
    async with (
        serving(store, settings, "127.0.0.1:0") as address,
        administering(store, settings, "127.0.0.1:0", detector=detector, tuning=tuning) as admin_address,
        connected(address) as budget,
        grpc.aio.insecure_channel(admin_address) as channel,
    ):
        yield Ledger(budget, admin_pb2_grpc.BudgetAdminServiceStub(channel), store)


async def test_who_is_forgotten_comes_again_as_somebody_new(ledger: Ledger, clock: SteppedClock) -> None:
    """When the window is over, and not before; the level above counts what it counted."""
    await ledger.charge(*LEAVER)
    assert "ACCOUNT_NOT_CLOSED" == await ledger.refused(*LEAVER)
    await ledger.closed(*LEAVER)
    assert "STILL_COUNTS" == await ledger.refused(*LEAVER, id_="too early")
    clock.step(days=31)
    assert not (await ledger.forgotten(*LEAVER)).replayed
    assert "ACCOUNT_UNKNOWN" == await ledger.refused(*LEAVER)
    assert 0 == await ledger.spent(*LEAVER)
    await ledger.charge(*LEAVER, id_="again", amount=8)
    assert [8, 15] == [await ledger.spent(*LEAVER), await ledger.spent("acme")]
    assert [] == await ledger.verified()
    kinds = [entry.kind.value for entry in await ledger.entries()]
    assert ["direct", "close", "forget", "direct"] == kinds


async def test_the_ledger_never_has_a_name(ledger: Ledger, clock: SteppedClock) -> None:
    """Of accounts, former ones and persons who ask: only rows of names have them, and then nothing has."""
    await ledger.charge(*LEAVER)
    asked = await ledger.budget.RequestLimit(
        budget_pb2.RequestLimitRequest(
            account=named(LEAVER), information=40, calls=5, reason="audit", asked_by=[ASKER], request_id="ask"
        )
    )
    (waiting,) = (await ledger.admin.ListLimitRequests(pb.ListLimitRequestsRequest())).requests
    assert (ASKER, list(LEAVER), asked.id) == (waiting.asked_by, list(waiting.account.path), waiting.id)
    await ledger.admin.ApproveLimit(
        pb.ApproveLimitRequest(account=named(LEAVER), id=asked.id, request_id="yes")
    )
    await ledger.moved(LEAVER, NEW)
    listed = (await ledger.admin.ListCharges(pb.ListChargesRequest(account=named(("acme",))))).charges
    assert [list(LEAVER)] * 4 == [list(each.account.path) for each in listed]
    assert (ASKER, list(NEW)) == (listed[1].actor, list(listed[3].moved_to.path))
    assert f"audit (asked for by {ASKER}, request {asked.id})" == listed[2].reason
    await ledger.closed(*NEW)
    clock.step(days=31)
    await ledger.forgotten(*NEW)
    kept = repr([await ledger.entries(), await ledger.store.balances("acme", "", 99)])
    kept += repr(await ledger.store.all_limits("acme"))
    ids = ids_in(" ".join(each.actor for each in await ledger.entries())) + [
        each.account.path[-1] for each in await ledger.entries()
    ]
    assert 3 == len({*ids})
    assert [] == await ledger.store.names_of("acme", ids)
    for name in (LEAVER[1], NEW[1], ASKER):
        assert name not in kept
    after = (await ledger.admin.ListCharges(pb.ListChargesRequest(account=named(("acme",))))).charges
    assert [each.account.path[1] for each in await ledger.entries()] == [
        each.account.path[1] for each in after
    ]
    assert [] == await ledger.verified()


async def test_a_former_name_is_forgotten_by_its_own_windows_too(ledger: Ledger, clock: SteppedClock) -> None:
    """What was charged under it in this month would be had twice, though the new name has only days."""
    await ledger.charge(*LEAVER)
    await ledger.moved(LEAVER, NEW)
    assert "ACCOUNT_MOVED" == await ledger.refused(*LEAVER)
    await ledger.closed(*NEW)
    clock.step(days=2)
    assert "STILL_COUNTS" == await ledger.refused(*NEW, id_="too early")
    clock.step(days=30)
    await ledger.forgotten(*NEW)
    assert ["ACCOUNT_UNKNOWN"] * 2 == [await ledger.refused(*LEAVER), await ledger.refused(*NEW)]


async def test_persons_below_an_unused_account_are_forgotten_with_the_level(ledger: Ledger) -> None:
    """Who asked for more for a team, as an account of it that was never charged."""
    asking = budget_pb2.RequestLimitRequest(account=named(BELOW), path=BELOW[:2], asked_by=[ASKER])
    asking.information, asking.calls, asking.reason, asking.request_id = 40, 5, "audit", "ask"
    await ledger.budget.RequestLimit(asking)
    assert [f"acme/team/u-1//{ASKER}"] == await ledger.store.names_below("acme", "acme/team")
    await ledger.closed("acme", "team")
    await ledger.forgotten("acme", "team")
    assert [] == await ledger.store.names_below("acme", "acme/team")
    assert [] == await ledger.verified()


async def test_who_asked_for_a_level_above_alone_is_forgotten(ledger: Ledger) -> None:
    """With a retry too; that there is no such account is said when nothing is left of it."""
    asking = budget_pb2.RequestLimitRequest(account=named(BELOW), path=BELOW[:2], asked_by=[ASKER])
    asking.information, asking.calls, asking.reason, asking.request_id = 40, 5, "audit", "ask"
    for _ in range(2):
        await ledger.budget.RequestLimit(asking)
        assert "ACCOUNT_UNKNOWN" == await ledger.refused(*BELOW)
        assert [] == await ledger.store.names_below("acme", "acme/team")


async def test_what_is_held_or_lies_below_is_not_forgotten(ledger: Ledger, clock: SteppedClock) -> None:
    """A root, a level that has accounts or had, and an account with a reservation until that ends."""
    await ledger.budget.ReserveBudget(reserving(cost(1, 1), BELOW, ttl_seconds=60))
    for path in (BELOW, ("acme", "team")):
        await ledger.closed(*path)
    error = await failure(ledger.admin.ForgetAccount(forgetting("acme")))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "account.path") == (error.code, error.fields[0])
    assert ["HAS_ACCOUNTS_BELOW", "STILL_COUNTS"] == [
        await ledger.refused("acme", "team"),
        await ledger.refused(*BELOW, id_="held"),
    ]
    clock.step(days=2)
    await ledger.charge("acme", "ends what has lapsed", amount=1)
    await ledger.forgotten(*BELOW)
    assert "HAS_ACCOUNTS_BELOW" == await ledger.refused("acme", "team", id_="still")


async def test_what_never_ends_counts_for_good_once_it_was_charged(
    ledger: Ledger, clock: SteppedClock
) -> None:
    """And not before."""
    await ledger.closed("acme", "once")
    await ledger.forgotten("acme", "once", id_="unused")
    await ledger.charge("acme", "once")
    await ledger.admin.CloseAccount(
        pb.CloseAccountRequest(account=named(("acme", "once")), reason="left", request_id="close again")
    )
    clock.step(days=4000)
    assert "STILL_COUNTS" == await ledger.refused("acme", "once")


async def test_whoever_was_interrupted_forgets_once_more(
    ledger: Ledger, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the rows are gone the account stays closed for good, and the verification says what is left."""
    await ledger.charge(*LEAVER)
    await ledger.closed(*LEAVER)
    clock.step(days=31)

    async def dies(*_: object) -> None:
        raise StoreUnavailableError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(type(ledger.store), "drop_names", dies)
        assert "STORE_UNAVAILABLE" == await ledger.refused(*LEAVER)
    reopening = pb.ReopenAccountRequest(account=named(LEAVER), reason="back", request_id="reopen")
    error = await failure(ledger.admin.ReopenAccount(reopening))
    assert "ACCOUNT_FORGOTTEN" == error.info.reason
    change = pb.LimitChange(path=[*LEAVER, "below"])
    setting = pb.SetLimitsRequest(changes=[change], reason="by mistake", request_id="limit")
    error = await failure(ledger.admin.SetLimits(setting))
    assert "ACCOUNT_FORGOTTEN" == error.info.reason
    assert [("name", list(LEAVER))] == await ledger.verified()
    error = await failure(ledger.budget.UpdateBudget(charging(cost(1, 1), LEAVER, request_id="closed")))
    assert "ACCOUNT_CLOSED" == error.info.reason
    assert (await ledger.forgotten(*LEAVER)).replayed
    await ledger.charge(*LEAVER, id_="new")
    assert [] == await ledger.verified()


async def test_rows_of_names_are_verified(ledger: Ledger) -> None:
    """One that is lost, without which an account begins anew, and one that is there again."""
    await ledger.charge(*LEAVER)
    await ledger.closed("acme", "ann")
    (ann,) = await ledger.store.named("acme", ["acme/ann"])
    await ledger.forgotten("acme", "ann")
    assert [] == await ledger.verified()
    await ledger.store.drop_names("acme", await ledger.store.named("acme", ["/".join(LEAVER)]))
    await ledger.store.add_names("acme", [ann])
    (lost,) = {entry.account.path for entry in await ledger.entries()} - {("acme", ann.id)}
    assert [("name", ["acme", "ann"]), ("name", list(lost))] == sorted(await ledger.verified())


async def test_another_process_hears_of_it(any_store: Store, tuning: Tuning, clock: SteppedClock) -> None:
    """What it remembers of the name is refused with the limits that it remembers, and looked up anew."""
    async with served(any_store, tuning) as one, served(any_store, tuning) as other:
        for each in (one, other):
            await each.charge(*LEAVER, id_=f"c{id(each)}", amount=1)
        await one.closed(*LEAVER)
        clock.step(days=31)
        await one.forgotten(*LEAVER)
        await other.charge(*LEAVER, id_="again", amount=5)
        assert [5, 5] == [await one.spent(*LEAVER), await other.spent(*LEAVER)]
        assert [] == await one.verified()


async def test_two_first_charges_at_once_are_of_one_account(any_store: Store, tuning: Tuning) -> None:
    """Whichever process is the first to hear of a name."""
    async with served(any_store, tuning) as one, served(any_store, tuning) as other:
        calls = [
            each.charge(*LEAVER, id_=f"{number} {id(each)}", amount=1)
            for number in range(2)
            for each in (one, other)
        ]
        await asyncio.gather(*calls)
        assert 4 == await one.spent(*LEAVER) == await other.spent(*LEAVER)


async def test_of_two_who_forget_at_once_neither_drops_who_comes_anew(
    any_store: Store, tuning: Tuning, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one removes the row that it has seen, and not the one that the name has got since."""
    async with served(any_store, tuning) as one, served(any_store, tuning) as other:
        await one.charge(*LEAVER)
        await one.closed(*LEAVER)
        clock.step(days=31)
        drops, decided, late = NamedStore.drop, asyncio.Event(), asyncio.Event()

        async def waits(self: NamedStore, rows: list[NameRow]) -> None:
            decided.set()
            await late.wait()
            await drops(self, rows)

        with monkeypatch.context() as patched:
            patched.setattr(NamedStore, "drop", waits)
            second = asyncio.create_task(other.forgotten(*LEAVER, id_="second"))
            await decided.wait()
            patched.setattr(NamedStore, "drop", drops)
            await one.forgotten(*LEAVER)
        await one.charge(*LEAVER, id_="new", amount=8)
        late.set()
        await second
        assert 8 == await other.spent(*LEAVER)
        assert [] == await one.verified()


async def test_nothing_is_kept_of_who_only_asked(ledger: Ledger) -> None:
    """Reading a budget, and asking in vain, makes no row of a name."""
    await ledger.spent(*LEAVER)
    asked = cancelling("0" * 32, LEAVER, "x")
    for _ in range(2):
        error = await failure(ledger.budget.ReleaseReservation(asked))
        assert "RESERVATION_OVER" == error.info.reason
    await ledger.refused(*LEAVER)
    assert [] == await ledger.store.named("acme", ["/".join(LEAVER)])
    assert [] == await ledger.store.roots() or ["acme"] == await ledger.store.roots()


async def test_what_an_interrupted_removal_has_left_goes_with_the_next(
    tmp_path: Path, clock: SteppedClock, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the row is gone by then, so that there is no such account any more."""
    store = SqliteStore.open(tmp_path / "ledger.db", clock)
    async with served(store, tuning) as ledger:
        await ledger.charge(*LEAVER)
        (row,) = await store.named("acme", ["/".join(LEAVER)])
        await ledger.closed(*LEAVER)
        clock.step(days=31)
        with monkeypatch.context() as patched:
            patched.setattr(sqlite_names, "EMPTY_LOG", "SELECT 1")
            await ledger.refused(*LEAVER)
        assert ["ledger.db-wal"] == _traces(tmp_path, row)
        assert "ACCOUNT_UNKNOWN" == await ledger.refused(*LEAVER)
        assert [] == _traces(tmp_path, row)
    await store.close()


async def test_a_ledger_in_a_file_has_no_trace(tmp_path: Path, clock: SteppedClock, tuning: Tuning) -> None:
    """Neither of the name nor of its key, in the file and its log, while it is used and after."""
    store = SqliteStore.open(tmp_path / "ledger.db", clock)
    async with served(store, tuning) as ledger:
        await ledger.charge(*LEAVER)
        await ledger.charge("acme", "stays", id_="other")
        (row,) = await store.named("acme", ["/".join(LEAVER)])
        await ledger.closed(*LEAVER)
        clock.step(days=31)
        assert _traces(tmp_path, row)
        await ledger.forgotten(*LEAVER)
        assert [] == _traces(tmp_path, row)
        states = (await NamedStore(store).all_limits("acme")).states
        assert [FORGOTTEN] == [*states.values()]
        assert [Account(("acme", row.id))] == [*states]
    await store.close()
    assert [] == _traces(tmp_path, row)


def _traces(folder: Path, row: NameRow) -> list[str]:
    needles = (LEAVER[1].encode(), row.key.encode())
    return [each.name for each in folder.iterdir() if any(needle in each.read_bytes() for needle in needles)]
