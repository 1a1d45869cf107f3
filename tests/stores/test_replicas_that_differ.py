"""Replicas whose files have other windows, in other zones, for the same levels, and that take turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from budget_service.ledger.outcomes import Charged, Reserved
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit
from budget_service.ledger.windows import DAY, SECOND, Microseconds, Period
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_samples import ANALYST, COLLEAGUE, SteppedClock, charge, limit, reserve
from tests.support.some import some
from tests.unit.budget_service.memory_store import MemoryStore

ZONES = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Apia")
RULES = (
    {"period": Period.DAY},
    {"period": Period.WEEK},
    {"period": Period.MONTH},
    {"period": Period.NEVER},
    {"days": 2},
    {"days": 9},
)
# A day of one zone is in two of another, and counts in a window that it is partly in.
MOST_TOO_EARLY = 2 * DAY


@dataclass
class World:
    """A ledger, and what was charged or is held: when it was admitted, by whom, and how much."""

    store: Store
    clock: SteppedClock
    random: Random
    replicas: tuple[tuple[Limit | None, Limit], ...]
    charged: list[tuple[Microseconds, Account, Cost]] = field(default_factory=list)
    asked: int = 0

    @staticmethod
    def of(seed: int, store: Store, clock: SteppedClock) -> World:
        """Let three replicas have limits of their own for the company, or none, and for its analysts."""
        random = Random(seed)

        def any_limit(information: int) -> Limit:
            return limit(information, 1000, zone=random.choice(ZONES), **random.choice(RULES))

        replicas = tuple(
            (random.choice((None, any_limit(60), any_limit(60))), any_limit(30)) for _ in range(3)
        )
        return World(store, clock, random, replicas)

    def levels(self, account: Account, replica: tuple[Limit | None, Limit]) -> tuple[LevelLimit, ...]:
        """Return the limits of an account as a replica has them."""
        above, own = replica
        company = () if above is None else (LevelLimit(account.level(1), above),)
        return (*company, LevelLimit(account, own))

    async def step(self) -> None:
        """Let some time pass and one replica take a request; then see what every replica reads."""
        self.clock.step(seconds=self.random.choice((1, 1, 600, 3600, 5 * 3600, 30 * 3600)))
        account = self.random.choice((ANALYST, COLLEAGUE))
        cost = Cost(self.random.randint(1, 9), 1)
        on = self.levels(account, self.random.choice(self.replicas))
        self.asked += 1
        if self.random.random() < 0.3:
            await self._settled_across_time(account, cost, on)
        else:
            direct = charge(f"c{self.asked}", cost, account=account, on=on)
            if isinstance((await self.store.apply(*direct)).outcome, Charged):
                self.charged.append((self.clock.now, account, cost))
        await self.compare()

    async def _settled_across_time(self, account: Account, cost: Cost, on: tuple[LevelLimit, ...]) -> None:
        """Reserve by one replica and settle by another one, perhaps on another day."""
        asked = reserve(f"r{self.asked}", cost, account=account, on=on, ttl_seconds=600)
        if not isinstance((await self.store.apply(*asked)).outcome, Reserved):
            return
        admitted = self.clock.now
        self.clock.step(seconds=self.random.randint(1, 599))
        other = self.levels(account, self.random.choice(self.replicas))
        settled = charge(f"s{self.asked}", cost, account=account, on=other, settles=f"r{self.asked}")
        assert isinstance((await self.store.apply(*settled)).outcome, Charged)
        self.charged.append((admitted, account, cost))

    async def compare(self) -> None:
        """No replica counts less than was charged in its window, nor anything from long before."""
        for replica in self.replicas:
            for account in (ANALYST, COLLEAGUE):
                on = self.levels(account, replica)
                found = (await self.store.read(account, on)).levels
                for each, status in zip(on, found, strict=True):
                    first = each.limit.window.around(self.clock.now).counts_from
                    assert self._sum(each.level, first) <= status.spent.information
                    assert status.spent.information <= self._sum(each.level, first - MOST_TOO_EARLY)

    def _sum(self, level: Account, since: Microseconds) -> int:
        return sum(
            cost.information
            for admitted, account, cost in self.charged
            if admitted >= since and account.level(level.depth) == level
        )


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 6))
async def test_no_replica_counts_less_than_was_charged_in_its_window(first: int) -> None:
    """Whatever windows and zones the others have, through days and months; and the sums are the journal's."""
    for seed in range(first, first + 6):
        clock = SteppedClock()
        world = World.of(seed, MemoryStore(clock), clock)
        for _ in range(80):
            await world.step()
        found = Verification()
        await verify(world.store, ANALYST.root, found)
        assert found.differences == []
        assert world.charged


async def test_stores_count_alike_for_replicas_that_differ(any_store: Store, clock: SteppedClock) -> None:
    """The same, of two histories, on every store."""
    world = World.of(7, any_store, clock)
    for _ in range(40):
        await world.step()
    found = Verification()
    await verify(any_store, ANALYST.root, found)
    assert found.differences == []


@pytest.mark.slow
async def test_replicas_that_take_turns_leave_a_row_for_each_day_and_zone(
    any_store: Store, clock: SteppedClock
) -> None:
    """However often they do: a level has no more past days than the days on which it was used, in each zone."""
    days, zones = 6, ZONES[:3]
    replicas = [
        limit(10_000, 10_000, zone=zone, period=period)
        for zone in zones
        for period in (Period.DAY, Period.MONTH)
    ]
    # A day of UTC is cut in three by the midnights of Tokyo and Los Angeles; each part has two turns or more.
    for number in range(days * 8):
        for index, each in enumerate(replicas):
            on = (LevelLimit(ANALYST.level(1), each), LevelLimit(ANALYST, each))
            await any_store.apply(*charge(f"c{number}.{index}", Cost(1, 1), on=on))
        clock.now += 3 * 3600 * SECOND
    page = await any_store.balances(ANALYST.root, "", 100)
    for level, _ in some(page.balances):
        assert days <= len(page.past[level]) <= (days + 1) * len(zones)
