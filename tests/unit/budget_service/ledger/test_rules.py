"""The rules, one claim a test, over every store; what is about the journal, over the store in memory."""

from __future__ import annotations

import dataclasses

import pytest

from budget_service.ledger.account_statement import check
from budget_service.ledger.act import Act
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    Exhausted,
    Held,
    Reason,
    Refused,
    Reserved,
    Shortfall,
)
from budget_service.ledger.rules import decide
from budget_service.ledger.state import EntryKind, RootRecord, Snapshot
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Cost, Limit, Mode, Unit
from budget_service.ledger.windows import Period
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    OTHER_UNIT,
    UNIT,
    Asked,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.some import some
from tests.unit.budget_service.memory_store import MemoryStore


@pytest.fixture
def memory(clock: SteppedClock) -> MemoryStore:
    """Hold an empty ledger whose journal can be read."""
    return MemoryStore(clock)


async def spent_and_reserved(any_store: Store) -> tuple[Cost, Cost]:
    """Return what counts against the analyst's own limit."""
    status = (await any_store.read(ANALYST, levels())).levels[-1]
    return status.spent, status.reserved


async def test_a_settled_reservation_returns_what_was_not_spent(any_store: Store) -> None:
    """The worst case is held, the actual cost stays."""
    await any_store.apply(*reserve("r", Cost(8, 2)))
    assert (NOTHING, Cost(8, 2)) == await spent_and_reserved(any_store)
    answer = await any_store.apply(*charge("c", Cost(3, 1), settles="r"))
    assert isinstance(answer.outcome, Charged)
    assert (Cost(3, 1), NOTHING) == await spent_and_reserved(any_store)


async def test_a_released_reservation_returns_everything(any_store: Store) -> None:
    """Nothing was released, nothing is spent."""
    await any_store.apply(*reserve("r"))
    answer = await any_store.apply(*cancel("x", ends="r"))
    assert answer.outcome == Cancelled(Cost(4, 1), UNIT)
    assert await spent_and_reserved(any_store) == (NOTHING, NOTHING)


async def test_a_reservation_ends_exactly_once(any_store: Store) -> None:
    """After its end it can be neither settled nor cancelled."""
    await any_store.apply(*reserve("r"))
    await any_store.apply(*charge("c", settles="r"))
    for again in (charge("c2", settles="r"), cancel("x", ends="r"), charge("c3", settles="never-was")):
        assert Answer(Refused(Reason.RESERVATION_OVER), replayed=False) == await any_store.apply(*again)
    assert (Cost(4, 1), NOTHING) == await spent_and_reserved(any_store)


async def test_a_lapsed_reservation_returns_its_budget_and_cannot_be_settled(
    any_store: Store, clock: SteppedClock
) -> None:
    """It is over at the very microsecond of its end."""
    await any_store.apply(*reserve("r", Cost(10, 5), ttl_seconds=60))
    clock.step(seconds=59.999999)
    assert isinstance((await any_store.apply(*reserve("r2", Cost(1, 0)))).outcome, Held)
    early = await any_store.apply(*charge("early", Cost(0, 1)))
    assert isinstance(early.outcome, Held)
    clock.step(seconds=0.000001)
    assert Refused(Reason.RESERVATION_OVER) == (await any_store.apply(*charge("c", settles="r"))).outcome
    assert isinstance((await any_store.apply(*charge("then", Cost(4, 1)))).outcome, Charged)
    assert isinstance((await any_store.apply(*reserve("r3", Cost(6, 4)))).outcome, Reserved)


async def test_a_forfeited_reservation_is_spent_when_it_lapses(
    memory: MemoryStore, clock: SteppedClock
) -> None:
    """The journal says so, so balances can still be rebuilt from it."""
    await memory.apply(*reserve("r", Cost(6, 2), forfeits=True))
    clock.step(seconds=61)
    await memory.apply(*charge("c", Cost(1, 1)))
    assert (Cost(7, 3), NOTHING) == await spent_and_reserved(memory)
    assert [entry.kind for entry in memory.entries] == [EntryKind.FORFEITED, EntryKind.DIRECT]


async def test_an_old_window_returns_nothing_into_a_new_one(any_store: Store, clock: SteppedClock) -> None:
    """A reservation that is cancelled, or lapses, after the refresh leaves the new window alone."""
    daily = levels(own=limit(10, 5, period=Period.DAY))
    clock.step(seconds=12 * 3600 - 10)
    for name in ("cancelled", "lapses"):
        await any_store.apply(*reserve(name, Cost(3, 1), on=daily))
    clock.step(seconds=20)
    await any_store.apply(*charge("c", Cost(2, 1), on=daily))
    await any_store.apply(*cancel("x", ends="cancelled", on=daily))
    clock.step(seconds=60)
    status = (await any_store.read(ANALYST, daily)).levels[-1]
    assert (Cost(2, 1), NOTHING, Cost(8, 4)) == (status.spent, status.reserved, status.remaining)


async def test_a_reservation_settled_after_the_refresh_counts_where_it_was_admitted(
    any_store: Store, clock: SteppedClock
) -> None:
    """The charge is journaled in the old window; the new one is whole, and the release is not paid for in it."""
    daily = levels(own=limit(10, 5, period=Period.DAY))
    clock.step(seconds=12 * 3600 - 10)
    await any_store.apply(*reserve("r", Cost(10, 5), on=daily))
    clock.step(seconds=20)
    settled = await any_store.apply(*charge("c", Cost(10, 5), settles="r", release_id="rel", on=daily))
    assert isinstance(settled.outcome, Charged)
    assert Cost(10, 5) == (await any_store.read(ANALYST, daily)).levels[-1].remaining
    again = await any_store.apply(*charge("c2", Cost(1, 1), release_id="rel", on=daily))
    assert isinstance(again.outcome, Charged)
    assert not again.outcome.already_paid


async def test_a_month_refreshes_at_midnight_of_its_zone(any_store: Store, clock: SteppedClock) -> None:
    """In Berlin, October 2026 ends at 23:00 UTC."""
    monthly = levels(own=limit(10, 5, zone="Europe/Berlin"))
    clock.step(days=17)
    clock.step(seconds=11 * 3600 - 1)
    await any_store.apply(*charge("c", Cost(10, 5), on=monthly))
    assert isinstance((await any_store.apply(*charge("c2", Cost(1, 0), on=monthly))).outcome, Exhausted)
    clock.step(seconds=1)
    assert isinstance((await any_store.apply(*charge("c3", Cost(10, 5), on=monthly))).outcome, Charged)


async def test_a_clock_that_goes_back_reopens_no_window(any_store: Store, clock: SteppedClock) -> None:
    """Time stands still until the clock has caught up: last month's budget is not there again, nor this month's."""
    clock.step(days=20)
    await any_store.apply(*charge("c", Cost(10, 5)))
    clock.step(days=-20)
    refused = await any_store.apply(*charge("c2", Cost(1, 0)))
    assert isinstance(refused.outcome, Exhausted)
    assert clock.now < refused.outcome.decided_at


@pytest.mark.parametrize("own", [limit(10, 5), limit(10, 5, days=7), limit(10, 5, period=Period.DAY)])
async def test_a_clock_that_jumps_forward_and_back_gives_nothing_twice(
    any_store: Store, clock: SteppedClock, own: Limit
) -> None:
    """The ledger stays where the jump led it: what is held and spent there stays until the clock is past it again."""
    on = levels(own=own)
    await any_store.apply(*charge("before", Cost(10, 5), on=on))
    clock.step(days=40)
    await any_store.apply(*reserve("r", Cost(4, 1), on=on))
    await any_store.apply(*charge("there", Cost(6, 4), on=on, release_id="rel"))
    jumped = await any_store.read(ANALYST, on)
    for days in (-40, 20, 19):
        clock.step(days=days)
        assert isinstance((await any_store.apply(*charge(f"c{days}", Cost(1, 0), on=on))).outcome, Held)
        assert isinstance((await any_store.apply(*charge(f"d{days}", Cost(5, 0), on=on))).outcome, Exhausted)
        found = await any_store.read(ANALYST, on)
        assert jumped == dataclasses.replace(found, ahead=0, stands_still=0)
    again = (await any_store.apply(*charge("again", Cost(6, 4), on=on, release_id="rel"))).outcome
    assert isinstance(again, Charged)
    assert again.already_paid
    assert isinstance((await any_store.apply(*charge("s", Cost(4, 1), on=on, settles="r"))).outcome, Charged)
    clock.step(days=40)
    assert isinstance((await any_store.apply(*charge("later", Cost(10, 5), on=on))).outcome, Charged)


def test_the_rules_refuse_a_time_before_the_last() -> None:
    """A store that passes the bare clock is wrong, and the error says so."""
    with pytest.raises(ValueError, match="never goes back"):
        decide(Snapshot(root=RootRecord(last_time=NOON + 1)), *reserve("r"), NOON)


async def test_every_level_pays_or_none(any_store: Store) -> None:
    """An exhausted company stops an analyst who is not, and takes nothing; its room helps no exhausted analyst."""
    on = levels(own=limit(10, 5), above=limit(12, 9))
    theirs = levels(COLLEAGUE, own=limit(10, 5), above=limit(12, 9))
    await any_store.apply(*charge("c", Cost(9, 1), on=on))
    refused = await any_store.apply(*charge("c2", Cost(4, 6), account=COLLEAGUE, on=theirs))
    assert isinstance(refused.outcome, Exhausted)
    refreshes_at = refused.outcome.shortfalls[0].refreshes_at
    assert refused.outcome.shortfalls == (
        Shortfall(1, Unit.INFORMATION, 4, 3, refreshes_at),
        Shortfall(2, Unit.CALLS, 6, 5, refreshes_at),
    )
    assert (await any_store.read(COLLEAGUE, theirs)).levels[-1].spent == NOTHING
    # The company has room for it, and the analyst has just these calls.
    own = await any_store.apply(*charge("c3", Cost(2, 4), on=on))
    assert isinstance(own.outcome, Exhausted)
    assert own.outcome.shortfalls == (Shortfall(2, Unit.INFORMATION, 2, 1, refreshes_at),)


async def test_a_tracking_level_records_and_never_refuses(any_store: Store) -> None:
    """It shows more spent than the limit, and nothing left."""
    on = levels(own=limit(10, 5, mode=Mode.TRACK))
    for name in ("a", "b"):
        assert isinstance((await any_store.apply(*charge(name, Cost(9, 4), on=on))).outcome, Charged)
    status = (await any_store.read(ANALYST, on)).levels[-1]
    assert (Cost(18, 8), NOTHING) == (status.spent, status.remaining)
    assert check(await any_store.read(ANALYST, on), Cost(99, 99), UNIT, ANALYST) is None


async def test_a_sum_that_64_bits_cannot_hold_is_an_error_and_charges_nothing(any_store: Store) -> None:
    """Only a tracking level can come there."""
    on = levels(own=limit(10, 5, mode=Mode.TRACK))
    await any_store.apply(*charge("a", Cost(MAX_AMOUNT, 0), on=on))
    assert Refused(Reason.SUM_OVERFLOW) == (await any_store.apply(*charge("b", Cost(1, 0), on=on))).outcome
    found = await any_store.read(ANALYST, on)
    assert Refused(Reason.SUM_OVERFLOW) == check(found, Cost(1, 0), UNIT, ANALYST)
    assert check(found, Cost(0, 1), UNIT, ANALYST) is None
    assert isinstance((await any_store.apply(*charge("c", Cost(0, 1), on=on))).outcome, Charged)


async def test_a_lowered_limit_refuses_further_charges_and_corrupts_nothing(any_store: Store) -> None:
    """What is spent stays; what is left is nothing, not less."""
    await any_store.apply(*charge("c", Cost(8, 2)))
    lowered = levels(own=limit(5, 5))
    assert Cost(0, 3) == (await any_store.read(ANALYST, lowered)).levels[-1].remaining
    assert isinstance((await any_store.apply(*charge("c2", Cost(1, 1), on=lowered))).outcome, Exhausted)
    assert isinstance((await any_store.apply(*charge("c3", Cost(2, 1)))).outcome, Charged)


async def test_settling_more_than_was_reserved_is_refused_and_leaves_the_reservation(
    any_store: Store,
) -> None:
    """The right cost can still be charged."""
    await any_store.apply(*reserve("r", Cost(4, 1)))
    for name, cost in (("c", Cost(5, 1)), ("d", Cost(4, 2))):
        refused = await any_store.apply(*charge(name, cost, settles="r"))
        assert Refused(Reason.COST_ABOVE_RESERVATION) == refused.outcome
    assert isinstance((await any_store.apply(*charge("e", Cost(4, 1), settles="r"))).outcome, Charged)


async def test_a_reservation_belongs_to_its_account_and_question(any_store: Store) -> None:
    """Neither a colleague nor the company can settle or cancel it, and it cannot pay for another question."""
    await any_store.apply(*reserve("r", query_id="q"))
    for other in (COLLEAGUE, COMPANY):
        for asked in (
            charge(f"c {other.text}", settles="r", account=other),
            cancel(f"x {other.text}", ends="r", account=other),
        ):
            assert Refused(Reason.RESERVATION_OVER) == (await any_store.apply(*asked)).outcome
    assert (NOTHING, Cost(4, 1)) == await spent_and_reserved(any_store)
    elsewhere = await any_store.apply(*charge("d", settles="r", query_id="other"))
    assert Refused(Reason.QUERY_MISMATCH) == elsewhere.outcome
    assert isinstance((await any_store.apply(*charge("e", settles="r", query_id="q"))).outcome, Charged)


async def test_a_repeated_request_gets_the_first_answer_and_has_no_second_effect(
    any_store: Store, clock: SteppedClock
) -> None:
    """The first answer comes back word by word, even after the state has moved on."""
    requests: list[Asked[Act]] = [
        reserve("r"),
        charge("c", Cost(3, 1), settles="r"),
        charge("d"),
        cancel("x", ends="r"),
    ]
    first = [await any_store.apply(*request) for request in requests]
    clock.step(seconds=3000)
    again = [await any_store.apply(*request) for request in requests]
    assert [Answer(answer.outcome, replayed=True) for answer in first] == again
    assert (Cost(7, 2), NOTHING) == await spent_and_reserved(any_store)


async def test_a_refusal_is_remembered(any_store: Store, clock: SteppedClock) -> None:
    """The same id is refused again, even when the budget is there again; after an hour it is a new request."""
    asked = charge("c", Cost(1, 1))
    first = await any_store.apply(*asked.by(AppliedLimits(levels(own=limit(0, 0)))))
    assert isinstance(first.outcome, Exhausted)
    clock.step(seconds=3599)
    assert Answer(first.outcome, replayed=True) == await any_store.apply(*asked)
    clock.step(seconds=1)
    later = await any_store.apply(*asked)
    assert (Cost(1, 1), False) == (getattr(later.outcome, "charged", None), later.replayed)


async def test_every_kind_of_refusal_is_forgotten_after_an_hour(
    any_store: Store, clock: SteppedClock
) -> None:
    """Its id may then be used for something else."""
    await any_store.apply(*charge("pinned"))
    refusals: list[Asked[Act]] = [
        charge("a", Cost(11, 1)),
        reserve("b", Cost(11, 1)),
        cancel("c", ends="never-was"),
        charge("d", unit_id=OTHER_UNIT),
    ]
    for asked in refusals:
        assert isinstance((await any_store.apply(*asked)).outcome, Refused | Exhausted)
        other = charge(asked.request.request_id, NOTHING)
        assert Refused(Reason.REQUEST_ID_REUSED) == (await any_store.apply(*other)).outcome
    clock.step(seconds=3600)
    for asked in refusals:
        assert isinstance(
            (await any_store.apply(*charge(asked.request.request_id, NOTHING))).outcome, Charged
        )


async def test_a_request_id_with_other_content_is_refused(any_store: Store) -> None:
    """Whatever differs; and the first answer stays."""
    await any_store.apply(*charge("id"))
    for other in (
        charge("id", Cost(5, 1)),
        charge("id", release_id="r"),
        reserve("id"),
        cancel("id", ends="x"),
    ):
        assert Answer(Refused(Reason.REQUEST_ID_REUSED), replayed=False) == await any_store.apply(*other)
    assert (await any_store.apply(*charge("id"))).replayed


async def test_outcomes_are_kept_for_the_window_and_35_days(any_store: Store, clock: SteppedClock) -> None:
    """35 days after the end of October is 6 December."""
    await any_store.apply(*charge("id"))
    clock.step(days=52)
    assert (await any_store.apply(*charge("id"))).replayed
    clock.step(days=1)
    assert not (await any_store.apply(*charge("id"))).replayed


async def test_the_first_charge_fixes_the_currency(any_store: Store) -> None:
    """Neither a refused request nor a reservation fixes it; another currency is then refused in the whole root."""
    await any_store.apply(*charge("refused", Cost(11, 1), unit_id=OTHER_UNIT))
    await any_store.apply(*reserve("nothing", NOTHING, unit_id=OTHER_UNIT))
    await any_store.apply(*reserve("something", Cost(1, 1), unit_id=OTHER_UNIT))
    assert (await any_store.read(ANALYST, levels())).currency.unit_id == ""
    await any_store.apply(*charge("first"))
    for foreign in (
        charge("c", unit_id=OTHER_UNIT),
        reserve("r", unit_id=OTHER_UNIT),
        charge("d", unit_id=OTHER_UNIT, account=COLLEAGUE),
    ):
        assert Refused(Reason.UNIT_MISMATCH) == (await any_store.apply(*foreign)).outcome
    assert Refused(Reason.UNIT_MISMATCH) == check(
        await any_store.read(ANALYST, levels()), NOTHING, OTHER_UNIT, ANALYST
    )


async def test_a_reservation_is_settled_and_returned_in_its_own_currency(any_store: Store) -> None:
    """Before the first charge two may be open in two currencies; the first settled one fixes the ledger's."""
    await any_store.apply(*reserve("r", unit_id=OTHER_UNIT))
    await any_store.apply(*reserve("s"))
    mixed = await any_store.apply(*charge("c", settles="r"))
    assert Refused(Reason.UNIT_MISMATCH) == mixed.outcome
    assert isinstance((await any_store.apply(*charge("d", settles="s"))).outcome, Charged)
    assert (await any_store.read(ANALYST, levels())).currency.unit_id == UNIT
    late = await any_store.apply(*charge("e", settles="r", unit_id=OTHER_UNIT))
    assert Refused(Reason.UNIT_MISMATCH) == late.outcome
    assert Cancelled(Cost(4, 1), OTHER_UNIT) == (await any_store.apply(*cancel("x", ends="r"))).outcome


async def test_a_forfeited_reservation_is_a_charge_and_fixes_the_currency(
    any_store: Store, clock: SteppedClock
) -> None:
    """Its own one, as seen by the next request and by a reader before it."""
    await any_store.apply(*reserve("r", unit_id=OTHER_UNIT, forfeits=True))
    clock.step(seconds=61)
    assert (await any_store.read(ANALYST, levels())).currency.unit_id == OTHER_UNIT
    assert Refused(Reason.UNIT_MISMATCH) == (await any_store.apply(*charge("c"))).outcome
    assert isinstance((await any_store.apply(*charge("d", unit_id=OTHER_UNIT))).outcome, Charged)


async def test_a_release_is_paid_for_once_in_a_window(any_store: Store, clock: SteppedClock) -> None:
    """An exhausted analyst can read it again; in the next window it costs again."""
    await any_store.apply(*charge("c", Cost(10, 5), release_id="rel"))
    again = await any_store.apply(*charge("c2", Cost(10, 5), release_id="rel"))
    assert isinstance(again.outcome, Charged)
    assert (again.outcome.charged, again.outcome.already_paid) == (NOTHING, True)
    clock.step(days=30)
    later = await any_store.apply(*charge("c3", Cost(10, 5), release_id="rel"))
    assert isinstance(later.outcome, Charged)
    assert (Cost(10, 5), False) == (later.outcome.charged, later.outcome.already_paid)


async def test_a_release_is_free_only_to_the_account_that_paid(any_store: Store) -> None:
    """A colleague pays for the same release."""
    await any_store.apply(*charge("c", release_id="rel"))
    theirs = await any_store.apply(*charge("c2", release_id="rel", account=COLLEAGUE))
    assert isinstance(theirs.outcome, Charged)
    assert Cost(4, 1) == theirs.outcome.charged


async def test_a_question_that_is_paid_for_holds_nothing(any_store: Store) -> None:
    """An exhausted analyst can ask it again, and its settling costs nothing whatever is reported."""
    await any_store.apply(*reserve("r", Cost(10, 5), query_id="q"))
    await any_store.apply(*charge("c", Cost(10, 5), settles="r", release_id="rel"))
    held = (await any_store.apply(*reserve("r2", Cost(10, 5), query_id="q"))).outcome
    assert isinstance(held, Reserved)
    assert (held.held, held.already_paid) == (NOTHING, True)
    settled = (await any_store.apply(*charge("c2", Cost(10, 5), settles="r2", release_id="rel"))).outcome
    assert isinstance(settled, Charged)
    assert (settled.charged, settled.already_paid) == (NOTHING, True)


async def test_another_release_of_a_paid_question_is_an_integrity_error(any_store: Store) -> None:
    """Neither an open reservation, made before or after the payment, nor a direct charge lets it through."""
    await any_store.apply(*reserve("early", query_id="q"))
    await any_store.apply(*reserve("r", query_id="q"))
    await any_store.apply(*charge("c", settles="r", release_id="rel"))
    await any_store.apply(*reserve("free", query_id="q"))
    for name, settles, query_id in (
        ("1", "free", ""),
        ("2", "early", ""),
        ("3", "early", "q"),
        ("4", "", "q"),
    ):
        for release_id in ("other", ""):
            asked = charge(name + release_id, settles=settles, query_id=query_id, release_id=release_id)
            assert Refused(Reason.RELEASE_MISMATCH) == (await any_store.apply(*asked)).outcome
    assert (Cost(4, 1), Cost(4, 1)) == await spent_and_reserved(any_store)
    late = (await any_store.apply(*charge("late", settles="early", release_id="rel"))).outcome
    assert isinstance(late, Charged)
    assert (late.charged, late.already_paid) == (NOTHING, True)
    assert (Cost(4, 1), NOTHING) == await spent_and_reserved(any_store)


async def test_a_lapsed_window_makes_a_free_reservation_neither_paid_nor_charged(
    any_store: Store, clock: SteppedClock
) -> None:
    """A reservation that was free when it was made stays free, and still demands the recorded release."""
    clock.step(days=17)
    clock.step(seconds=12 * 3600 - 10)
    await any_store.apply(*charge("c", release_id="rel", query_id="q"))
    await any_store.apply(*reserve("free", query_id="q"))
    clock.step(seconds=20)
    wrong = await any_store.apply(*charge("d", settles="free", release_id="other"))
    assert Refused(Reason.RELEASE_MISMATCH) == wrong.outcome
    settled = (await any_store.apply(*charge("e", settles="free", release_id="rel"))).outcome
    assert isinstance(settled, Charged)
    assert (settled.charged, settled.already_paid) == (NOTHING, True)


async def test_the_journal_adds_up_to_what_is_spent(memory: MemoryStore) -> None:
    """Each entry says in which windows it counts."""
    on = levels(own=limit(10, 5), above=limit(30, 9))
    await memory.apply(*reserve("r", on=on))
    await memory.apply(*charge("c", Cost(3, 1), settles="r", on=on))
    await memory.apply(*charge("d", Cost(2, 1), on=on))
    for status in some((await memory.read(ANALYST, on)).levels):
        found = [entry.cost for entry in memory.entries for hold in entry.holds if hold.depth == status.depth]
        assert sum(found, NOTHING) == status.spent
