"""Sums beyond 64 bits where no limit refuses them: on levels without one, and in windows longer than before."""

from __future__ import annotations

import pytest

from budget_service.ledger.account_statement import check
from budget_service.ledger.outcomes import Charged, Exhausted, Reason, Refused
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Cost, Limit, Mode
from budget_service.ledger.windows import Period
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    UNIT,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)

HUGE = limit(MAX_AMOUNT, MAX_AMOUNT)
MINE, THEIRS = levels(ANALYST, own=HUGE), levels(COLLEAGUE, own=HUGE)
OVERFLOW = Refused(Reason.SUM_OVERFLOW)


async def assert_verified(store: Store) -> None:
    """See that every balance is the sum of the journal."""
    found = Verification()
    await verify(store, COMPANY.root, found)
    assert found.differences == []


async def test_a_level_without_a_limit_refuses_what_it_could_not_add_up(any_store: Store) -> None:
    """Two analysts whose own limits allow it: nothing is charged or held that the company's sum could not hold."""
    await any_store.apply(*charge("a", Cost(MAX_AMOUNT - 9, 1), on=MINE))
    await any_store.apply(*reserve("r", Cost(4, 1), account=COLLEAGUE, on=THEIRS))
    for asked in (
        charge("b", Cost(6, 1), account=COLLEAGUE, on=THEIRS),
        reserve("c", Cost(6, 1), account=COLLEAGUE, on=THEIRS),
    ):
        assert OVERFLOW == (await any_store.apply(*asked)).outcome
    found = await any_store.read(COLLEAGUE, THEIRS)
    assert OVERFLOW == check(found, Cost(6, 1), UNIT, COLLEAGUE)
    assert check(found, Cost(5, 1), UNIT, COLLEAGUE) is None
    fits = await any_store.apply(*charge("d", Cost(5, 1), account=COLLEAGUE, on=THEIRS))
    assert isinstance(fits.outcome, Charged)
    settled = await any_store.apply(*charge("s", Cost(4, 1), account=COLLEAGUE, on=THEIRS, settles="r"))
    assert isinstance(settled.outcome, Charged)
    await assert_verified(any_store)
    above = (await any_store.read(ANALYST, levels(own=HUGE, above=HUGE))).levels[0]
    assert (Cost(MAX_AMOUNT, 3), NOTHING) == (above.spent, above.reserved)


@pytest.mark.parametrize(
    "longer",
    [limit(MAX_AMOUNT, 9), limit(MAX_AMOUNT, 9, days=7), limit(MAX_AMOUNT, 9, period=Period.NEVER)],
    ids=["month", "sliding", "never"],
)
async def test_a_window_with_more_than_can_be_counted_is_exhausted(
    any_store: Store, clock: SteppedClock, longer: Limit
) -> None:
    """Each day was within its limit; together they are more than 64 bits hold, which is no damage of the ledger."""
    daily, on = levels(own=limit(MAX_AMOUNT, 9, period=Period.DAY)), levels(own=longer)
    for day in range(3):
        await any_store.apply(*charge(f"c{day}", Cost(MAX_AMOUNT - 1, 1), on=daily))
        clock.step(days=1)
    for name in ("first", "second"):
        assert isinstance((await any_store.apply(*charge(name, Cost(1, 1), on=on))).outcome, Exhausted)
        assert Cost(MAX_AMOUNT, 3) == (await any_store.read(ANALYST, on)).levels[-1].spent
        await assert_verified(any_store)
        clock.step(days=1)


@pytest.mark.parametrize("unit", ["information", "calls"])
async def test_a_tracked_level_refuses_what_it_could_not_add_up(any_store: Store, unit: str) -> None:
    """A level that only tracks lacks nothing, and still keeps a sum of 64 bits."""

    def cost(amount: int) -> Cost:
        return Cost(amount, 1) if unit == "information" else Cost(1, amount)

    tracked = limit(5, 5, mode=Mode.TRACK)
    on = levels(own=HUGE, above=tracked)
    await any_store.apply(*charge("a", cost(MAX_AMOUNT - 9), on=on))
    theirs = levels(COLLEAGUE, own=HUGE, above=tracked)
    assert OVERFLOW == (await any_store.apply(*charge("b", cost(10), account=COLLEAGUE, on=theirs))).outcome
    fits = await any_store.apply(*charge("c", cost(9), account=COLLEAGUE, on=theirs))
    assert isinstance(fits.outcome, Charged)
    await assert_verified(any_store)


async def test_what_is_held_below_a_full_level_can_be_given_back(any_store: Store) -> None:
    """A limit that comes later counts it, and no longer when it has ended."""
    await any_store.apply(*charge("a", Cost(MAX_AMOUNT - 4, 1), on=MINE))
    await any_store.apply(*reserve("r", Cost(4, 1), on=MINE))
    both = levels(own=HUGE, above=limit(MAX_AMOUNT, 9))
    assert Cost(4, 1) == (await any_store.read(ANALYST, both)).levels[-1].reserved
    await any_store.apply(*cancel("x", ends="r", on=both))
    status = (await any_store.read(ANALYST, both)).levels[0]
    assert (Cost(MAX_AMOUNT - 4, 1), NOTHING) == (status.spent, status.reserved)
    await assert_verified(any_store)
