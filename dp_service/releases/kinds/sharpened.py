"""A look more at elements that are known, and the counts of all looks at them together.

A look more is `BoundGauss` over a known domain: the names of two looks, or the domain of the question. It costs its
units and no call. The names are what a release has shown, so they are public to the account that asks. Why the result
is private: docs/proofs/bounded-contributions.md, section 4.

It is a release of its own. Its specification has the names as its domain, and the units and release ids of the looks
before it (`LooksBefore`). So its noise is that of no other look, and it is combined with exactly these: they have the
same data version, salt, bound and tau, because the first of them is the release of the same question by the same
policy on the same data.

Combining is post-processing, by `mechanisms.bounded.sharpening`. Which intervals are true depends on why one asked:

- *Planned*: all units were fixed before any count was seen. Intervals come from the exact law of the combined noise.
- *Otherwise* one may have chosen to ask, and chosen the units, because of the noise that was shown. The last
  look's noise is independent of all that: its own intervals cover whatever led to it. They are extended to the
  combined count where that lies outside, which only lets them cover more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded import BoundGauss, CombinedLaw, Sharpened, sharpened
from dp_service.mechanisms.bounded.sum_intervals import CountInterval
from dp_service.mechanisms.intervals import CountIntervals
from dp_service.parameters.contributions import LooksBefore
from dp_service.queries.errors import QuestionError
from dp_service.releases.kinds.bounded import BoundedCounts, look_intervals
from dp_service.releases.kinds.kind import Fields
from dp_service.releases.kinds.parts import IncompleteParametersError, counts_of, some_intervals
from dp_service.releases.kinds.views import Counts, IntervalKind, ReleaseView, ShownSharpened
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement, units, written

# No count that is real reaches it, whatever the weights; what a message holds does not have to.
_FARTHEST = 2**62

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LookMore(BoundedCounts):
    """Counts of a look more, that are combined with those of the looks before it."""

    counts_called = "Counts of this look"

    @property
    def before(self) -> LooksBefore:
        """The looks before it."""
        if self.stated.before is None:
            raise IncompleteParametersError
        return self.stated.before

    @cached_property
    def looks(self) -> tuple[BoundGauss, ...]:
        """All looks that are combined, the present one last."""
        return (*(replace(self.look, units=units) for units in self.before.units), self.look)

    @cached_property
    def law(self) -> CombinedLaw:
        """How they are combined."""
        return CombinedLaw.of(self.looks)

    @property
    def looks_said(self) -> Fields:
        """What a message says of how it looks at the data."""
        own = {
            "units_before": self.before.units,
            "denominator": self.law.denominator,
            "noise_variance": self.law.variance,
            "planned": self.before.planned,
        }
        return {"sharpened": own}

    def require_answerable(self) -> None:
        """Refuse units whose combined law has too many values. All of that follows from the units and the policy."""
        try:
            noise = self.law.noise()
        except ValueError:
            raise unusable_units() from None
        if self.before.planned and not noise.is_added_up_soon:
            raise QuestionError(
                "sharpening.planned",
                "expected false: the exact law of so many looks, or of noise so large, takes too long to add up; "
                "without it intervals are those of the last look",
            )

    @property
    def _error_variance(self) -> Fraction:
        return self.law.variance if self.before.planned else self.count_variance

    @property
    def _domain(self) -> str:
        return "the elements of a release that is paid for"

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what bounding means, and what the counts of all looks are together."""
        yield from super().meaning(columns, confidence)
        before = self.before.units
        looks = "the look before it" if len(before) == 1 else f"the {len(before)} looks before it"
        yield Statement(
            "counts.combined",
            f"A look more, for {units(self.look.units)}, counts them again with noise of its own. It is combined with "
            f"{looks}, for {', '.join(map(written, before))} units: combined counts carry noise of standard deviation "
            f"{math.sqrt(self.law.variance):.6f}.",
        )
        if self.before.planned:
            yield Statement("intervals.planned", _PLANNED)
        else:
            yield Statement("intervals.last_look", _LAST_LOOK)

    def together(
        self, drawn: MechanismOutput, before: Sequence[Integers], *, confidence: float
    ) -> ShownSharpened:
        """Return what a question shows of the looks together."""
        ranks, counts = drawn.selection.indices, counts_of(drawn)
        last = np.empty_like(counts)
        last[ranks] = counts
        found = _Together(self.look, sharpened(list(self.looks), [*before, last]), last, before)
        count = self.shown_count(drawn)
        intervals, kind = None, IntervalKind.NONE
        if self.parameters.with_counts:
            kind = IntervalKind.PLAIN if count == ranks.size else IntervalKind.GIVEN_SHOWN
            alpha = 1 - Fraction(str(confidence))
            intervals = found.intervals(count, alpha, planned=self.before.planned)
        rows = np.argsort(ranks)[found.ranking[:count]]
        view = ReleaseView(count, intervals, kind, rows=tuple(rows.tolist()))
        values = [min(max(found.combined.values[rank], -_FARTHEST), _FARTHEST) for rank in ranks.tolist()]
        return ShownSharpened(view, Counts(np.array(values, dtype=np.int64), self.law.denominator))


_PLANNED = (
    "Intervals are of the combined counts: they hold if all units were decided on before any count was seen."
)
_LAST_LOOK = (
    "Intervals are those of this look's own noise, extended to the combined count where that lies outside. Each holds "
    "whatever led to this look; who may stop after any of j looks asks with a confidence of 1 - alpha / j."
)


def unusable_units() -> QuestionError:
    """Return what is wrong with units for which no noise can be drawn or combined."""
    return QuestionError(
        "sharpening.units",
        "expected units for which noise can be drawn and combined with that of the looks before: round numbers, "
        "near the policy's own",
    )


@dataclass(frozen=True)
class _Together:
    """The last look, what it and those before it give together, and the counts of all in ascending order of names."""

    look: BoundGauss
    combined: Sharpened
    last: Integers
    before: Sequence[Integers]

    @cached_property
    def ranking(self) -> list[int]:
        """The names by descending combined count."""
        return self.combined.ranking()

    def intervals(self, count: int, alpha: Fraction, *, planned: bool) -> CountIntervals:
        """Return the intervals of the first names of the ranking."""
        if planned:
            return some_intervals(self.combined.intervals(count, alpha=alpha))
        own = self._own_intervals(count, alpha)
        ends = zip(own.lower.tolist(), own.upper.tolist(), self.ranking[:count], strict=True)
        return some_intervals(
            [
                _extended(CountInterval(lower, upper), self.combined.values[name], self.combined.denominator)
                for lower, upper, name in ends
            ]
        )

    def _own_intervals(self, count: int, alpha: Fraction) -> CountIntervals:
        """Return those of the last look's noise, true given all looks before and that the names are shown."""
        shown = self.ranking[:count]
        thresholds = None
        if count < len(self.ranking):
            cut_off = self.ranking[count]
            thresholds = np.array([self._threshold(name, cut_off) for name in shown], dtype=np.int64)
        return look_intervals(self.look, self.last[shown], thresholds, alpha)

    def _threshold(self, name: int, cut_off: int) -> int:
        """Return the last noisy count that a name had to have at least, given the other looks and names."""
        *weights, own = self.combined.noise.weights
        needed = self.combined.values[cut_off] + (name > cut_off)
        held = sum(weight * int(counts[name]) for weight, counts in zip(weights, self.before, strict=True))
        return max(-((held - needed) // own), -_FARTHEST)


def _extended(interval: CountInterval, value: int, denominator: int) -> CountInterval:
    """Return an interval with the combined count value / denominator; counts are not negative."""
    below, above = value // denominator, -(-value // denominator)
    return CountInterval(max(min(interval.lower, below), 0), max(interval.upper, above))
