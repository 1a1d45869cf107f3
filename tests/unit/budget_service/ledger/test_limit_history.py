"""Which limit a guarantee has to count after an administrator has changed it within a window."""

from __future__ import annotations

import pytest
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Charged
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit, Mode
from budget_service.ledger.windows import Period
from budget_service.server.policy_statements import policy_statements_of
from budget_service.stores.interface import Store
from tests.support.budget_client import account, charging, cost
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    SteppedClock,
    charge,
    limit,
)
from tests.unit.budget_service.policy_service import stub_on
from tests.unit.budget_service.trims import trimmed

LARGE, MIDDLE, SMALL, OTHER = limit(100, 5), limit(60, 9), limit(30, 3), limit(7, 7)
TRACKED = limit(1, 1, mode=Mode.TRACK)


async def change(store: Store, level: Account, new: Limit | None, number: int) -> None:
    """Set a limit, or remove it."""
    request = SetLimits(
        actor="ops", account=level.level(1), request_id=f"set{number}", changes=((level, new),)
    )
    await store.apply(request, NO_LIMITS)


async def largest(
    store: Store, present: Limit, *, level: Account = ANALYST, of_file: Limit | None = None
) -> Cost | None:
    """Return the largest limit that counts at a level of the analyst."""
    on = (LevelLimit(level, present),)
    found = await policy_statements_of(store, ANALYST, (await store.read(ANALYST, on)).levels)
    return found[level.depth].largest_limit(present, lambda asked: of_file if asked == level else None)


async def spend(store: Store, present: Limit, name: str = "a", by: Account = ANALYST) -> None:
    """Charge one unit."""
    on = (LevelLimit(by if by != COLLEAGUE else COMPANY, present),)
    version = (await store.limits(by)).version
    answer = await store.apply(
        *charge(name, Cost(1, 0), account=by).by(AppliedLimits(on, version)),
    )
    assert isinstance(answer.outcome, Charged)


async def test_the_largest_limit_since_the_first_charge_counts(any_store: Store, clock: SteppedClock) -> None:
    """Unit by unit, of limits that were lowered, raised, and set for others; in the next window the present one."""
    await change(any_store, ANALYST, LARGE, 0)
    await spend(any_store, LARGE)
    for number, new in enumerate((MIDDLE, SMALL, MIDDLE, SMALL), start=1):
        clock.step(days=1)
        await change(any_store, ANALYST, new, number)
        await change(any_store, COLLEAGUE, limit(10**6, 10**6), 10 + number)
    assert Cost(100, 9) == await largest(any_store, SMALL)
    clock.step(days=40)
    await spend(any_store, SMALL, "b")
    assert SMALL.maximum == await largest(any_store, SMALL)


async def test_what_was_in_force_before_the_first_charge_does_not_count(
    any_store: Store, clock: SteppedClock
) -> None:
    """But for as long as a reservation lasts that the charge may have had; without a charge only the present limit."""
    await change(any_store, ANALYST, LARGE, 0)
    clock.step(seconds=3600)
    await change(any_store, ANALYST, MIDDLE, 1)
    clock.step(seconds=500)
    await change(any_store, ANALYST, SMALL, 2)
    assert SMALL.maximum == await largest(any_store, SMALL)
    clock.step(seconds=200)
    await spend(any_store, SMALL)
    assert Cost(60, 9) == await largest(any_store, SMALL)


@pytest.mark.parametrize("first", [None, TRACKED])
async def test_a_level_that_was_charged_without_a_limit_is_not_bounded(
    any_store: Store, clock: SteppedClock, first: Limit | None
) -> None:
    """Nor if it was only recorded. One that got its limit before its first charge is."""
    if first is not None:
        await change(any_store, COMPANY, first, 0)
    clock.step(seconds=1)
    await change(any_store, COMPANY, SMALL, 1)
    clock.step(seconds=1)
    await spend(any_store, SMALL, by=COLLEAGUE)
    assert SMALL.maximum == await largest(any_store, SMALL, level=COMPANY)
    clock.step(days=31)
    await change(any_store, COMPANY, first, 2)
    await spend(any_store, limit(50, 50), "b", by=COLLEAGUE)
    clock.step(seconds=1)
    await change(any_store, COMPANY, SMALL, 3)
    assert await largest(any_store, SMALL, level=COMPANY) is None


async def test_where_none_was_stored_the_file_has_been_in_force(
    any_store: Store, clock: SteppedClock
) -> None:
    """Before the first change, and between a removal and the next one."""
    await spend(any_store, OTHER)
    clock.step(days=1)
    await change(any_store, ANALYST, SMALL, 1)
    assert Cost(30, 7) == await largest(any_store, SMALL, of_file=OTHER)
    await change(any_store, ANALYST, None, 2)
    assert Cost(30, 7) == await largest(any_store, OTHER, of_file=OTHER)


async def test_a_limit_with_windows_of_its_own_bounds_nothing(any_store: Store, clock: SteppedClock) -> None:
    """Within a month a limit of each day may have been used up many times; one that is never refreshed may not."""
    by_day, for_ever = limit(30, 3, period=Period.DAY), limit(40, 4, period=Period.NEVER)
    await change(any_store, ANALYST, by_day, 0)
    await spend(any_store, by_day)
    clock.step(days=1)
    await change(any_store, ANALYST, for_ever, 1)
    assert await largest(any_store, SMALL) is None
    assert by_day.window != SMALL.window
    clock.step(days=31)
    await spend(any_store, for_ever, "b")
    clock.step(days=1)
    await change(any_store, ANALYST, SMALL, 2)
    assert Cost(40, 4) == await largest(any_store, SMALL)


async def test_a_change_that_was_trimmed_counts(any_store: Store, clock: SteppedClock) -> None:
    """As long as the window reaches back to it, with the first charge."""
    await change(any_store, ANALYST, LARGE, 0)
    await spend(any_store, LARGE)
    clock.step(days=1)
    await change(any_store, ANALYST, SMALL, 1)
    await trimmed(any_store)
    assert LARGE.maximum == await largest(any_store, SMALL)
    clock.step(days=40)
    await spend(any_store, SMALL, "b")
    assert SMALL.maximum == await largest(any_store, SMALL)


async def test_the_service_says_it_with_the_policy_statements(any_store: Store, clock: SteppedClock) -> None:
    """For each level that is enforced, with the limits of its file; nothing where it is not asked for."""
    asked = pb.GetBudgetRequest(account=account(), with_policy_statements=True)
    async with stub_on(any_store) as stub:
        await stub.UpdateBudget(charging(cost(1, 1)))
        clock.step(days=1)
        await change(any_store, ANALYST, SMALL, 1)
        company, own = (await stub.GetBudget(asked)).levels
        assert (company.limit, cost(30, 5)) == (company.largest_limit, own.largest_limit)
        await change(any_store, COMPANY, TRACKED, 2)
        company, own = (await stub.GetBudget(asked)).levels
        assert not company.HasField("largest_limit")
        await change(any_store, COMPANY, LARGE, 3)
        company, own = (await stub.GetBudget(asked)).levels
        assert not company.HasField("largest_limit")
        assert own.HasField("largest_limit")
        asked.with_policy_statements = False
        company, own = (await stub.GetBudget(asked)).levels
        assert not any(each.HasField("largest_limit") for each in (company, own))
