"""What a region has done since it started; never by account."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from budget_service.ledger.values import Cost, Unit


@dataclass
class Counts:
    """Events of a region, and in units what was borrowed, charged, given back and lost."""

    granted: int = 0
    forwarded: int = 0
    trips: int = 0
    renewed: int = 0
    given_back: int = 0
    lapsed: int = 0
    unknown: int = 0
    wrong_clock: int = 0
    units: Counter[tuple[str, Unit]] = field(default_factory=Counter)

    @property
    def events(self) -> dict[str, int]:
        """How often each event happened."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "units"}

    def add(self, what: str, cost: Cost) -> None:
        """Count what was borrowed, charged, given back or lost."""
        for unit in Unit:
            self.units[what, unit] += cost.of(unit)
