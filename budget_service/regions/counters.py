"""What a region has done since it started, and how its home and its clock are; never by account."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from budget_service.ledger.values import Cost, Unit
from budget_service.ledger.windows import Microseconds

_NO_EVENTS = ("units", "clock_difference")


@dataclass
class RegionCounters:
    """Events of a region, and in units what was borrowed, charged, given back and lost.

    Every call of the home was `answered`, `refused` (it lends nothing, or takes nothing back) or `unanswered`.
    `clock_difference` is by how much this clock was ahead of the home's, at least, when a lease was granted last.
    """

    granted: int = 0
    forwarded: int = 0
    answered: int = 0
    refused: int = 0
    unanswered: int = 0
    trips: int = 0
    renewed: int = 0
    given_back: int = 0
    lapsed: int = 0
    unknown: int = 0
    wrong_clock: int = 0
    units: Counter[tuple[str, Unit]] = field(default_factory=Counter)
    clock_difference: Microseconds = 0

    @property
    def events(self) -> dict[str, int]:
        """How often each event happened."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _NO_EVENTS}

    def add(self, what: str, cost: Cost) -> None:
        """Count what was borrowed, charged, given back or lost."""
        for unit in Unit:
            self.units[what, unit] += cost.of(unit)
