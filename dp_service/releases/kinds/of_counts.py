"""Numbers that are computed of an answer's counts alone: whatever kind it is, its release is that of the counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.parameters.aggregates import SumsReleased
from dp_service.parameters.numbers import THE_COUNT, Computed
from dp_service.releases.kinds.arithmetic import Arithmetic, Noise
from dp_service.releases.kinds.kind import AnyKind
from dp_service.releases.kinds.linear import Ends
from dp_service.releases.kinds.parts import IncompleteParametersError, counts_of
from dp_service.releases.kinds.views import IntervalKind, ReleaseView, ShownAverages
from dp_service.releases.mechanism_output import MechanismOutput


def with_numbers_of_counts(
    kind: AnyKind,
    sums: SumsReleased,
    drawn: MechanismOutput,
    shown_at: Callable[[Fraction], ReleaseView],
    alpha: Fraction,
) -> ReleaseView:
    """Return what a question shows that computes numbers of its counts.

    Args:
        kind: The kind of the question.
        sums: What it computes.
        drawn: The release.
        shown_at: What gives the counts that it shows, with their intervals at an alpha.
        alpha: The probability with which an interval may miss.
    """
    view = shown_at(alpha)
    counts = counts_of(drawn)
    step = Fraction(1, kind.denominator)
    parts = _Counts(
        [int(counts[row]) * step for row in view.places],
        step,
        shown_at,
        kind.count_noise if view.interval_kind is IntervalKind.PLAIN else None,
    )
    computed = (each.form.expression for each in sums.asked if isinstance(each.form, Computed))
    answers = (ShownAverages(Arithmetic(each, parts, alpha).answers()) for each in computed)
    return replace(view, aggregates=tuple(answers))


@dataclass(frozen=True)
class _Counts:
    """The count of each row that is shown, the only number of an answer.

    Attributes:
        counts: The counts.
        step: Of what they are multiples.
        shown_at: What gives them with their intervals at an alpha.
        variance: That of their noise in steps, where each has noise of its own and nothing selected it; None elsewhere.
    """

    counts: Sequence[Fraction]
    step: Fraction
    shown_at: Callable[[Fraction], ReleaseView]
    variance: Fraction | None

    @property
    def rows(self) -> int:
        return len(self.counts)

    @property
    def candidates(self) -> int:
        # Intervals of a list that something else selected are wider by themselves.
        return 1

    @property
    def variances(self) -> Mapping[int, Fraction]:
        return {} if self.variance is None else {THE_COUNT: self.variance}

    def values(self, place: int) -> Sequence[Fraction]:
        return self.counts

    def ends(self, place: int, alpha: Fraction) -> Sequence[Ends]:
        intervals = self.shown_at(alpha).intervals
        if intervals is None:
            raise IncompleteParametersError
        ends = zip(intervals.lower.tolist(), intervals.upper.tolist(), strict=True)
        return [Ends(Fraction(lower), Fraction(upper)) for lower, upper in ends]

    def noise(self, place: int) -> Noise:
        return {THE_COUNT: self.step}
