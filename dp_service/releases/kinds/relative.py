"""Counts of a small known domain relative to their total, which is released with them: counts are multiples of 1 / b.

The interval of the total is plain, since nothing selects it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import Shift, ShiftedCounts
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.intervals import CountIntervals
from dp_service.noise.source import KeyedNoise
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.kinds.bounded import Bounded, bound_of, contributions_of
from dp_service.releases.kinds.kind import Fields
from dp_service.releases.kinds.parts import IncompleteParametersError, made, some_intervals
from dp_service.releases.kinds.views import IntervalKind, ReleaseView, Total
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement
from dp_service.terms import Element


@dataclass(frozen=True, eq=False)
class Relative(Bounded[Shift]):
    """Counts b x_i - a n and the number n of members, each with noise of their own."""

    @classmethod
    def of(cls, parameters: ReleaseParameters, currency: Currency) -> Relative:
        """Return the kind with its mechanism."""
        stated, size = contributions_of(parameters), len(parameters.domain or ())
        bound = bound_of(stated, parameters.tau)
        return cls(parameters, made(Shift, currency, Fraction(stated.units), bound, size))

    @property
    def looks_said(self) -> Fields:
        """What a message says of how it looks at the data."""
        factor, denominator = self.mechanism.factors
        own = {
            "factor": factor,
            "denominator": denominator,
            "count_variance": self.mechanism.count_variance,
            "total_variance": self.mechanism.total_variance,
        }
        return {"shift": own}

    @property
    def count_variance(self) -> Fraction:
        """The variance of the error of a count: the sum of two draws."""
        return self.mechanism.error_variance

    @property
    def denominator(self) -> int:
        """b."""
        return self.mechanism.factors[1]

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Draw noise for all counts and for the total."""
        if rows.total is None:
            raise IncompleteParametersError
        found = self.mechanism.run(Histogram.from_element_order(rows.counts), rows.total, noise)
        return MechanismOutput(found.selection(), total=found.total)

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what bounding means, and what counts are relative to."""
        yield from super().meaning(columns, confidence)
        a, b = self.mechanism.factors
        yield Statement(
            "counts.relative",
            f"Counts are released relative to the number of members who count in any element: {b} times each count "
            f"less {a} times that number, and the number itself, each with noise of its own. So counts are multiples "
            f"of 1/{b}, and their noise is the sum of two draws.",
            values=(str(a), str(b)),
        )
        if self.parameters.sums is not None:
            yield from self.of_numbers(self.parameters.sums)

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the first counts, and the total."""
        count, released = self.shown_count(drawn), self._released(drawn)
        total = Total(released.total, released.total_interval(alpha=alpha))
        if not self.parameters.with_counts:
            return ReleaseView(count, None, IntervalKind.NONE, total=total)
        found = some_intervals(released.intervals(count, alpha=alpha))
        kind = IntervalKind.PLAIN if count == released.moved.size else IntervalKind.GIVEN_SHOWN
        return ReleaseView(count, found, kind, total=total)

    def _released(self, drawn: MechanismOutput) -> ShiftedCounts:
        if drawn.total is None:
            raise ValueError("counts relative to a total have one")
        return ShiftedCounts.from_selection(self.mechanism, drawn.selection, drawn.total)

    def shown_rows(self, drawn: MechanismOutput, rows: tuple[int, ...], alpha: Fraction) -> ReleaseView:
        """Return some rows of the list of counts that shows everything."""
        view = self.shown(drawn, alpha)
        if view.intervals is None:
            return view
        places = np.array(rows, dtype=np.int64)
        some = CountIntervals(view.intervals.lower[places], view.intervals.upper[places])
        return ReleaseView(len(rows), some, view.interval_kind, total=view.total)
