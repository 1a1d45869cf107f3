"""Held is not gone: what open reservations hold is not mixed up with what is spent, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.account_statement import check
from budget_service.ledger.outcomes import Charged, Exhausted, Held, Reserved
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Cost, Unit
from budget_service.ledger.windows import SECOND
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_client import account, cancelling, charging, cost, failure, reserving
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    UNIT,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import UNHURRIED
from tests.unit.budget_service.served import Stub, served

BOB = ("acme", "bob")


async def test_what_fits_beside_what_is_spent_is_held_and_else_exhausted(any_store: Store) -> None:
    """By one unit; a direct charge is refused as a reservation is."""
    await any_store.apply(*charge("spent", Cost(3, 1)))
    await any_store.apply(*reserve("open", Cost(4, 1)))
    for ask in (reserve, charge):
        fits = (await any_store.apply(*ask(f"fits {ask.__name__}", Cost(7, 1)))).outcome
        assert isinstance(fits, Held)
        (missing,) = fits.shortfalls
        assert (2, Unit.INFORMATION, 7, 3) == (
            missing.depth,
            missing.unit,
            missing.requested,
            missing.remaining,
        )
        too_much = (await any_store.apply(*ask(f"too much {ask.__name__}", Cost(8, 1)))).outcome
        assert isinstance(too_much, Exhausted)


async def test_a_held_refusal_is_decided_anew_under_its_id_and_leaves_nothing(
    any_store: Store, clock: SteppedClock
) -> None:
    """The same request is refused while the budget is held, and granted when it is free."""
    await any_store.apply(*reserve("open", Cost(8, 1)))
    waiting = reserve("waits", Cost(10, 1))
    for _ in range(3):
        clock.step(seconds=1)
        answer = await any_store.apply(*waiting)
        assert (isinstance(answer.outcome, Held), answer.replayed) == (True, False)
    assert await any_store.journal("acme", "", "", 10) == []
    assert await any_store.open_reservations(["acme"]) == 1
    await any_store.apply(*cancel("x", ends="open"))
    granted = await any_store.apply(*waiting)
    assert (isinstance(granted.outcome, Reserved), granted.replayed) == (True, False)
    assert (await any_store.apply(*waiting)).replayed
    assert await any_store.open_reservations(["acme"]) == 1


async def test_a_held_charge_is_charged_once_when_the_budget_is_free(any_store: Store) -> None:
    """A direct charge too may be sent again under its id."""
    await any_store.apply(*reserve("open", Cost(8, 1)))
    direct = charge("direct", Cost(9, 1), release_id="rel")
    assert isinstance((await any_store.apply(*direct)).outcome, Held)
    await any_store.apply(*cancel("x", ends="open"))
    assert isinstance((await any_store.apply(*direct)).outcome, Charged)
    assert (await any_store.apply(*direct)).replayed
    assert len(await any_store.journal("acme", "", "", 10)) == 1


async def test_a_refusal_does_not_say_what_others_hold_above(any_store: Store) -> None:
    """Anyone who compares it with what is spent would know what a colleague asks at this moment."""
    on = levels(own=limit(10, 9), above=limit(20, 9))
    theirs = levels(COLLEAGUE, own=limit(20, 9), above=limit(20, 9))
    await any_store.apply(*charge("spent", Cost(2, 1), on=on))
    await any_store.apply(*reserve("open", Cost(15, 1), account=COLLEAGUE, on=theirs))
    held = (await any_store.apply(*reserve("held", Cost(8, 1), on=on))).outcome
    assert isinstance(held, Held)
    assert [(1, 8, 18)] == [(each.depth, each.requested, each.remaining) for each in held.shortfalls]
    exhausted = (await any_store.apply(*reserve("gone", Cost(19, 1), on=on))).outcome
    assert isinstance(exhausted, Exhausted)
    assert [(1, 18), (2, 8)] == [(each.depth, each.remaining) for each in exhausted.shortfalls]


async def test_what_is_only_held_is_not_among_what_is_exhausted(any_store: Store) -> None:
    """The company is held, the analyst's calls are gone: only those are refreshed next month."""
    on = levels(own=limit(10, 1), above=limit(20, 9))
    theirs = levels(COLLEAGUE, own=limit(20, 9), above=limit(20, 9))
    await any_store.apply(*charge("spent", Cost(1, 1), on=on))
    await any_store.apply(*reserve("open", Cost(15, 1), account=COLLEAGUE, on=theirs))
    refused = (await any_store.apply(*reserve("r", Cost(8, 1), on=on))).outcome
    assert isinstance(refused, Exhausted)
    assert [(2, Unit.CALLS)] == [(each.depth, each.unit) for each in refused.shortfalls]


@pytest.mark.parametrize("tuning", [replace(UNHURRIED, expired_at_once=2)])
async def test_nobody_is_held_by_what_has_lapsed(any_store: Store, clock: SteppedClock) -> None:
    """More than one step ends: they are ended first, also if they are forfeited and the refusal stands."""
    for index in range(5):
        await any_store.apply(*reserve(f"r{index}", Cost(1, 1), forfeits=index == 0))
    clock.step(seconds=61)
    assert isinstance((await any_store.apply(*reserve("all", Cost(9, 4)))).outcome, Reserved)
    assert isinstance((await any_store.apply(*reserve("more", Cost(9, 4)))).outcome, Held)
    clock.step(seconds=61)
    assert isinstance((await any_store.apply(*reserve("again", Cost(9, 4)))).outcome, Reserved)
    found = Verification()
    await verify(any_store, ANALYST.root, found)
    assert ([], 1) == (found.differences, found.entries)


@pytest.mark.parametrize("tuning", [replace(UNHURRIED, expired_at_once=2)])
async def test_nothing_that_has_lapsed_is_shown_as_reserved(any_store: Store, clock: SteppedClock) -> None:
    """However much it is; what is forfeited is spent, what is still open is reserved, and nothing is written."""
    on = levels(own=limit(20, 9), above=limit(30, 9))
    for index in range(5):
        await any_store.apply(*reserve(f"r{index}", Cost(1, 1), on=on, forfeits=index == 4))
    await any_store.apply(*reserve("open", Cost(3, 1), on=on, ttl_seconds=600))
    clock.step(seconds=61)
    for _ in range(2):
        statement = await any_store.read(ANALYST, on)
        assert [(Cost(1, 1), Cost(3, 1))] * 2 == [(each.spent, each.reserved) for each in statement.levels]
        assert check(statement, Cost(16, 7), UNIT, ANALYST) is None
        assert isinstance(check(statement, Cost(17, 7), UNIT, ANALYST), Held)
    assert await any_store.journal(ANALYST.root, "", "", 10) == []


async def test_what_has_lapsed_is_charged_beside_a_refusal_at_the_time_it_lapsed(
    any_store: Store, clock: SteppedClock
) -> None:
    """A refusal that is not remembered writes it all the same."""
    on = levels(own=limit(10, 5))
    await any_store.apply(*reserve("r", Cost(4, 1), on=on, forfeits=True))
    await any_store.apply(*reserve("open", Cost(5, 1), on=on, ttl_seconds=600))
    clock.step(seconds=100)
    assert isinstance((await any_store.apply(*reserve("more", Cost(5, 1), on=on))).outcome, Held)
    ((_, entry),) = await any_store.journal(ANALYST.root, "", "", 10)
    assert (EntryKind.FORFEITED, NOON + 60 * SECOND) == (entry.kind, entry.time)


async def test_a_reservation_is_known_for_an_hour_after_it_lapses(
    any_store: Store, clock: SteppedClock
) -> None:
    """Its time to live is not part of that hour."""
    asked = reserve("r", ttl_seconds=600)
    await any_store.apply(*asked)
    clock.step(seconds=3600 + 599)
    assert (await any_store.apply(*asked)).replayed


async def test_of_many_who_want_more_than_all_together_have_each_is_charged_in_the_end(
    any_store: Store,
) -> None:
    """Twelve at once whose worst cases fit one by one, each sent again until it is granted."""

    async def paid(number: int) -> None:
        asked = reserve(f"r{number}", Cost(9, 1), on=on)
        answer = await any_store.apply(*asked)
        while isinstance(answer.outcome, Held):
            answer = await any_store.apply(*asked)
        assert isinstance(answer.outcome, Reserved)
        settled = charge(f"c{number}", Cost(1, 1), on=on, settles=f"r{number}")
        assert isinstance((await any_store.apply(*settled)).outcome, Charged)

    on = levels(own=limit(20, 12))
    await asyncio.gather(*(paid(number) for number in range(12)))
    (status,) = (await any_store.read(ANALYST, on)).levels
    assert (Cost(12, 12), Cost(0, 0)) == (status.spent, status.reserved)


async def test_charges_of_nothing_are_forgotten_after_an_hour_and_leave_nothing(
    any_store: Store, clock: SteppedClock
) -> None:
    """Direct or settled: a retry is a replay until then, nothing is paid for, and no currency is fixed."""
    await any_store.apply(*reserve("open", Cost(4, 1), query_id="q"))
    asked = (
        charge("direct", Cost(0, 0), release_id="rel", query_id="q2"),
        charge("settled", Cost(0, 0), settles="open", release_id="rel2"),
    )
    for each in asked:
        first, again = [await any_store.apply(*each) for _ in range(2)]
        assert isinstance(first.outcome, Charged)
        assert (first.outcome, True) == (again.outcome, again.replayed)
    assert await any_store.journal("acme", "", "", 10) == []
    found = await any_store.read(ANALYST, levels())
    status = found.levels[0]
    assert ("", Cost(0, 0), Cost(0, 0)) == (found.currency.unit_id, status.spent, status.reserved)
    for query_id in ("q", "q2"):
        reserved = (await any_store.apply(*reserve(f"free {query_id}", query_id=query_id))).outcome
        assert isinstance(reserved, Reserved)
        assert not reserved.already_paid
    clock.step(seconds=3601)
    direct = await any_store.apply(*asked[0])
    assert (isinstance(direct.outcome, Charged), direct.replayed) == (True, False)
    settled = await any_store.apply(*asked[1])
    assert not settled.replayed


async def test_a_release_that_costs_nothing_is_charged_above_where_worst_cases_count(
    any_store: Store, clock: SteppedClock
) -> None:
    """The levels above count what was reserved, so there is an entry, and it is remembered as any charge."""
    on = levels(own=limit(10, 5), above=limit(20, 9))
    await any_store.apply(*reserve("open", Cost(4, 1), on=on))
    settled = charge("settled", Cost(0, 0), on=on, settles="open", release_id="rel").but(
        worst_case_above=True
    )
    await any_store.apply(*settled)
    ((_, entry),) = await any_store.journal("acme", "", "", 10)
    assert (Cost(0, 0), Cost(4, 1)) == (entry.cost, entry.shared_cost)
    assert [Cost(4, 1), Cost(0, 0)] == [each.spent for each in (await any_store.read(ANALYST, on)).levels]
    clock.step(seconds=3601)
    assert (await any_store.apply(*settled)).replayed


async def test_a_free_reservation_that_is_forfeited_is_no_charge(
    any_store: Store, clock: SteppedClock
) -> None:
    """It held nothing."""
    await any_store.apply(*reserve("open", Cost(0, 0), forfeits=True))
    clock.step(seconds=61)
    await any_store.apply(*charge("c", Cost(1, 1)))
    assert ["c"] == [entry.request_id for _, entry in await any_store.journal("acme", "", "", 10)]


@pytest_asyncio.fixture
async def stub(tmp_path: Path, clock: SteppedClock) -> AsyncIterator[Stub]:
    """Serve a ledger in SQLite on a clock that stands still: 15 for the company, 10 for each analyst."""
    async with served(tmp_path, clock) as stub:
        yield stub


async def test_a_held_budget_is_unavailable_and_says_for_what(stub: Stub) -> None:
    """With a pause, without a time of refresh, and not retried by gRPC itself."""
    held = await stub.ReserveBudget(reserving(cost(8, 2)))
    for call in (stub.ReserveBudget(reserving(cost(7, 1))), stub.UpdateBudget(charging(cost(7, 1)))):
        error = await failure(call)
        assert (error.code, error.info.reason) == (grpc.StatusCode.UNAVAILABLE, "BUDGET_HELD")
        reported = {"level": "acme/ann", "unit": "information", "requested": "7", "remaining": "2"}
        assert reported == dict(error.info.metadata)
        assert error.retry is not None
        assert 0 < error.retry.retry_delay.nanos < 10**9
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub.ReserveBudget(reserving(cost(9, 1)))
    assert dict(raised.value.trailing_metadata() or ())["grpc-retry-pushback-ms"] == "-1"
    await stub.ReleaseReservation(cancelling(held.reservation_id))
    assert (await stub.UpdateBudget(charging(cost(9, 1)))).charged == cost(9, 1)


async def test_a_check_says_that_a_budget_is_held(stub: Stub) -> None:
    """And that one is exhausted, though something is held as well."""
    await stub.ReserveBudget(reserving(cost(8, 2)))
    asked = [pb.CheckBudgetRequest(account=account(), cost=cost(each, 1)) for each in (2, 7, 11)]
    answers = [await stub.CheckBudget(each) for each in asked]
    assert [(True, False), (False, True), (False, False)] == [(each.allowed, each.held) for each in answers]
    assert [7] == [each.requested for each in answers[1].shortfalls]


async def test_nobody_is_shown_what_others_hold(stub: Stub) -> None:
    """Not by a balance, a check, a refusal or a charge; the company itself is."""
    await stub.ReserveBudget(reserving(cost(10, 4), BOB))
    mine = await stub.GetBudget(pb.GetBudgetRequest(account=account()))
    charged = await stub.UpdateBudget(charging(cost(1, 1)))
    for company, spent in ((mine.levels[0], 0), (charged.levels[0], 1)):
        assert (0, 15 - spent) == (company.reserved.information, company.remaining.information)
    check = await stub.CheckBudget(pb.CheckBudgetRequest(account=account(), cost=cost(5, 1)))
    error = await failure(stub.ReserveBudget(reserving(cost(5, 1))))
    assert (True, [14], "14") == (
        check.held,
        [each.remaining for each in check.shortfalls],
        error.info.metadata["remaining"],
    )
    theirs = await stub.GetBudget(pb.GetBudgetRequest(account=account(BOB)))
    assert [(0, 14), (10, 0)] == [
        (each.reserved.information, each.remaining.information) for each in theirs.levels
    ]
    company_itself = await stub.GetBudget(pb.GetBudgetRequest(account=account(COMPANY.path)))
    assert [10] == [each.reserved.information for each in company_itself.levels]
    assert not any(each.over_limit for each in (*mine.levels, *theirs.levels))
