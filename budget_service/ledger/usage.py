"""How soon limits would have been exhausted: figure 5 of the paper (arXiv 2002.05839), from the journal."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import NOTHING, Account, Cost, Unit, blocks_of, capped_sum
from budget_service.ledger.windows import DAY, Microseconds

MAX_DAYS = 400


@dataclass(frozen=True, slots=True)
class Curve:
    """For each day since the refresh, how many accounts had been charged `limit` or more by its end."""

    unit: Unit
    limit: int
    exhausted: tuple[int, ...]


@dataclass
class Usage:
    """The charges of the accounts with `depth` segments on each of `days` days of 24 hours since `start`.

    `spent` has those that everybody paid, under no name, apart from those of each block alone: what an account has
    spent is that of its block with most, since no member pays for two.
    """

    start: Microseconds
    days: int
    depth: int
    spent: dict[Account, dict[str, dict[int, Cost]]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, entry: JournalEntry) -> None:
        """Count one entry if it is of such an account and time."""
        if not entry.kind.is_charge:
            return
        day = (entry.time - self.start) // DAY
        if 0 <= day < self.days and entry.account.depth >= self.depth:
            for block in blocks_of(entry.holds) or ("",):
                sums = self.spent[entry.account.level(self.depth)].setdefault(block, {})
                sums[day] = capped_sum((sums.get(day, NOTHING), entry.cost_at(self.depth)))

    def curve(self, unit: Unit, limit: int) -> Curve:
        """Return how a limit would have been exhausted."""
        first = [0] * self.days
        for sums in self.spent.values():
            totals = dict.fromkeys(sums, 0)
            for day in sorted({day for each in sums.values() for day in each}):
                for block, each in sums.items():
                    totals[block] += each.get(day, NOTHING).of(unit)
                if totals.get("", 0) + max((totals[block] for block in sums if block), default=0) >= limit:
                    first[day] += 1
                    break
        return Curve(unit, limit, tuple(sum(first[: day + 1]) for day in range(self.days)))
