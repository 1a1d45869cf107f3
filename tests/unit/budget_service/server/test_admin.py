"""The administrator's service over every store: limits, listings, usage, verification."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import pytest
import pytest_asyncio
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2
from redis.asyncio import Redis

from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.values import Account, Cost, LevelLimit
from budget_service.ledger.windows import DAY, Period
from budget_service.server.audit import Verification, verify
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.server.responses import timestamp
from budget_service.stores.interface import Store, StoreUnusableError
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import DEFAULTS, Tuning
from tests.support.budget_client import account as named
from tests.support.budget_client import failure
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    OTHER_UNIT,
    UNIT,
    SteppedClock,
    charge,
    limit,
    reserve,
)
from tests.support.ledger_stores import UNHURRIED, closing, empty
from tests.support.redis_server import RedisServer
from tests.unit.budget_service.limit_settings import SETTINGS
from tests.unit.budget_service.memory_store import MemoryStore

AdminStub: TypeAlias = "admin_pb2_grpc.BudgetAdminServiceAsyncStub"

BOTH = (LevelLimit(COMPANY, limit(10**6, 10**6)), LevelLimit(ANALYST, limit(10**6, 10**6, days=3)))
MONTH = pb.Limit(information=7, calls=3, mode=budget_pb2.MODE_ENFORCE, period=pb.PERIOD_MONTH)


HIDDEN = Account((*COMPANY.path, "ann\ufe0f"))


@pytest_asyncio.fixture
async def admin(any_store: Store, tuning: Tuning) -> AsyncIterator[AdminStub]:
    """Serve the administrator for each store."""
    async with (
        administering(Ledger(any_store), SETTINGS, "127.0.0.1:0", tuning=tuning) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        yield stub


def setting(*changes: pb.LimitChange, request_id: str = "s") -> pb.SetLimitsRequest:
    """Return a request to set limits."""
    return pb.SetLimitsRequest(changes=changes, request_id=request_id)


async def test_limits_are_set_removed_and_replayed(admin: AdminStub, any_store: Store) -> None:
    """Each change has a number of its own; a repeat is marked and changes nothing."""
    sliding = pb.Limit(
        information=1, mode=budget_pb2.MODE_TRACK, period=pb.PERIOD_SLIDING, sliding_days=7, zone="Asia/Tokyo"
    )
    change = setting(
        pb.LimitChange(path=ANALYST.path, limit=MONTH), pb.LimitChange(path=COMPANY.path, limit=sliding)
    )
    version = (await admin.SetLimits(change)).version
    assert pb.SetLimitsResponse(version=version, replayed=True) == await admin.SetLimits(change)
    stored = (await any_store.limits(ANALYST)).limits
    assert limit(7, 3) == stored[ANALYST]
    assert (7, "Asia/Tokyo") == (stored[COMPANY].window.days, stored[COMPANY].window.zone)
    later = await admin.SetLimits(setting(pb.LimitChange(path=ANALYST.path), request_id="t"))
    assert 0 < version < later.version
    assert [COMPANY] == list((await any_store.limits(ANALYST)).limits)


def changed(**fields: Any) -> pb.SetLimitsRequest:
    """Return a change whose limit is wrong in one field."""
    wrong = pb.Limit()
    wrong.CopyFrom(MONTH)
    wrong.MergeFrom(pb.Limit(**fields))
    return setting(pb.LimitChange(path=["acme"], limit=wrong))


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (setting(), "changes"),
        (setting(*(pb.LimitChange(path=["acme", str(each)]) for each in range(1001))), "changes"),
        (setting(pb.LimitChange(path=["a"]), pb.LimitChange(path=["b"])), "changes"),
        (setting(pb.LimitChange(path=["a"]), pb.LimitChange(path=["a"])), "changes"),
        (setting(pb.LimitChange(path=["a/b"])), "changes[0].path[0]"),
        (setting(pb.LimitChange(path=["a", "*"], limit=pb.Limit())), "changes[0].path[1]"),
        (setting(pb.LimitChange(path=["a"]), request_id=""), "request_id"),
        (setting(pb.LimitChange(path=["a"], limit=pb.Limit())), "changes[0].limit.mode"),
        (changed(information=-1), "changes[0].limit.information"),
        (changed(calls=-1), "changes[0].limit.calls"),
        (changed(period=17), "changes[0].limit.period"),
        (changed(sliding_days=7), "changes[0].limit.sliding_days"),
        (changed(period=pb.PERIOD_SLIDING, sliding_days=1), "changes[0].limit.sliding_days"),
        (changed(period=pb.PERIOD_SLIDING, sliding_days=401), "changes[0].limit.sliding_days"),
        (changed(zone="Berlin"), "changes[0].limit.zone"),
        (changed(zone="localtime"), "changes[0].limit.zone"),
        (changed(zone="right/Europe/Berlin"), "changes[0].limit.zone"),
        (pb.ReadJournalRequest(), "under.path"),
        (pb.ReadJournalRequest(under={"path": ["a"]}, at_most=1001), "at_most"),
        (pb.ReadJournalRequest(under={"path": ["a"]}, after="first"), "after"),
        (pb.ReadJournalRequest(under={"path": ["a"]}, after="9" * 20), "after"),
        (pb.TrimJournalRequest(account={"path": ["a", "b"]}, exported="1"), "account.path"),
        (pb.TrimJournalRequest(account={"path": ["a"]}), "exported"),
        (pb.VerifyLedgerRequest(account={"path": ["a", "b"]}), "account.path"),
    ],
)
async def test_a_malformed_request_names_its_field(clock: SteppedClock, message: Any, field: str) -> None:
    """And changes nothing."""
    store = MemoryStore(clock)
    async with (
        administering(Ledger(store), SETTINGS, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        method = getattr(stub, type(message).__name__.removesuffix("Request"))
        error = await failure(method(message))
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, (field,))
    assert not store.records


async def test_a_ledger_that_was_set_back_is_read_and_not_changed(clock: SteppedClock) -> None:
    """An administrator who repairs it has to read it; a limit that is set meanwhile would be lost with it."""

    class SetBack(MemoryStore):
        async def check(self) -> None:
            raise StoreUnusableError("this ledger was set back while it was used")

    store = SetBack(clock)
    await play(store, clock)
    ledger = Ledger(store)
    checking = asyncio.create_task(ledger.detector.keep_checking())
    await ledger.detector.changed.wait()
    root: Any = {"path": ["acme"]}
    async with (
        administering(ledger, SETTINGS, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        for call in (
            stub.SetLimits(setting(pb.LimitChange(path=["acme"], limit=MONTH))),
            stub.TrimJournal(pb.TrimJournalRequest(account=root, exported="1")),
            stub.BeginCurrency(pb.BeginCurrencyRequest(account=root, unit_id=OTHER_UNIT, request_id="b")),
            stub.ResumeClock(pb.ResumeClockRequest(account=root, request_id="c", true_time={"seconds": 1})),
        ):
            error = await failure(call)
            assert (error.code, error.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert (await stub.ReadJournal(pb.ReadJournalRequest(under=root))).entries
        assert (await stub.VerifyLedger(pb.VerifyLedgerRequest())).entries
    checking.cancel()
    await asyncio.gather(checking, return_exceptions=True)
    assert not store.stored
    assert not store.bases


async def play(store: Store, clock: SteppedClock) -> None:
    """Charge two analysts of one company on some days, and a stranger whose name begins alike."""
    for day, (account, amount) in enumerate([(ANALYST, 3), (COLLEAGUE, 5), (ANALYST, 4), (ANALYST, 2)]):
        on = (BOTH[0], LevelLimit(account, BOTH[1].limit))
        cost = Cost(amount, 1)
        ids = {"release_id": f"r{day}", "query_id": f"q{day}"}
        await store.apply(*charge(f"c{day}", cost, account=account, on=on, **ids))
        clock.step(days=1)
    await store.apply(*charge("s", Cost(9, 5), account=Account(("acme0", "eve"))))


async def test_the_journal_of_an_account_is_read_page_by_page(
    admin: AdminStub, any_store: Store, clock: SteppedClock
) -> None:
    """In order and each entry once, with everything the journal says; a page may have none of the account."""
    await play(any_store, clock)
    asked = pb.ReadJournalRequest(under={"path": ["acme"]}, at_most=3)
    first = await admin.ReadJournal(asked)
    asked.after = first.last
    second = await admin.ReadJournal(asked)
    assert [["c0", "c1", "c2"], ["c3"]] == [[each.request_id for each in p.entries] for p in (first, second)]
    assert [False, True] == [first.is_end, second.is_end]
    entry = first.entries[1]
    assert (list(COLLEAGUE.path), "r1", "q1") == (list(entry.account.path), entry.release_id, entry.query_id)
    assert (5, 1, UNIT) == (entry.cost.information, entry.cost.calls, entry.cost.unit_id)
    assert (pb.CHARGE_KIND_DIRECT, timestamp(NOON + DAY)) == (entry.kind, entry.time)
    of_one = pb.ReadJournalRequest(under={"path": COLLEAGUE.path}, at_most=1)
    page = await admin.ReadJournal(of_one)
    assert (0, False) == (len(page.entries), page.is_end)
    of_one.after = page.last
    assert ["c1"] == [each.request_id for each in (await admin.ReadJournal(of_one)).entries]
    # At the end, it goes on from there when there is more.
    asked.after = second.last
    end = await admin.ReadJournal(asked)
    assert (second.last, True) == (end.last, end.is_end)


@pytest.mark.parametrize("tuning", [replace(UNHURRIED, journal_page=1)])
async def test_a_ledger_that_is_whole_is_verified(
    admin: AdminStub, any_store: Store, clock: SteppedClock
) -> None:
    """Every root, or one; in pages of one balance and one entry."""
    await play(any_store, clock)
    await any_store.apply(*reserve("r", Cost(2, 2), on=BOTH))
    whole = await admin.VerifyLedger(pb.VerifyLedgerRequest())
    assert pb.VerifyLedgerResponse(entries=5, balances=5) == whole
    one = await admin.VerifyLedger(pb.VerifyLedgerRequest(account={"path": ["acme"]}))
    assert pb.VerifyLedgerResponse(entries=4, balances=3) == one


async def differences(store: Store, tuning: Tuning = DEFAULTS) -> set[tuple[str, str, str, int, int]]:
    """Return what a verification of the root finds."""
    found = Verification()
    await verify(store, "acme", found, tuning)
    assert found.different == len(found.differences)
    return {
        (each.level.text, each.unit.value if each.unit else "", each.sum.value, each.kept, each.rebuilt)
        for each in found.differences
    }


TAMPERED = {
    ("acme/ann", "information", "spent", 4, 6),
    ("acme/ann", "calls", "reserved", 9, 2),
    ("acme/bob", "information", "spent", 0, 5),
    ("acme/bob", "calls", "spent", 0, 1),
}


async def test_a_tampered_balance_in_sqlite_is_found(tmp_path: Path, clock: SteppedClock) -> None:
    """A sum that was lowered, a hold that was raised, a balance that is gone."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, clock)
        clock.now -= DAY
        await store.apply(*reserve("r", Cost(2, 2), on=BOTH))
        assert await differences(store) == set()
    tamper = [
        "UPDATE rows SET text = json_set(text, '$[3][0]', json_extract(text, '$[3][0]') - 2) "
        "WHERE key = 'balances\tacme/ann'",
        "UPDATE rows SET text = json_set(text, '$[4][1]', 9) WHERE key = 'balances\tacme/ann'",
        "DELETE FROM rows WHERE key = 'balances\tacme/bob'",
    ]
    run(path, *tamper)
    async with closing(SqliteStore.open(path, clock)) as store:
        assert await differences(store) == TAMPERED


async def test_a_balance_that_was_set_back_to_an_older_window_is_found(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """As a half restored file would have it: what was charged in the newer window is missing."""
    path, on = tmp_path / "ledger.db", (BOTH[0],)
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("a", Cost(3, 1), account=COMPANY, on=on))
    run(path, "CREATE TABLE old AS SELECT * FROM rows WHERE key LIKE 'balances%'")
    async with closing(SqliteStore.open(path, clock)) as store:
        clock.step(days=30)
        await store.apply(*charge("b", Cost(2, 1), account=COMPANY, on=on))
        assert await differences(store) == set()
    run(path, "INSERT OR REPLACE INTO rows SELECT * FROM old", "DROP TABLE old")
    async with closing(SqliteStore.open(path, clock)) as store:
        # By the days, the newer charge belongs to the last one that is kept.
        expected = {("acme", "information", "spent", 3, 5), ("acme", "calls", "spent", 1, 2)}
        assert await differences(store) == expected


def run(path: Path, *statements: str) -> None:
    """Do something to a ledger by hand."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


async def test_a_tampered_balance_in_redis_is_found(shared_redis: RedisServer, clock: SteppedClock) -> None:
    """The same as in SQLite."""
    await empty(shared_redis.address)
    client: Any = Redis.from_url(shared_redis.address, decode_responses=True)
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        await play(store, clock)
        clock.now -= DAY
        await store.apply(*reserve("r", Cost(2, 2), on=BOTH))
        assert await differences(store) == set()
        balance = json.loads(await client.get("gris:{acme}:row:balances\tacme/ann"))
        spent, reserved = balance[3:5]
        spent[0], reserved[1] = spent[0] - 2, 9
        await client.set("gris:{acme}:row:balances\tacme/ann", json.dumps(balance))
        await client.delete("gris:{acme}:row:balances\tacme/bob")
        await client.zrem("gris:{acme}:names", "balances\tacme/bob")
        assert await differences(store) == TAMPERED
    await client.aclose()


@pytest.mark.slow
async def test_a_ledger_is_verified_while_it_is_charged(any_store: Store) -> None:
    """A verification between charges, with new levels all the time, finds nothing wrong."""

    async def charging() -> None:
        for index in range(60):
            account = Account(("acme", f"{59 - index:02}"))
            on = (BOTH[0], LevelLimit(account, BOTH[1].limit))
            await any_store.apply(*charge(f"c{index}", Cost(1, 1), account=account, on=on))
            await asyncio.sleep(0)

    task = asyncio.create_task(charging())
    while not task.done():
        assert await differences(any_store, Tuning(journal_page=2)) == set()
        await asyncio.sleep(0)
    await task


async def test_a_currency_is_planned_listed_shown_and_withdrawn(admin: AdminStub, any_store: Store) -> None:
    """By the windows of the configuration and of stored limits; a repeat is marked."""
    asked = pb.BeginCurrencyRequest(account=named(("acme",)), unit_id=OTHER_UNIT, request_id="c")
    planned = await admin.BeginCurrency(asked)
    assert (planned.begins_at.ToDatetime(tzinfo=UTC), planned.replayed) == (
        datetime(2026, 11, 1, tzinfo=UTC),
        False,
    )
    again = await admin.BeginCurrency(asked)
    assert (again.begins_at, again.replayed) == (planned.begins_at, True)
    (entry,) = (await admin.ReadJournal(pb.ReadJournalRequest(under=named(("acme",))))).entries
    assert (entry.kind, entry.cost.unit_id) == (pb.CHARGE_KIND_CURRENCY, OTHER_UNIT)
    withdrawn = await admin.BeginCurrency(pb.BeginCurrencyRequest(account=named(("acme",)), request_id="w"))
    assert (False, False) == (withdrawn.replayed, withdrawn.HasField("begins_at"))
    error = await failure(
        admin.BeginCurrency(pb.BeginCurrencyRequest(account=named(("acme",)), request_id="x"))
    )
    assert (grpc.StatusCode.FAILED_PRECONDITION, "NO_CURRENCY_PLANNED") == (error.code, error.info.reason)
    never = limit(9, 9, period=Period.NEVER)
    await any_store.apply(
        SetLimits(actor="ops", account=COMPANY, request_id="s", changes=((COLLEAGUE, never),)), NO_LIMITS
    )
    refused = await failure(
        admin.BeginCurrency(
            pb.BeginCurrencyRequest(account=named(("acme",)), unit_id=OTHER_UNIT, request_id="d")
        )
    )
    assert (grpc.StatusCode.FAILED_PRECONDITION, "WINDOW_NEVER_ENDS") == (refused.code, refused.info.reason)


@pytest.mark.parametrize(
    ("path", "unit_id", "request_id", "field"),
    [
        (("acme", "ann"), OTHER_UNIT, "c", "account.path"),
        (("acme",), "F" * 32, "c", "unit_id"),
        (("acme",), OTHER_UNIT, "", "request_id"),
    ],
)
async def test_a_currency_that_cannot_be_planned_is_refused_by_field(
    admin: AdminStub, path: tuple[str, ...], unit_id: str, request_id: str, field: str
) -> None:
    """A leaf, a name that is none, no id."""
    asked = pb.BeginCurrencyRequest(account=named(path), unit_id=unit_id, request_id=request_id)
    assert (await failure(admin.BeginCurrency(asked))).fields == (field,)


async def test_a_root_that_nothing_limits_has_no_currency(admin: AdminStub) -> None:
    """It is not an account."""
    asked = pb.BeginCurrencyRequest(account=named(("nobody",)), unit_id=OTHER_UNIT, request_id="c")
    assert (await failure(admin.BeginCurrency(asked))).code is grpc.StatusCode.NOT_FOUND


async def test_an_account_of_earlier_versions_keeps_its_journal_whatever_it_is_called(
    admin: AdminStub, any_store: Store
) -> None:
    """A name that no new account may have: its charges are listed, and its limits can be changed."""
    change = pb.LimitChange(path=HIDDEN.path, limit=MONTH)
    error = await failure(admin.SetLimits(pb.SetLimitsRequest(changes=[change], request_id="new")))
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("changes[0].path[1]",))
    levels = (BOTH[0], LevelLimit(HIDDEN, limit(10, 10)))
    await any_store.apply(charge("old", Cost(1, 1), account=HIDDEN).request, AppliedLimits(levels))
    listed = await admin.ReadJournal(pb.ReadJournalRequest(under=named(HIDDEN.path)))
    assert [list(each.account.path) for each in listed.entries] == [list(HIDDEN.path)]
    assert (await admin.VerifyLedger(pb.VerifyLedgerRequest())).different == 0
    await any_store.apply(
        SetLimits(actor="ops", account=COMPANY, request_id="s", changes=((HIDDEN, levels[1].limit),)),
        NO_LIMITS,
    )
    await admin.SetLimits(pb.SetLimitsRequest(changes=[change], request_id="changed"))
