"""How soon limits would have been exhausted: figure 5 of the paper (arXiv 2002.05839), from the journal."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from budget_service.ledger.requests import parse_move
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import NOTHING, Account, Cost, Unit, capped_sum
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
    """The charges of the accounts with `depth` segments on each of `days` days of 24 hours since `start`."""

    start: Microseconds
    days: int
    depth: int
    spent: dict[Account, dict[int, Cost]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, entry: JournalEntry) -> None:
        """Count one entry if it is of such an account and time; an account that was moved is one account."""
        if entry.kind is EntryKind.MOVE and entry.account in self.spent:
            self.spent[parse_move(entry.reason)[0]] = self.spent.pop(entry.account)
        if not entry.kind.is_charge:
            return
        day = (entry.time - self.start) // DAY
        if 0 <= day < self.days and entry.account.depth >= self.depth:
            sums = self.spent[entry.account.level(self.depth)]
            sums[day] = capped_sum((sums.get(day, NOTHING), entry.cost_at(self.depth)))

    def curve(self, unit: Unit, limit: int) -> Curve:
        """Return how a limit would have been exhausted."""
        first = [0] * self.days
        for sums in self.spent.values():
            total = 0
            for day in sorted(sums):
                total += sums[day].of(unit)
                if total >= limit:
                    first[day] += 1
                    break
        return Curve(unit, limit, tuple(sum(first[: day + 1]) for day in range(self.days)))
