"""The step from a true histogram to a release: the only module in which a mechanism is run on data.

Why the result is private: the mechanism's own argument covers elements, order, noisy counts and bottom; the intervals,
the cost and the cut to k are computed from those alone (post-processing); release_id is a keyed function of the seed.
Nothing else about the histogram is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.count_noise import gaussian_variance
from dp_service.mechanisms.histogram import Histogram as Counts
from dp_service.mechanisms.intervals import (
    CountIntervals,
    fresh_noise_interval,
    gaussian_noise_interval,
    thresholded_interval,
)
from dp_service.mechanisms.parameters import Cost
from dp_service.mechanisms.selection import Selection, selection_thresholds
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.release_parameters import ReleaseParameters
from dp_service.releases.histogram import Histogram, over_domain, within
from dp_service.releases.identity import release_id, release_seed
from dp_service.releases.keys import NoiseKey
from dp_service.releases.mechanism import IncompleteParametersError, mechanism_of
from dp_service.releases.plan import Plan
from dp_service.terms import CountNoise, Element


class IntervalKind(Enum):
    """Under which condition the intervals of a release hold."""

    NONE = "none"
    PLAIN = "plain"
    GIVEN_SHOWN = "given shown"


@dataclass(frozen=True)
class Shown:
    """What a question shows of a release: a function of the release, k, and the confidence.

    Attributes:
        count: How many elements, from the first.
        intervals: One for each of them; None: counts were not asked for.
        interval_kind: Under which condition the intervals hold.
        ended_in_bottom: Whether the list that is shown ends at the noisy threshold.
    """

    count: int
    intervals: CountIntervals | None
    interval_kind: IntervalKind
    ended_in_bottom: bool


@dataclass(frozen=True)
class Released:
    """What may be shown.

    Attributes:
        elements: In descending order.
        noisy_counts: Shape (n,), one for each element; None: there are none, or they were not asked for.
        shown: What the question shows of the elements: all of them, unless the release is whole.
        ended_in_bottom: Whether the list ended at the noisy threshold.
        bottom: The released noisy threshold; None: the mechanism releases none.
        cost: What the release costs.
        release_id: The public name of the release.
        whole: Whether this is everything that was released, whatever part of it the question shows.
    """

    elements: list[Element]
    noisy_counts: NDArray[np.int64] | None
    shown: Shown
    ended_in_bottom: bool
    bottom: int | None
    cost: Cost
    release_id: str
    whole: bool = False

    @property
    def intervals(self) -> CountIntervals | None:
        """One for each element that the question shows; None: counts were not asked for."""
        return self.shown.intervals

    @property
    def interval_kind(self) -> IntervalKind:
        """Under which condition the intervals hold."""
        return self.shown.interval_kind


def release(
    plan: Plan, histogram: Histogram, key: NoiseKey, *, confidence: float, whole: bool = False
) -> Released:
    """Draw the release that a plan describes from a histogram. The same plan and histogram give the same release.

    Args:
        plan: The verified plan.
        histogram: The engine's answer.
        key: The key that signed the plan; the seed is derived from it.
        confidence: Of each interval, strictly between 0 and 1.
        whole: Whether to return every element and noisy count, and not only what the question shows. Both are paid
            for with the same price: a release is what was drawn, and the question shows a part of it.

    Raises:
        HistogramError: The histogram cannot be the answer to the plan's query.
    """
    parameters = plan.parameters
    rows = counted(plan, histogram)
    seed = release_seed(key, plan.specification, plan.data_version, rows.digest(), plan.fresh)
    mechanism = mechanism_of(parameters)
    counts = Counts.from_element_order(rows.counts)
    selection = mechanism.run(counts, KeyedNoise(KeyedStream(seed)))
    found = selection.indices.size
    view = shown(parameters, selection, confidence=confidence)
    listed = found if whole else view.count
    has_counts = selection.noisy_counts is not None and (whole or view.intervals is not None)
    return Released(
        elements=[rows.elements[i] for i in selection.indices[:listed].tolist()],
        noisy_counts=_noisy_counts(selection)[:listed] if has_counts else None,
        shown=view,
        ended_in_bottom=selection.ended_in_bottom if whole else view.ended_in_bottom,
        bottom=selection.bottom,
        cost=mechanism.cost(found, selection.ended_in_bottom),
        release_id=release_id(seed),
        whole=whole,
    )


def shown(parameters: ReleaseParameters, selection: Selection, *, confidence: float) -> Shown:
    """Return what a question with these parameters shows of a release. It draws nothing and needs no data.

    Args:
        parameters: Those of the question; all but k and whether counts are shown are those of the release.
        selection: The release. Of `indices`, only the order counts: it is that of the elements.
        confidence: Of each interval, strictly between 0 and 1.
    """
    found = selection.indices.size
    count = found if parameters.shown_at_most is None else min(parameters.shown_at_most, found)
    intervals, kind = _intervals(parameters, selection, count, Fraction(str(confidence)))
    return Shown(count, intervals, kind, selection.ended_in_bottom and count == found)


def counted(plan: Plan, histogram: Histogram) -> Histogram:
    """Return the histogram that the mechanism runs on: the answer, restricted to the domains that Delta rests on.

    Raises:
        HistogramError: As `release` does.
    """
    parameters = plan.parameters
    if parameters.domain is not None:
        return over_domain(histogram, parameters.domain, row_limit=plan.row_limit)
    return within(histogram, parameters.within, row_limit=plan.row_limit).existing()


def _intervals(
    parameters: ReleaseParameters, selection: Selection, shown: int, confidence: Fraction
) -> tuple[CountIntervals | None, IntervalKind]:
    """Return intervals for the first `shown` counts; they hold given that their elements are shown."""
    if not parameters.with_counts:
        return None, IntervalKind.NONE
    noisy = _noisy_counts(selection)[:shown]
    inverse_scale = mechanism_of(parameters).count_inverse_scale
    # An element of an unknown domain is shown only if at least one member has it.
    minimum = 0 if parameters.domain is not None else 1
    alpha = 1 - confidence
    if parameters.count_noise is CountNoise.GAUSSIAN:
        variance = gaussian_variance(inverse_scale)
        return gaussian_noise_interval(noisy, variance, alpha=alpha, minimum=minimum), IntervalKind.PLAIN
    # The Gumbel mechanisms select without the noise of the counts, which they draw afterwards.
    thresholds = None if parameters.k_changes_the_release else selection_thresholds(selection, shown)
    if thresholds is None:
        plain = fresh_noise_interval(noisy, inverse_scale, alpha=alpha, minimum=minimum)
        return plain, IntervalKind.PLAIN
    given_shown = thresholded_interval(noisy, thresholds, inverse_scale, alpha=alpha, minimum=minimum)
    return given_shown, IntervalKind.GIVEN_SHOWN


def _noisy_counts(selection: Selection) -> NDArray[np.int64]:
    if selection.noisy_counts is None:
        raise IncompleteParametersError
    return selection.noisy_counts
