"""The step from a true histogram to a release: the only module in which a mechanism is run on data.

Why the result is private: the mechanism's own argument covers elements, order, noisy counts and bottom; the intervals,
the cost and the cut to k are computed from those alone (post-processing); release_id is a keyed function of the seed.
Nothing else about the histogram is returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.intervals import CountIntervals
from dp_service.mechanisms.parameters import Cost
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import HistogramError, TypedHistogram
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import IncompleteParametersError, kind_of
from dp_service.releases.kinds.listing import shown_listed
from dp_service.releases.kinds.of_counts import with_numbers_of_counts
from dp_service.releases.kinds.parts import counts_of
from dp_service.releases.kinds.views import IntervalKind, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.plan import Plan
from dp_service.releases.release_ids import look_specification, release_id, release_seed
from dp_service.terms import Element


class UnansweredDrawError(Exception):
    """Something failed once noise may have been drawn. Clients learn nothing else, and charge the question in full."""


@contextmanager
def from_the_draw_on() -> Iterator[None]:
    """Fail as an internal error whatever fails in the block, because noise may have decided it.

    Raises:
        UnansweredDrawError: Something failed.
    """
    try:
        yield
    except Exception as error:
        raise UnansweredDrawError from error


@dataclass(frozen=True)
class Released:
    """What may be shown.

    Attributes:
        elements: In descending order.
        noisy_counts: Shape (n,), one for each element, as multiples of 1 / `denominator`; None: there are none, or they
            were not asked for.
        shown: What the question shows of the elements: all of them, unless the release is whole.
        ended_in_bottom: Whether the list ended at the noisy threshold.
        bottom: The released noisy threshold; None: the mechanism releases none.
        cost: What the release costs.
        release_id: The public name of the release.
        whole: Whether this is everything that was released, whatever part of it the question shows.
        denominator: What divides the noisy counts; 1 unless they are on a grid or released relative to their total.
        sums: As for `MechanismOutput`.
        cells: The chosen cells of each quantile that is released, one for each element.
    """

    elements: list[Element]
    noisy_counts: NDArray[np.int64] | None
    shown: ReleaseView
    ended_in_bottom: bool
    bottom: int | None
    cost: Cost
    release_id: str
    whole: bool = False
    denominator: int = 1
    sums: tuple[NDArray[np.int64], ...] = ()
    cells: tuple[NDArray[np.int64], ...] = ()

    @property
    def intervals(self) -> CountIntervals | None:
        """One for each element that the question shows; None: counts were not asked for."""
        return self.shown.intervals

    @property
    def interval_kind(self) -> IntervalKind:
        """Under which condition the intervals hold."""
        return self.shown.interval_kind


def release(
    plan: Plan, histogram: TypedHistogram, key: NoiseKey, *, confidence: float, whole: bool = False
) -> Released:
    """Draw the release that a plan describes from a histogram. The same plan and histogram give the same release.

    Args:
        plan: The verified plan. Of two looks it is the second one's; `looks.names_of` draws the first.
        histogram: The engine's answer.
        key: The key that signed the plan; the seed is derived from it.
        confidence: Of each interval, strictly between 0 and 1.
        whole: Whether to return every element and noisy count, and not only what the question shows. Both are paid
            for with the same price: a release is what was drawn, and the question shows a part of it.

    Raises:
        HistogramError: The histogram cannot be the answer to the plan's query.
        UnansweredDrawError: Something failed once noise may have been drawn.
    """
    rows = counted(plan, histogram)
    seed = release_seed(key, _specification(plan), plan.data_version, rows.digest(), plan.fresh)
    with from_the_draw_on():
        return _drawn(plan, rows, seed, confidence=confidence, whole=whole)


def _drawn(plan: Plan, rows: TypedHistogram, seed: bytes, *, confidence: float, whole: bool) -> Released:
    kind = kind_of(plan.parameters)
    drawn = kind.draw(rows, plan.known_elements, KeyedNoise(KeyedStream(seed)))
    selection = drawn.selection
    found = selection.indices.size
    view = shown(plan.parameters, drawn, confidence=confidence)
    places_listed = range(found) if whole else range(view.count) if view.rows is None else view.rows
    places = np.fromiter(places_listed, dtype=np.int64, count=len(places_listed))
    elements = kind.elements(rows, plan.known_elements)
    has_counts = selection.noisy_counts is not None and (whole or view.intervals is not None)
    return Released(
        elements=[elements[i] for i in selection.indices[places].tolist()],
        noisy_counts=counts_of(drawn)[places] if has_counts else None,
        shown=view,
        ended_in_bottom=selection.ended_in_bottom if whole else view.ended_in_bottom,
        bottom=selection.bottom,
        cost=kind.mechanism.cost(found, selection.ended_in_bottom),
        release_id=release_id(seed),
        whole=whole,
        denominator=kind.denominator,
        sums=tuple(column[places] for column in drawn.sums),
        cells=tuple(column[places] for column in drawn.cells),
    )


def _specification(plan: Plan) -> bytes:
    """Return what the seed takes of a plan that shows something: the second of two looks takes the names too."""
    if plan.looks is None:
        return plan.specification
    if plan.looks.names is None:
        raise IncompleteParametersError
    return look_specification(plan.specification, 2, plan.looks.names, plan.looks.before)


def shown(parameters: ReleaseParameters, drawn: MechanismOutput, *, confidence: float) -> ReleaseView:
    """Return what a question with these parameters shows of a release. It draws nothing and needs no data.

    Args:
        parameters: Those of the question; all but k and what of counts and sums is shown are those of the release.
        drawn: A release of these parameters. Of the selection's `indices`, only the order counts: it is that of the
            elements.
        confidence: Of each interval, strictly between 0 and 1.
    """
    kind, alpha = kind_of(parameters), 1 - Fraction(str(confidence))

    def at(level: Fraction) -> ReleaseView:
        if parameters.listing is not None:
            return shown_listed(kind, parameters.listing, drawn, level)
        return kind.shown(drawn, level)

    sums = parameters.sums
    return at(alpha) if sums is None or sums.columns else with_numbers_of_counts(kind, sums, drawn, at, alpha)


def counted(plan: Plan, histogram: TypedHistogram) -> TypedHistogram:
    """Return the histogram that the mechanism runs on: the answer, restricted to the domains that Delta rests on.

    Raises:
        HistogramError: As `release` does.
    """
    kind = kind_of(plan.parameters)
    if (histogram.total is not None) is not plan.parameters.counts_first_elements:
        raise HistogramError("expected first counts exactly where the plan's query answers them")
    return kind.histogram(histogram, plan.known_elements, row_limit=plan.row_limit)
