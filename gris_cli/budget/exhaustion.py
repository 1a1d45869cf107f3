"""How soon limits would have been exhausted: figure 5 of the paper (arXiv 2002.05839), from the journal."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from gris_api.budget.v1 import admin_pb2

DAY = 86_400_000_000
_CHARGES = (
    admin_pb2.CHARGE_KIND_SETTLED,
    admin_pb2.CHARGE_KIND_DIRECT,
    admin_pb2.CHARGE_KIND_FORFEITED,
    admin_pb2.CHARGE_KIND_LOST,
)
# A unit, a block or nothing, and a day.
_Key: TypeAlias = tuple[str, str, int]


@dataclass
class Exhaustion:
    """The charges of the accounts with `depth` segments on each of `days` days of 24 hours since `start`.

    What everybody paid is under no block, apart from what each block paid alone: what an account has spent is that of
    its block with most, since no member pays for two.
    """

    start: int
    days: int
    depth: int
    spent: dict[tuple[str, ...], dict[_Key, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )

    def add(self, entry: admin_pb2.JournalEntry) -> None:
        """Count one entry if it is a charge of such an account and time."""
        path, day = tuple(entry.account.path), (entry.time.ToMicroseconds() - self.start) // DAY
        if entry.kind not in _CHARGES or not 0 <= day < self.days or len(path) < self.depth:
            return
        is_shared = entry.HasField("shared_cost") and self.depth < len(path)
        cost = entry.shared_cost if is_shared else entry.cost
        sums = self.spent[path[: self.depth]]
        for block in entry.cost.blocks or ("",):
            sums["information", block, day] += cost.information
            sums["calls", block, day] += cost.calls

    def exhausted(self, unit: str, limit: int) -> list[int]:
        """Return for each day how many accounts had been charged the limit or more by its end."""
        first = [day for sums in self.spent.values() if (day := _first(sums, unit, limit)) is not None]
        return [sum(each <= day for each in first) for day in range(self.days)]


def _first(sums: dict[_Key, int], unit: str, limit: int) -> int | None:
    """Return the first day by whose end an account had been charged the limit or more."""
    totals: dict[str, int] = defaultdict(int)
    for day in sorted({day for _, _, day in sums}):
        for (name, block, when), amount in sums.items():
            if (name, when) == (unit, day):
                totals[block] += amount
        if totals[""] + max((total for block, total in totals.items() if block), default=0) >= limit:
            return day
    return None
