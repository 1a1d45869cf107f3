"""Verification of balances: what a balance leaves out is found, although it says itself which days it counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from budget_service.ledger.balances import Balance
from budget_service.ledger.values import NOTHING, Cost, Limit, Unit
from budget_service.ledger.verification import Difference, Sum
from budget_service.ledger.windows import DAY, Period, Window
from budget_service.server.audit import Verification, verify
from tests.support.budget_samples import ANALYST, COMPANY, SteppedClock, charge, levels, limit, reserve
from tests.unit.budget_service.memory_store import MemoryStore

WINDOWS = [limit(90, 90), limit(90, 90, days=7), limit(90, 90, period=Period.NEVER)]


def begun_today(balance: Balance) -> Balance:
    """Return a balance that has forgotten all days but the present one."""
    today = balance.day.start
    return replace(
        balance,
        window=Window(today, balance.window.end),
        reserved_since=today,
        earlier=(),
        spent=balance.today,
        reserved=NOTHING,
    )


async def differences(store: MemoryStore) -> list[Difference]:
    """Verify the root."""
    found = Verification()
    await verify(store, COMPANY.root, found)
    return found.differences


@pytest.mark.parametrize("own", WINDOWS, ids=["month", "sliding", "never"])
async def test_a_balance_that_has_begun_anew_is_found(clock: SteppedClock, own: Limit) -> None:
    """Its sums agree with each other, and every day is there, but the days before are not counted."""
    store, on = MemoryStore(clock), levels(own=own)
    await store.apply(*charge("yesterday", Cost(4, 1), on=on))
    clock.step(days=1)
    await store.apply(*charge("today", Cost(2, 1), on=on))
    assert await differences(store) == []
    store.kept[ANALYST] = begun_today(store.kept[ANALYST])
    start = store.kept[ANALYST].window.start
    assert [
        Difference(ANALYST, Unit.INFORMATION, Sum.SPENT, start, 2, 6),
        Difference(ANALYST, Unit.CALLS, Sum.SPENT, start, 1, 2),
    ] == await differences(store)


@pytest.mark.parametrize("own", WINDOWS, ids=["month", "sliding", "never"])
async def test_a_balance_that_leaves_out_what_is_held_since_yesterday_is_found(
    clock: SteppedClock, own: Limit
) -> None:
    """A reservation of the evening before, where the window goes on."""
    store, on = MemoryStore(clock), levels(own=own)
    clock.now += DAY - clock.now % DAY - 10_000_000
    await store.apply(*reserve("r", Cost(4, 1), on=on))
    clock.step(seconds=20)
    await store.apply(*charge("today", Cost(2, 1), on=on))
    assert await differences(store) == []
    store.kept[ANALYST] = begun_today(store.kept[ANALYST])
    assert [
        Difference(ANALYST, Unit.INFORMATION, Sum.RESERVED, None, 0, 4),
        Difference(ANALYST, Unit.CALLS, Sum.RESERVED, None, 0, 1),
    ] == await differences(store)
