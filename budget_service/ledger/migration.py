"""Migrates a root account of an older ledger: until then only levels with a limit were counted, and not by the day.

Each level gets its days from the journal. What a charge does not say, because the level had no limit then, is taken
from its time. A balance is found anew from the days when it is next used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.state import JournalEntry, Reservation
from budget_service.ledger.values import NOTHING, Account, Cost, Hold
from budget_service.ledger.verification import Checkpoint, Rebuilt, by_day, counted_levels
from budget_service.ledger.windows import DAY, DaySpan, Microseconds


@dataclass(frozen=True, slots=True)
class Migrated:
    """What takes the place of a root's balances and reservations, and the past days of its levels."""

    balances: Mapping[Account, Balance]
    past: Mapping[Account, tuple[PastDay, ...]]
    reservations: tuple[Reservation, ...]


@dataclass
class OlderRoot:
    """Collects the journal of a root: `add` every entry after the checkpoint once, in order."""

    rebuilt: Rebuilt
    # Where days begin at each level: where entries say so, and else at the first charge of a day.
    starts: dict[Account, set[Microseconds]] = field(default_factory=lambda: defaultdict(set))
    ends: dict[Account, dict[Microseconds, Microseconds]] = field(default_factory=lambda: defaultdict(dict))

    @staticmethod
    def after(checkpoint: Checkpoint) -> OlderRoot:
        """Return what the checkpoint of a root says."""
        found = OlderRoot(Rebuilt.after(checkpoint))
        for level, spans in checkpoint.spent.items():
            found.starts[level].update(spans)
        return found

    def add(self, entry: JournalEntry) -> None:
        """Count one entry."""
        self.rebuilt.add(entry)
        if not entry.kind.is_charge:
            return
        named = {hold.depth for hold in entry.holds}
        for depth, start in counted_levels(entry):
            level = entry.account.level(depth)
            ends = self.ends[level]
            ends[start] = max(ends.get(start, 0), entry.time + 1, start + 1)
            if depth in named:
                self.starts[level].add(start)

    def migrated(
        self,
        balances: Mapping[Account, Balance],
        reservations: Iterable[Reservation],
        last_time: Microseconds,
    ) -> Migrated:
        """Return what the root becomes.

        Args:
            balances: Those of the root. Only their windows matter.
            reservations: All that have not been ended.
            last_time: The last time recorded.
        """
        held = tuple(reservations)
        below = {each.account.level(depth) for each in held for depth in range(1, each.account.depth + 1)}
        found: dict[Account, Balance] = {}
        past: dict[Account, tuple[PastDay, ...]] = {}
        for level in {*balances, *self.rebuilt.spent, *below}:
            found[level], past[level] = self._level(level, balances.get(level), last_time)
        complete = tuple(_with_all_holds(each, found) for each in held)
        for each in complete:
            for hold in each.holds:
                level = each.account.level(hold.depth)
                found[level] = found[level].with_reserved(found[level].reserved + each.held)
        return Migrated(found, past, complete)

    def _level(
        self, level: Account, balance: Balance | None, last_time: Microseconds
    ) -> tuple[Balance, tuple[PastDay, ...]]:
        spans = self.rebuilt.spent.get(level, {})
        starts = self._starts(level, balance, spans)
        if not starts:
            return Balance.without_rule(DaySpan(last_time - last_time % DAY, last_time + 1)), ()
        days = by_day(spans, starts)
        ends = self._ends(level, starts, balance, last_time)
        *before, last = starts
        present = replace(Balance.without_rule(DaySpan(last, ends[last])), today=days.get(last, NOTHING))
        return present, tuple(PastDay(each, ends[each], days.get(each, NOTHING)) for each in before)

    def _starts(
        self, level: Account, balance: Balance | None, spans: Mapping[Microseconds, Cost]
    ) -> list[Microseconds]:
        found = set(self.starts.get(level, ()))
        if balance is not None:
            found |= {balance.window.start, *(day.start for day in balance.earlier)}
        known: set[int] = set()
        for start in sorted(spans.keys() - found):
            if start // DAY not in known:
                known.add(start // DAY)
                found.add(start)
        return sorted(found)

    def _ends(
        self,
        level: Account,
        starts: list[Microseconds],
        balance: Balance | None,
        last_time: Microseconds,
    ) -> dict[Microseconds, Microseconds]:
        """Return when the last charge of each day was made, or before when it must have been."""
        found: dict[Microseconds, Microseconds] = {}
        for start, end in self.ends.get(level, {}).items():
            day = starts[max(bisect_right(starts, start) - 1, 0)]
            found[day] = max(found.get(day, 0), end)
        window_end = balance.window.end if balance is not None else None
        last = max(starts[-1], min(last_time, window_end - 1 if window_end else last_time)) + 1
        after = [*starts[1:], last]
        # Charges that only the checkpoint knows came before the next day began.
        return {
            start: found.get(start, max(end, start + 1)) for start, end in zip(starts, after, strict=True)
        }


def _with_all_holds(each: Reservation, balances: Mapping[Account, Balance]) -> Reservation:
    """Return a reservation that is also held on the levels that had no limit; one that holds nothing stays."""
    if not each.holds:
        return each
    named = {hold.depth: hold for hold in each.holds}
    holds = (
        named.get(depth) or Hold(depth, balances[each.account.level(depth)].day.start)
        for depth in range(1, each.account.depth + 1)
    )
    return replace(each, holds=tuple(holds))
