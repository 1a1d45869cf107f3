"""Sharpening: a look more at the elements of a release that is paid for, and the counts of all looks together.

A look more is `BoundGauss` over a known domain: the names of two looks, or the domain of the question. It costs its
units and no call. The names are what a release has shown, so they are public to the account that asks. Why the result
is private: docs/bounded-contributions.md, section 4.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded import BoundGauss, Sharpened, TwoLooks, sharpened
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.bounded.sum_intervals import CountInterval, WeightedNoise, common_weights
from dp_service.mechanisms.intervals import CountIntervals, gaussian_noise_interval
from dp_service.parameters.contributions import LooksBefore
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.resolution import NAMES_TO_COME, Resolution, second_look
from dp_service.releases.mechanism import (
    IncompleteParametersError,
    UnusableParametersError,
    look_of,
    mechanism_of,
)
from dp_service.releases.releasing import IntervalKind, ReleaseView
from dp_service.terms import Consistency, Element

MAXIMUM_SHARPENINGS = 8
MAXIMUM_UNITS = 1_000_000
# No count that is real reaches it, whatever the weights; what a message holds does not have to.
_FARTHEST = 2**62

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class AskedSharpening:
    """What a question asks for: the units of each sharpening, the last one's last, and whether they were planned.

    Raises:
        QuestionError: There are none or too many, or some are out of range.
    """

    units: tuple[int, ...]
    planned: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.units) <= MAXIMUM_SHARPENINGS:
            raise QuestionError("sharpening.units", f"expected the units of 1 to {MAXIMUM_SHARPENINGS} looks")
        if any(not 1 <= units <= MAXIMUM_UNITS for units in self.units):
            raise QuestionError("sharpening.units", f"expected whole numbers from 1 to {MAXIMUM_UNITS}")

    def first(self, number: int) -> AskedSharpening:
        """Return the question for one of the sharpenings, counted from 1."""
        return replace(self, units=self.units[:number])


@dataclass(frozen=True)
class ShownSharpened:
    """What a question shows of looks together.

    Attributes:
        view: Which elements, and their intervals; `rows` are their places in the release of the last look.
        numerators: The combined counts of all elements, in the order of that release, times the denominator.
    """

    view: ReleaseView
    numerators: list[int]


@dataclass(frozen=True)
class CombinedLaw:
    """How counts of several looks are combined: their weights and what they are divided by, and the variance."""

    weights: tuple[int, ...]
    variances: tuple[Fraction, ...]

    @property
    def denominator(self) -> int:
        """What divides the weighted sum of counts."""
        return sum(self.weights)

    @property
    def variance(self) -> Fraction:
        """The variance parameter of the combined noise: the inverse of the sum of inverses."""
        return 1 / sum((1 / variance for variance in self.variances), Fraction(0))


def sharpened_question(
    resolution: Resolution,
    asked: AskedSharpening,
    *,
    most_units: int | None,
    names: tuple[Element, ...] | None = None,
    release_ids: tuple[str, ...] = (),
) -> Resolution:
    """Return the question for a look more, of a question as the policy resolves it.

    Args:
        resolution: The question without a sharpening.
        asked: The sharpening.
        most_units: The most units that the policy allows a sharpening; None: it allows none.
        names: What the release to sharpen named, in ascending order; None: this is an estimate.
        release_ids: The looks before this one; none in an estimate.

    Raises:
        RefusedByPolicyError: The policy allows no such look, or the question has no counts that can be sharpened.
        QuestionError: The units are out of range; `field` names them.
    """
    parameters = resolution.parameters
    base = _base_look(parameters)
    if most_units is None:
        raise _refused("the policy allows no sharpening of this table (contributions.sharpening)")
    if base is None:
        raise _refused(
            "only counts of two looks, or of a known domain with bounded contributions, can be sharpened: not sums, "
            "not counts beside totals, and not counts relative to a total"
        )
    if parameters.listing is not None:
        raise _refused(
            "a series in time, or a list that HAVING filters, cannot be: leave out the bucket or HAVING"
        )
    if parameters.consistency is Consistency.FRESH:
        raise _refused("answers of this table do not repeat, so none is kept that could be sharpened")
    if any(units > most_units for units in asked.units):
        raise QuestionError("sharpening.units", f"expected at most {most_units} units, as the policy allows")
    look = _look_more(resolution, base, asked, names, release_ids)
    _require_combinable(look.parameters)
    return look


def _base_look(parameters: ReleaseParameters) -> BoundGauss | None:
    """Return the look whose counts can be sharpened; None: there is none."""
    mechanism = mechanism_of(parameters)
    if isinstance(mechanism, TwoLooks):
        return mechanism.counts_look
    is_known = isinstance(mechanism, BoundGauss) and parameters.domain is not None
    return mechanism if is_known and isinstance(mechanism, BoundGauss) else None


def _look_more(
    resolution: Resolution,
    base: BoundGauss,
    asked: AskedSharpening,
    names: tuple[Element, ...] | None,
    release_ids: tuple[str, ...],
) -> Resolution:
    parameters, stated = resolution.parameters, resolution.parameters.contributions
    if stated is None:
        raise IncompleteParametersError
    before = LooksBefore((base.units, *map(Fraction, asked.units[:-1])), release_ids, asked.planned)
    contributions = replace(stated, units=asked.units[-1], min_count=None, names=None, before=before)
    if parameters.domain is not None:
        return replace(resolution, parameters=replace(parameters, contributions=contributions))
    known = NAMES_TO_COME if names is None else names
    look = replace(parameters, contributions=contributions, domain=known, within=())
    return replace(second_look(resolution, known), parameters=look)


def _require_combinable(parameters: ReleaseParameters) -> None:
    """Refuse units with which noise cannot be drawn, or whose combined law has too many values.

    All of that follows from the units and the policy.
    """
    try:
        law = law_of(parameters)
        noise = WeightedNoise(law.weights, law.variances)
    except (UnusableParametersError, ValueError):
        raise QuestionError(
            "sharpening.units",
            "expected units for which noise can be drawn and combined with that of the looks before: round numbers, "
            "near the policy's own",
        ) from None
    stated = parameters.contributions
    if (
        stated is not None
        and stated.before is not None
        and stated.before.planned
        and not noise.is_added_up_soon
    ):
        raise QuestionError(
            "sharpening.planned",
            "expected false: the exact law of so many looks, or of noise so large, takes too long to add up; without "
            "it intervals are those of the last look",
        )


def looks_of(parameters: ReleaseParameters) -> list[BoundGauss]:
    """Return all looks that are combined, the present one last.

    Raises:
        UnusableParametersError: No noise can be drawn for them.
    """
    stated, last = parameters.contributions, look_of(parameters)
    if stated is None or stated.before is None or last is None:
        raise IncompleteParametersError
    return [*(replace(last, units=units) for units in stated.before.units), last]


def law_of(parameters: ReleaseParameters) -> CombinedLaw:
    """Return how the looks of a sharpening are combined."""
    variances = tuple(look.variance for look in looks_of(parameters))
    return CombinedLaw(common_weights([1 / variance for variance in variances]), variances)


def shown_sharpened(
    parameters: ReleaseParameters,
    ranks: Integers,
    counts: Integers,
    before: Sequence[Integers],
    *,
    confidence: float,
) -> ShownSharpened:
    """Return what a question shows of the looks together. It draws nothing and needs no data.

    Args:
        parameters: Those of the last look.
        ranks: For each element of the last look's release, in its order, how many of the others come before it in
            ascending order.
        counts: Its noisy counts, in the same order.
        before: Those of each look before, in ascending order of the elements.
        confidence: Of each interval, strictly between 0 and 1.

    Raises:
        ValueError: They do not belong together.
    """
    last = np.empty_like(counts)
    last[ranks] = counts
    looks = looks_of(parameters)
    found = _Together(looks[-1], sharpened(looks, [*before, last]), last, before)
    count = ranks.size if parameters.shown_at_most is None else min(parameters.shown_at_most, ranks.size)
    intervals, kind = None, IntervalKind.NONE
    if parameters.with_counts:
        kind = IntervalKind.PLAIN if count == ranks.size else IntervalKind.GIVEN_SHOWN
        intervals = _intervals(parameters, found, count, alpha=1 - Fraction(str(confidence)))
    rows = np.argsort(ranks)[found.ranking[:count]]
    view = ReleaseView(count, intervals, kind, ended_in_bottom=False, rows=tuple(rows.tolist()))
    values = [min(max(found.combined.values[rank], -_FARTHEST), _FARTHEST) for rank in ranks.tolist()]
    return ShownSharpened(view, values)


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

    def own_intervals(self, count: int, *, alpha: Fraction) -> CountIntervals:
        """Return those of the last look's noise, true given all looks before and that the names are shown."""
        shown = self.ranking[:count]
        noisy, variance = self.last[shown], self.look.variance
        if count == len(self.ranking):
            return gaussian_noise_interval(noisy, variance, alpha=alpha, minimum=0)
        cut_off = self.ranking[count]
        thresholds = np.array([self._threshold(name, cut_off) for name in shown], dtype=np.int64)
        return selected_gaussian_interval(noisy, thresholds, variance, alpha=alpha, minimum=0)

    def _threshold(self, name: int, cut_off: int) -> int:
        """Return the last noisy count that a name had to have at least, given the other looks and names."""
        *weights, own = self.combined.noise.weights
        needed = self.combined.values[cut_off] + (name > cut_off)
        held = sum(weight * int(counts[name]) for weight, counts in zip(weights, self.before, strict=True))
        return max(-((held - needed) // own), -_FARTHEST)


def _intervals(
    parameters: ReleaseParameters, found: _Together, count: int, *, alpha: Fraction
) -> CountIntervals:
    """Return the intervals of the first names of the ranking."""
    stated = parameters.contributions
    if stated is None or stated.before is None:
        raise IncompleteParametersError
    if stated.before.planned:
        ends = found.combined.intervals(count, alpha=alpha)
    else:
        own = found.own_intervals(count, alpha=alpha)
        ends = [
            _extended(CountInterval(lower, upper), found.combined.values[name], found.combined.denominator)
            for lower, upper, name in zip(
                own.lower.tolist(), own.upper.tolist(), found.ranking[:count], strict=True
            )
        ]
    lower, upper = (np.array([each[end] for each in ends], dtype=np.int64) for end in (0, 1))
    return CountIntervals(lower, upper)


def _extended(interval: CountInterval, value: int, denominator: int) -> CountInterval:
    """Return an interval with the combined count value / denominator; counts are not negative."""
    below, above = value // denominator, -(-value // denominator)
    return CountInterval(max(min(interval.lower, below), 0), max(interval.upper, above))


def _refused(why: str) -> RefusedByPolicyError:
    return RefusedByPolicyError(Rule.SHARPENING, f"sharpening: {why}")
