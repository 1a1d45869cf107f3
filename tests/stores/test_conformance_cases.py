"""What every store has to do where chance rarely leads: what the pure rules do, also where windows change or end."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from budget_service.ledger.act import Act
from budget_service.ledger.outcomes import Answer, Charged
from budget_service.ledger.values import Account, Cost, LevelLimit
from budget_service.ledger.windows import DAY, Period
from budget_service.stores.interface import Store
from tests.support.budget_samples import Asked, SteppedClock, charge, levels, limit, reserve
from tests.unit.budget_service.memory_store import MemoryStore

ACCOUNT = Account(("windows", "ann"))
DAYS = limit(9, 9, days=2)
ABOVE = limit(100, 100, days=3)


@dataclass
class Both:
    """A store and the pure rules, which have to agree on each answer and on each balance after it."""

    store: Store
    clock: SteppedClock
    rules: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.rules = MemoryStore(self.clock)

    async def apply(self, asked: Asked[Act]) -> Answer:
        """Ask both."""
        expected = await self.rules.apply(*asked)
        assert expected == await self.store.apply(*asked)
        return expected

    async def read(self, *on: LevelLimit) -> None:
        """Compare the balances."""
        assert await self.rules.read(ACCOUNT, on) == await self.store.read(ACCOUNT, on)


def is_free(answer: Answer) -> bool:
    """Return whether a charge was paid for before; each has to fit."""
    assert isinstance(answer.outcome, Charged)
    return answer.outcome.already_paid


def at_midnight(clock: SteppedClock, *, days: int = 0, seconds: int = 0) -> None:
    """Move the clock to the next midnight, and on."""
    clock.now += DAY - clock.now % DAY
    clock.step(days=days, seconds=seconds)


async def test_what_is_settled_after_midnight_is_paid_for_on_the_day_before(
    any_store: Store, clock: SteppedClock
) -> None:
    """The release is free while that day counts, and not as long as the day of the settlement does."""
    both = Both(any_store, clock)
    on = levels(ACCOUNT, own=DAYS, above=ABOVE)
    at_midnight(clock, seconds=-20)
    await both.apply(reserve("r", account=ACCOUNT, on=on, query_id="q"))
    at_midnight(clock, seconds=10)
    await both.apply(charge("s", account=ACCOUNT, on=on, settles="r", release_id="rel"))
    free = []
    for day in range(3):
        again = charge(f"again {day}", Cost(1, 1), account=ACCOUNT, on=on, release_id="rel", query_id="q")
        free.append(is_free(await both.apply(again)))
        await both.read(*on)
        at_midnight(clock)
    assert [True, False, True] == free


async def test_what_is_settled_where_a_level_was_added_is_paid_for_in_its_span(
    any_store: Store, clock: SteppedClock
) -> None:
    """The reservation knew only the company; the payment is kept where the analyst's days are."""
    both = Both(any_store, clock)
    company, with_own = levels(ACCOUNT.level(1), own=ABOVE), levels(ACCOUNT, own=DAYS, above=ABOVE)
    await both.apply(reserve("r", account=ACCOUNT, on=company, query_id="q"))
    await both.apply(charge("s", account=ACCOUNT, on=with_own, settles="r", release_id="rel"))
    free: list[tuple[bool, bool]] = []
    for day in range(4):
        of_day = []
        for on in (with_own, company):
            again = charge(
                f"{day} {len(on)}", Cost(1, 1), account=ACCOUNT, on=on, release_id="rel", query_id="q"
            )
            of_day.append(is_free(await both.apply(again)))
            await both.read(*on)
        free.append((of_day[0], of_day[1]))
        at_midnight(clock)
    # With the analyst's level, whose windows are two days, and by the company's alone, whose are three.
    assert [(True, False), (True, True), (False, True), (True, False)] == free


async def test_a_root_that_is_charged_nothing_has_no_entry_though_worst_cases_count_above(
    any_store: Store, clock: SteppedClock
) -> None:
    """There is no level above a root that could count what was held."""
    both = Both(any_store, clock)
    root = ACCOUNT.level(1)
    on = levels(root, own=ABOVE)
    await both.apply(reserve("r", account=root, on=on))
    settled = charge("s", Cost(0, 0), account=root, on=on, settles="r", release_id="rel")
    await both.apply(settled.but(worst_case_above=True))
    assert await any_store.journal(root.root, "", "", 10) == []
    assert await both.rules.read(root, on) == await any_store.read(root, on)


@pytest.mark.slow
@pytest.mark.parametrize("days_between", [0, 1, 2])
async def test_a_day_counts_as_long_as_the_present_rule_says(
    any_store: Store, clock: SteppedClock, days_between: int
) -> None:
    """Each window is changed into each other one some days after a charge, and the days after that are compared."""
    rules = [
        limit(9, 9, days=2),
        limit(9, 9, days=4),
        limit(9, 9, period=Period.DAY),
        limit(9, 9, period=Period.WEEK),
        limit(9, 9, period=Period.NEVER),
    ]
    both = Both(any_store, clock)
    changes = {
        Account((ACCOUNT.root, f"a{index}")): pair
        for index, pair in enumerate(itertools.product(rules, rules))
    }
    # Often one unit alone, so that each is seen to count by itself.
    costs = itertools.cycle([Cost(2, 1), Cost(0, 1), Cost(1, 0)])
    for day in range(6 + days_between):
        for account, (before, after) in changes.items():
            on = levels(account, own=before if day < days_between else after)
            cost = Cost(0, 1) if day == days_between else next(costs)
            if day == 0:
                first = charge(
                    f"{account.text} first", Cost(2, 1), account=account, on=levels(account, own=before)
                )
                await both.apply(first)
            await both.apply(charge(f"{account.text} {day}", cost, account=account, on=on))
            assert await both.rules.read(account, on) == await any_store.read(account, on)
        at_midnight(clock)
