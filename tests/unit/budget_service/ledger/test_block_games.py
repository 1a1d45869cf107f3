"""Small games of two blocks, played to their ends: the ledger's own rules admit what an analyst asks.

A member is of block A. A question that A pays for is a step that may reveal something; one that only B pays for has the
same law whether the member is there or not. However an analyst goes on, no more than the budget is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import pytest

from budget_service.ledger.outcomes import Charged
from budget_service.ledger.values import Cost, LevelLimit
from tests.support.budget_samples import ANALYST, COMPANY, SteppedClock, charge, limit
from tests.unit.budget_service.memory_store import MemoryStore

A, B = "00000000000000aa", "00000000000000bb"
ASKED = {"A": (A,), "B": (B,), "AB": (A, B), "all": ()}
REVEALING = ("A", "AB", "all")
E = 1.0
HALVES = (0, 1, 2)
"""What a step may reveal at least of the range e, in halves of it; the rest is above."""

Asks = tuple[str, ...]


def chances(halves: int) -> float:
    """Return p_t of the two-point step with t = halves e / 2."""
    return (math.exp(E) - math.exp(halves * E / 2)) / math.expm1(E)


async def admitted(asks: Asks, budget: int, above: int) -> bool:
    """Return whether the ledger admits questions of one unit each, in this order."""
    store = MemoryStore(SteppedClock())
    on = (LevelLimit(COMPANY, limit(above, 100)), LevelLimit(ANALYST, limit(budget, 100)))
    for place, name in enumerate(asks):
        asked = charge(f"c{place}", Cost(1, 1), on=on, release_id=f"r{place}").but(blocks=ASKED[name])
        if not isinstance((await store.apply(*asked)).outcome, Charged):
            return False
    return True


async def courses(budget: int, above: int) -> dict[Asks, list[Asks]]:
    """Return what may follow each course of the game; the order of what was asked makes no difference to sums."""
    found: dict[Asks, list[Asks]] = {}
    waiting: list[Asks] = [()]
    while waiting:
        asks = waiting.pop()
        if asks in found:
            continue
        further = [(*asks, name) for name in ASKED if await admitted((*asks, name), budget, above)]
        found[asks] = [tuple(sorted(each)) for each in further]
        waiting += found[asks]
    return found


@pytest.mark.parametrize(("budget", "above"), [(1, 9), (2, 9), (3, 9), (9, 2)])
async def test_no_strategy_over_two_blocks_reveals_more_than_the_budget(budget: int, above: int) -> None:
    """The best of all strategies is exactly that of so many steps, at every epsilon that is looked at."""
    least = min(budget, above)
    after = await courses(budget, above)
    # Blocks are worth something: of A and B each the whole budget is asked.
    assert tuple(sorted(["A", "B"] * least)) in after

    @cache
    def best(asks: Asks, x: int) -> float:
        """Return the largest delta from here on, at a ratio of exp(x / 2)."""
        found = max(0.0, 1 - math.exp(x * E / 2))
        for further in after[asks]:
            reveals = any(further.count(name) > asks.count(name) for name in REVEALING)
            found = max(found, steps(partial(best, further), x) if reveals else best(further, x))
        return found

    @cache
    def of_steps(left: int, x: int) -> float:
        """Return V, the largest delta of so many steps and no others."""
        stopped = max(0.0, 1 - math.exp(x * E / 2))
        return max(stopped, steps(partial(of_steps, left - 1), x)) if left else stopped

    for x in range(-2, 2 * least + 1):
        assert best((), x) == pytest.approx(of_steps(least, x), abs=1e-12)


def steps(value: Callable[[int], float], x: int) -> float:
    """Return the most that one two-point step leads to."""
    return max(chances(t) * value(x - t) + (1 - chances(t)) * value(x + 2 - t) for t in HALVES)
