"""The journal added up anew, and compared with the balances that the ledger keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from budget_service.ledger.balances import Balance
from budget_service.ledger.state import JournalEntry, Reservation
from budget_service.ledger.values import NOTHING, Account, Cost, Unit
from budget_service.ledger.windows import Microseconds


class Sum(Enum):
    """What was added up."""

    SPENT = "spent"
    RESERVED = "reserved"


@dataclass(frozen=True, slots=True)
class Difference:
    """A sum of one level that is not what it should be; `start` is that of its span, None for what is reserved."""

    level: Account
    unit: Unit
    sum: Sum
    start: Microseconds | None
    kept: int
    rebuilt: int


@dataclass
class Rebuilt:
    """What the journal says was spent, by level and start of span; give it every entry once, in any order."""

    entries: int = 0
    spent: dict[Account, dict[Microseconds, Cost]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, entry: JournalEntry) -> None:
        """Count one entry in all its spans."""
        self.entries += 1
        for hold in entry.holds:
            spans = self.spent[entry.account.level(hold.depth)]
            spans[hold.window_start] = spans.get(hold.window_start, NOTHING) + entry.cost

    def differences(
        self, level: Account, balance: Balance, held: Iterable[tuple[Microseconds, Cost]]
    ) -> Iterator[Difference]:
        """Compare a balance with the journal up to its moment, and with what was `held` at its level then."""
        spans = self.spent.get(level, {})
        kept = {day.start: day.spent for day in balance.earlier} | {balance.window.start: balance.today}
        # A span that is newer than the last one would be a balance that was lost or set back.
        newer = {start: NOTHING for start in spans if start > balance.window.start}
        for start, spent in (newer | kept).items():
            yield from _compared(level, Sum.SPENT, start, spent, spans.get(start, NOTHING))
        reserved = sum((cost for start, cost in held if start >= balance.reserved_since), NOTHING)
        yield from _compared(level, Sum.RESERVED, None, balance.reserved, reserved)

    def missing(self, levels: Iterable[Account]) -> Iterator[Difference]:
        """Return what was last charged at levels that have no balance."""
        for level in levels:
            start = max(self.spent[level])
            yield from _compared(level, Sum.SPENT, start, NOTHING, self.spent[level][start])


def held_by_level(reservations: Iterable[Reservation]) -> dict[Account, list[tuple[Microseconds, Cost]]]:
    """Return what open reservations hold at each level, with the start of the span that admitted it."""
    held: dict[Account, list[tuple[Microseconds, Cost]]] = defaultdict(list)
    for reservation in reservations:
        for hold in reservation.holds:
            level = reservation.account.level(hold.depth)
            held[level].append((hold.window_start, reservation.held))
    return held


def _compared(
    level: Account, which: Sum, start: Microseconds | None, kept: Cost, rebuilt: Cost
) -> Iterator[Difference]:
    for unit in Unit:
        if kept.of(unit) != rebuilt.of(unit):
            yield Difference(level, unit, which, start, kept.of(unit), rebuilt.of(unit))
