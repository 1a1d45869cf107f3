"""Sliding windows: the limit holds over any N days that follow each other, and a changed window gives nothing back."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from budget_service.ledger.outcomes import Charged, Exhausted, Held, Reserved
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import NOTHING, Cost, LevelLimit, blocks_of
from budget_service.ledger.windows import DAY, SECOND, Microseconds, Period, WindowRule, datetime_of
from budget_service.stores.interface import Store
from tests.support.budget_samples import ANALYST, SteppedClock, charge, levels, limit, reserve
from tests.support.examples import examples
from tests.unit.budget_service.histories import BLOCKS, HISTORIES, RULES, Doing, Player, Step
from tests.unit.budget_service.memory_store import MemoryStore

WEEK = levels(own=limit(10, 5, days=7))


async def spent(store: Store, on: tuple[LevelLimit, ...] = WEEK) -> Cost:
    """Return what counts as spent now."""
    return (await store.read(ANALYST, on)).levels[-1].spent


async def test_each_day_leaves_by_itself(any_store: Store, clock: SteppedClock) -> None:
    """What was charged on Wednesday is back on the next one, not before, and not with Thursday's."""
    await any_store.apply(*charge("wed", Cost(6, 1), on=WEEK))
    clock.step(days=1)
    await any_store.apply(*charge("thu", Cost(3, 1), on=WEEK))
    clock.step(days=5, seconds=12 * 3600 - 1)
    assert isinstance((await any_store.apply(*charge("early", Cost(2, 1), on=WEEK))).outcome, Exhausted)
    clock.step(seconds=1)
    assert await spent(any_store) == Cost(3, 1)
    assert isinstance((await any_store.apply(*charge("next", Cost(7, 1), on=WEEK))).outcome, Charged)
    clock.step(days=1)
    assert await spent(any_store) == Cost(7, 1)


async def test_a_refusal_says_when_the_oldest_day_leaves(any_store: Store, clock: SteppedClock) -> None:
    """The next moment at which budget returns; days without a charge do not count."""
    await any_store.apply(*charge("nothing", NOTHING, on=WEEK))
    clock.step(days=1)
    await any_store.apply(*charge("a", Cost(6, 1), on=WEEK))
    clock.step(days=1)
    await any_store.apply(*charge("b", Cost(4, 1), on=WEEK))
    refused = (await any_store.apply(*charge("c", Cost(1, 1), on=WEEK))).outcome
    assert isinstance(refused, Exhausted)
    assert refused.shortfalls[0].refreshes_at is not None
    assert datetime_of(refused.shortfalls[0].refreshes_at).isoformat() == "2026-10-22T00:00:00+00:00"
    window = (await any_store.read(ANALYST, WEEK)).levels[-1].window
    assert datetime_of(window.start).isoformat() == "2026-10-14T00:00:00+00:00"
    assert window.end == refused.shortfalls[0].refreshes_at


@pytest.mark.parametrize("first", [Cost(1, 5), Cost(10, 1)], ids=str)
async def test_a_refusal_of_all_says_when_the_block_that_is_short_has_budget(
    any_store: Store, clock: SteppedClock, first: Cost
) -> None:
    """Not when the one with most information has; and then it is granted, and a moment before it is not."""
    on, second = levels(own=limit(100, 5, days=10)), Cost(11, 6) - first
    await any_store.apply(*charge("a", first, on=on).but(blocks=("0" * 16,)))
    clock.step(days=3)
    await any_store.apply(*charge("b", second, on=on).but(blocks=("f" * 16,)))
    refused = (await any_store.apply(*charge("c", Cost(1, 1), on=on))).outcome
    assert isinstance(refused, Exhausted)
    both = (await any_store.apply(*charge("d", Cost(1, 1), on=on).but(blocks=("0" * 16, "f" * 16)))).outcome
    assert both == refused
    ends = refused.shortfalls[0].refreshes_at
    assert ends is not None
    clock.step(seconds=(ends - clock.now) // SECOND - 1)
    assert isinstance((await any_store.apply(*charge("e", Cost(1, 1), on=on))).outcome, Exhausted)
    clock.step(seconds=1)
    assert isinstance((await any_store.apply(*charge("f", Cost(1, 1), on=on))).outcome, Charged)


async def test_a_reservation_counts_while_it_is_open_and_its_charge_on_the_day_that_admitted_it(
    any_store: Store, clock: SteppedClock
) -> None:
    """Held before midnight, settled after: it is held all the time, and leaves with the day before."""
    clock.step(seconds=12 * 3600 - 10)
    await any_store.apply(*reserve("r", Cost(8, 1), on=WEEK))
    clock.step(seconds=20)
    assert isinstance((await any_store.apply(*charge("c", Cost(3, 1), on=WEEK))).outcome, Held)
    await any_store.apply(*charge("s", Cost(5, 1), on=WEEK, settles="r", release_id="rel"))
    assert await spent(any_store) == Cost(5, 1)
    clock.step(days=6)
    assert await spent(any_store) == NOTHING


async def test_a_lapsed_reservation_of_a_day_that_has_left_returns_what_it_held(
    any_store: Store, clock: SteppedClock
) -> None:
    """Nobody came for a month; a forfeited one counts on its own day only, which has left."""
    await any_store.apply(*reserve("r", Cost(2, 1), on=WEEK))
    await any_store.apply(*reserve("f", Cost(2, 1), on=WEEK, forfeits=True))
    clock.step(days=30)
    status = (await any_store.read(ANALYST, WEEK)).levels[-1]
    assert (NOTHING, NOTHING) == (status.spent, status.reserved)
    assert isinstance((await any_store.apply(*charge("c", Cost(10, 5), on=WEEK))).outcome, Charged)


async def test_what_was_paid_for_is_free_while_it_counts(any_store: Store, clock: SteppedClock) -> None:
    """Six days later it is free, on the seventh it costs again: both its release and its question."""
    await any_store.apply(*charge("c", Cost(4, 1), on=WEEK, release_id="rel", query_id="q"))
    clock.step(days=6)
    again = (await any_store.apply(*charge("d", Cost(4, 1), on=WEEK, release_id="rel"))).outcome
    held = (await any_store.apply(*reserve("r", on=WEEK, query_id="q"))).outcome
    assert isinstance(again, Charged)
    assert isinstance(held, Reserved)
    assert (True, True) == (again.already_paid, held.already_paid)
    clock.step(days=1)
    held = (await any_store.apply(*reserve("r2", on=WEEK, query_id="q"))).outcome
    assert isinstance(held, Reserved)
    assert not held.already_paid


async def test_outcomes_are_kept_for_35_days_after_what_was_charged_has_left(
    any_store: Store, clock: SteppedClock
) -> None:
    """A repeat in the last days of a long window is a repeat."""
    asked = charge("id", on=levels(own=limit(10, 5, days=60)))
    await any_store.apply(*asked)
    clock.step(days=94)
    assert (await any_store.apply(*asked)).replayed
    clock.step(days=1)
    assert not (await any_store.apply(*asked)).replayed


@pytest.mark.parametrize("first", RULES)
@pytest.mark.parametrize("second", RULES)
async def test_a_changed_window_counts_what_it_would_have_counted_all_along(
    any_store: Store, clock: SteppedClock, first: WindowRule, second: WindowRule
) -> None:
    """Whatever the windows are: charges of the days that the new one reaches, and what is held."""
    before, after = (levels(own=replace(limit(10, 5), window=rule)) for rule in (first, second))
    await any_store.apply(*charge("a", Cost(3, 1), on=before, release_id="rel"))
    charged_at = clock.now
    clock.step(days=1)
    await any_store.apply(*charge("b", Cost(2, 1), on=before))
    await any_store.apply(*reserve("r", Cost(1, 1), on=before))
    reaches = second.around(clock.now).counts_from <= charged_at
    counted = Cost(5, 2) if reaches else Cost(2, 1)
    await any_store.apply(*charge("c", Cost(1, 1), on=after))
    status = (await any_store.read(ANALYST, after)).levels[-1]
    assert (counted + Cost(1, 1), Cost(1, 1)) == (status.spent, status.reserved)
    await any_store.apply(*charge("s", Cost(1, 1), on=after, settles="r"))
    status = (await any_store.read(ANALYST, after)).levels[-1]
    assert (counted + Cost(2, 2), NOTHING) == (status.spent, status.reserved)


@pytest.mark.parametrize("days", [7, 30])
async def test_a_charge_leaves_when_the_present_window_says_so(
    any_store: Store, clock: SteppedClock, days: int
) -> None:
    """After a change from 7 days to 30 or back."""
    before, after = levels(own=limit(10, 5, days=37 - days)), levels(own=limit(10, 5, days=days))
    await any_store.apply(*charge("a", Cost(4, 1), on=before))
    clock.step(days=days - 1)
    assert Cost(4, 1) == await spent(any_store, after)
    await any_store.apply(*charge("b", NOTHING, on=after))
    clock.step(days=1)
    assert NOTHING == await spent(any_store, after)


def day_of(timestamp: Microseconds, zone_offset: Microseconds) -> int:
    """Return the number of the local day of a moment."""
    return (timestamp + zone_offset) // DAY


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(HISTORIES, st.integers(2, 4))
async def test_the_limit_holds_over_any_days_that_follow_each_other(history: list[Step], days: int) -> None:
    """Added up from the journal alone, by the days that admitted the charges."""
    clock = SteppedClock()
    rule = WindowRule(Period.SLIDING, "Asia/Kolkata", days)
    player, store = Player("acme", clock, (rule, rule)), MemoryStore(clock)
    for step in history:
        # A level that is taken away counts nothing meanwhile.
        request = None if step.act is Doing.RELEVEL else player.play(step)
        if request is not None:
            player.note(request, await store.apply(*request))
    half_past_five = 11 * DAY // 48
    assume(any(each.holds for each in store.entries))
    for account, maximum in ((("acme",), Cost(50, 25)), (("acme", "ann"), Cost(12, 6))):
        # A free reservation that is forfeited costs nothing, and counts nowhere.
        held = [each for each in store.entries if each.holds]
        charges = [each for each in held if each.account.path[: len(account)] == account]
        for last in {admitted_on(each, half_past_five) for each in charges}:
            counted = [each for each in charges if last - days < admitted_on(each, half_past_five) <= last]
            for block in ("", *BLOCKS):
                # What is written off is counted as if no block had paid alone.
                paid = [each for each in counted if not block or each.kind is not EntryKind.LOST]
                of_block = [each for each in paid if is_paid_by(each, block)]
                assert sum((each.cost for each in of_block), NOTHING).within(maximum)


def is_paid_by(entry: JournalEntry, block: str) -> bool:
    """Return whether an entry counts for a block; for no block, whether it does for everybody."""
    blocks = blocks_of(entry.holds)
    return not blocks or block in blocks


def admitted_on(entry: JournalEntry, zone_offset: Microseconds) -> int:
    """Return the number of the local day in which a charge was admitted."""
    return day_of(entry.holds[-1].window_start, zone_offset)
