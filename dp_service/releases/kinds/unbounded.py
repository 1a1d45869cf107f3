"""What counts without a bound have in common: one draw for all of them, and a list that may end in bottom."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from dp_service.mechanisms import KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.intervals import CountIntervals
from dp_service.noise.source import KeyedNoise
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.kinds.kind import Kind
from dp_service.releases.kinds.views import IntervalKind, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.terms import Element

_Mechanism = TypeVar("_Mechanism", bound=KnownLap | UnkLap | KnownGumb | UnkGumb)


@dataclass(frozen=True, eq=False)
class Unbounded(Kind[_Mechanism]):
    """Counts of members whose contributions are not bounded."""

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Draw noise for all counts, or choose elements and draw noise for theirs."""
        return MechanismOutput(self.mechanism.run(Histogram.from_element_order(rows.counts), noise))

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the first elements, with their intervals."""
        count = self.shown_count(drawn)
        ended = drawn.selection.ended_in_bottom and count == drawn.selection.indices.size
        if not self.parameters.with_counts:
            return ReleaseView(count, None, IntervalKind.NONE, ended)
        intervals, kind = self.intervals(drawn, count, alpha)
        return ReleaseView(count, intervals, kind, ended)

    @abstractmethod
    def intervals(
        self, drawn: MechanismOutput, count: int, alpha: Fraction
    ) -> tuple[CountIntervals, IntervalKind]:
        """Return the intervals of the first elements, and under which condition they hold."""

    @property
    def least_shown(self) -> int:
        """The least that a count can be: an element of an unknown domain is shown only if a member has it."""
        return 0 if self.parameters.domain is not None else 1

    def _count_scale(self) -> Fraction:
        return 1 / self.mechanism.count_inverse_scale
