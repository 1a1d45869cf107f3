"""The step from a true histogram to a release: the only module in which a mechanism is run on data.

Why the result is private: the mechanism's own argument covers elements, order, noisy counts and bottom; the intervals,
the cost and the cut to k are computed from those alone (post-processing); release_id is a keyed function of the seed.
Nothing else about the histogram is returned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, DrillDown, MomentsOfNames
from dp_service.mechanisms.bounded import BoundGauss, Shift, ShiftedCounts, TwoLooks
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.bounded.sum_intervals import CountInterval
from dp_service.mechanisms.count_noise import gaussian_variance
from dp_service.mechanisms.histogram import Histogram
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
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import HistogramError, TypedHistogram, over_domain, within
from dp_service.releases.keys import NoiseKey
from dp_service.releases.listing import listed
from dp_service.releases.mechanism import (
    IncompleteParametersError,
    OfCells,
    ResolvedMechanism,
    look_of,
    mechanism_of,
    shift_of,
)
from dp_service.releases.mechanism_output import MechanismOutput, TotalsOutput
from dp_service.releases.plan import Plan
from dp_service.releases.quantiles import ShownCells, cells_only, drawn_cells, shown_cells
from dp_service.releases.release_ids import look_specification, release_id, release_seed
from dp_service.releases.sums import AnsweredAggregate, InOrder, answered, drawn_moments, with_own_counts
from dp_service.releases.totals import (
    ShownTotals,
    drawn_with_totals,
    require_totals,
    require_uncut,
    shown_totals,
)
from dp_service.terms import CountNoise, Element, MechanismName


class IntervalKind(Enum):
    """Under which condition the intervals of a release hold."""

    NONE = "none"
    PLAIN = "plain"
    GIVEN_SHOWN = "given shown"
    SIMULTANEOUS = "simultaneous"


@dataclass(frozen=True)
class Total:
    """How many members count in any element: the noisy number, and its interval."""

    noisy: int
    interval: CountInterval


@dataclass(frozen=True)
class ReleaseView:
    """What a question shows of a release: a function of the release, k, and the confidence.

    Attributes:
        count: How many elements, from the first unless `rows` says which.
        intervals: One for each of them; None: counts were not asked for.
        interval_kind: Under which condition the intervals hold.
        ended_in_bottom: Whether the list that is shown ends at the noisy threshold.
        total: The noisy number of members, with its interval; None: it is not released.
        aggregates: The sums and averages that the question asks for, in its order.
        rows: The places in the release of the elements that are shown, in the order of a sum, an average or the
            elements themselves, or where HAVING leaves some out; None: the first ones are shown, in the order of the
            release.
        quantiles: The quantiles that the question asks for, in its order.
        totals: The totals that it shows, and what its elements leave of them; None: it asks for none.
    """

    count: int
    intervals: CountIntervals | None
    interval_kind: IntervalKind
    ended_in_bottom: bool
    total: Total | None = None
    aggregates: tuple[AnsweredAggregate, ...] = ()
    rows: tuple[int, ...] | None = None
    quantiles: tuple[ShownCells, ...] = ()
    totals: ShownTotals | None = None


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
        denominator: What divides the noisy counts; 1 unless they are released relative to their total.
        sums: As for `MechanismOutput`.
        cells: The chosen cells of each quantile that is released, one for each element.
        totals: As for `MechanismOutput`: those of the whole release.
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
    totals: TotalsOutput | None = None

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
    """
    parameters = plan.parameters
    rows = counted(plan, histogram)
    seed = release_seed(key, _specification(plan), plan.data_version, rows.digest(), plan.fresh)
    mechanism = mechanism_of(parameters)
    drawn = _drawn(plan, mechanism, rows, KeyedNoise(KeyedStream(seed)))
    selection = drawn.selection
    found = selection.indices.size
    view = shown(parameters, drawn, confidence=confidence)
    places_listed = range(found) if whole else range(view.count) if view.rows is None else view.rows
    places = np.fromiter(places_listed, dtype=np.int64, count=len(places_listed))
    # Quantiles are of every element of the domain or every name, and rows are of its cells.
    elements = rows.elements if parameters.quantiles is None else list(plan.known_elements or ())
    has_counts = selection.noisy_counts is not None and (whole or view.intervals is not None)
    return Released(
        elements=[elements[i] for i in selection.indices[places].tolist()],
        noisy_counts=_noisy_counts(selection)[places] if has_counts else None,
        shown=view,
        ended_in_bottom=selection.ended_in_bottom if whole else view.ended_in_bottom,
        bottom=selection.bottom,
        cost=mechanism.cost(found, selection.ended_in_bottom),
        release_id=release_id(seed),
        whole=whole,
        denominator=mechanism.factors[1] if isinstance(mechanism, Shift) else 1,
        sums=tuple(column[places] for column in drawn.sums),
        cells=tuple(column[places] for column in drawn.cells),
        totals=drawn.totals,
    )


def _drawn(
    plan: Plan, mechanism: ResolvedMechanism, rows: TypedHistogram, noise: KeyedNoise
) -> MechanismOutput:
    parameters = plan.parameters
    if isinstance(mechanism, OfCells):
        return drawn_cells(plan.known_elements, mechanism, rows, noise)
    counts = Histogram.from_element_order(rows.counts)
    if isinstance(mechanism, Shift):
        if rows.total is None:
            raise HistogramError("expected of how many members each element is the first")
        shifted = mechanism.run(counts, rows.total, noise)
        return MechanismOutput(shifted.selection(), total=shifted.total)
    if rows.total is not None:
        raise HistogramError("expected no total beside these counts")
    if isinstance(mechanism, DrillDown):
        sums = () if parameters.sums is None else _column_sums(parameters, rows)
        return drawn_with_totals(parameters, mechanism, rows, sums, noise)
    if isinstance(mechanism, BoundMoments | MomentsOfNames):
        sums = _column_sums(parameters, rows)
        draw = mechanism.run if isinstance(mechanism, BoundMoments) else mechanism.draw_moments
        return drawn_moments(draw(counts, sums, noise))
    if isinstance(mechanism, TwoLooks):
        return MechanismOutput(mechanism.draw_counts(counts, noise))
    return MechanismOutput(mechanism.run(counts, noise))


def _column_sums(parameters: ReleaseParameters, rows: TypedHistogram) -> tuple[ColumnSums, ...]:
    """Return the sums of each column, with its own counts if it has any."""
    if parameters.sums is None:
        raise IncompleteParametersError
    return tuple(ColumnSums(*each) for each in with_own_counts(parameters.sums, rows.sums))


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
        drawn: The release. Of the selection's `indices`, only the order counts: it is that of the elements.
        confidence: Of each interval, strictly between 0 and 1.

    Raises:
        ValueError: This is no release of these parameters.
    """
    _require_belonging(parameters, drawn, shift_of(parameters))
    alpha = 1 - Fraction(str(confidence))
    if parameters.listing is not None:
        return _shown_listed(parameters, drawn, alpha)
    view = _shown(parameters, drawn, alpha)
    return replace(view, totals=shown_totals(parameters, drawn, count=view.count, alpha=alpha))


def _shown_listed(parameters: ReleaseParameters, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
    """Return a list in the order of its elements, or one that HAVING filters."""
    found = listed(parameters, drawn, alpha=alpha)
    level = alpha / (found.simultaneous or 1)
    # The list as it is, cut off nowhere and in no other order: what decided it is in the level.
    as_it_is = replace(
        parameters,
        k=parameters.k if parameters.k_changes_the_release else None,
        sums=None if parameters.sums is None else replace(parameters.sums, ordered_by=None),
        listing=None,
    )
    if shift_of(parameters) is None:
        view = _shown(as_it_is, found.part(drawn), level)
    else:
        view = _rows_of(_shown(as_it_is, drawn, level), found.rows)
    is_filtered = found.simultaneous is not None
    kind = IntervalKind.SIMULTANEOUS if is_filtered and view.intervals is not None else view.interval_kind
    return replace(view, count=len(found.rows), interval_kind=kind, rows=found.rows)


def _rows_of(view: ReleaseView, rows: tuple[int, ...]) -> ReleaseView:
    """Return some rows of a list of counts that shows everything."""
    if view.intervals is None:
        return view
    places = np.array(rows, dtype=np.int64)
    intervals = CountIntervals(view.intervals.lower[places], view.intervals.upper[places])
    return replace(view, intervals=intervals)


def _shown(parameters: ReleaseParameters, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
    selection, shift = drawn.selection, shift_of(parameters)
    found = selection.indices.size
    count = found if parameters.shown_at_most is None else min(parameters.shown_at_most, found)
    if shift is not None and drawn.total is not None:
        return _shown_shifted(
            parameters, ShiftedCounts.from_selection(shift, selection, drawn.total), count, alpha
        )
    quantiles = shown_cells(parameters, drawn.cells, elements=found, alpha=alpha)
    if quantiles:
        return ReleaseView(count, None, IntervalKind.NONE, ended_in_bottom=False, quantiles=quantiles)
    summed = answered(parameters, drawn, most=count, alpha=alpha)
    if summed.in_order is not None:
        return _shown_in_order(parameters, summed.in_order, summed.aggregates)
    intervals, kind = _intervals(parameters, selection, count, alpha)
    ended = selection.ended_in_bottom and count == found
    return ReleaseView(count, intervals, kind, ended, aggregates=summed.aggregates)


def _shown_in_order(
    parameters: ReleaseParameters, listed: InOrder, aggregates: tuple[AnsweredAggregate, ...]
) -> ReleaseView:
    """Return a list in the order of a sum or an average; a public threshold ends no list in bottom."""
    if listed.is_cut:
        kind = IntervalKind.SIMULTANEOUS
    else:
        look = look_of(parameters)
        is_plain = look is None or look.threshold is None
        kind = IntervalKind.PLAIN if is_plain else IntervalKind.GIVEN_SHOWN
    ends = np.array(listed.counts, dtype=np.int64).reshape(-1, 2)
    intervals = CountIntervals(ends[:, 0], ends[:, 1])
    return ReleaseView(
        len(listed.rows), intervals, kind, ended_in_bottom=False, aggregates=aggregates, rows=listed.rows
    )


def _require_belonging(parameters: ReleaseParameters, drawn: MechanismOutput, shift: Shift | None) -> None:
    if (shift is None) is not (drawn.total is None):
        raise ValueError("a total must be there exactly where counts are released relative to it")
    stated = parameters.sums
    expected = 0 if stated is None else len(stated.columns) + len(stated.own_counts)
    rows = drawn.selection.indices.shape
    if len(drawn.sums) != expected or any(each.shape != rows for each in drawn.sums):
        raise ValueError("expected the sums of every column for each element")
    if (parameters.totals is None) is not (drawn.totals is None):
        raise ValueError("totals must be there exactly where the question asks for them")
    if drawn.totals is not None:
        require_totals(drawn.totals, rows, sums=expected)


def _shown_shifted(
    parameters: ReleaseParameters, released: ShiftedCounts, shown: int, alpha: Fraction
) -> ReleaseView:
    """Return intervals for the first `shown` counts and for the total, which selects nothing."""
    total = Total(released.total, released.total_interval(alpha=alpha))
    if not parameters.with_counts:
        return ReleaseView(shown, None, IntervalKind.NONE, ended_in_bottom=False, total=total)
    found = released.intervals(shown, alpha=alpha)
    lower, upper = (np.array([each[end] for each in found], dtype=np.int64) for end in (0, 1))
    kind = IntervalKind.PLAIN if shown == released.moved.size else IntervalKind.GIVEN_SHOWN
    return ReleaseView(shown, CountIntervals(lower, upper), kind, ended_in_bottom=False, total=total)


def counted(plan: Plan, histogram: TypedHistogram) -> TypedHistogram:
    """Return the histogram that the mechanism runs on: the answer, restricted to the domains that Delta rests on.

    Raises:
        HistogramError: As `release` does.
    """
    parameters = plan.parameters
    domain = plan.known_elements
    if plan.counts_cells:
        return cells_only(parameters, domain, histogram, row_limit=plan.row_limit)
    if domain is not None:
        return over_domain(histogram, domain, row_limit=plan.row_limit)
    if parameters.totals is not None:
        require_uncut(histogram, row_limit=plan.row_limit)
    kept = within(histogram, parameters.within, row_limit=plan.row_limit)
    if parameters.totals is not None:
        # Totals are of all rows; those below the smallest count that is considered are hidden from the list.
        return kept.with_count(1)
    # Whether an engine leaves out what is below the smallest count that is considered makes no difference.
    min_count = 1 if parameters.contributions is None else parameters.contributions.min_count
    return kept.with_count(min_count or 1)


def _intervals(
    parameters: ReleaseParameters, selection: Selection, shown: int, alpha: Fraction
) -> tuple[CountIntervals | None, IntervalKind]:
    """Return intervals for the first `shown` counts; they hold given that their elements are shown."""
    if not parameters.with_counts:
        return None, IntervalKind.NONE
    if parameters.mechanism in (MechanismName.BOUND_GAUSS, MechanismName.BOUND_MOMENTS):
        return _bounded_intervals(parameters, selection, shown, alpha)
    noisy = _noisy_counts(selection)[:shown]
    inverse_scale = _inverse_scale(parameters)
    # An element of an unknown domain is shown only if at least one member has it.
    minimum = 0 if parameters.domain is not None else 1
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


def _inverse_scale(parameters: ReleaseParameters) -> Fraction:
    mechanism = mechanism_of(parameters)
    if isinstance(
        mechanism, BoundGauss | TwoLooks | Shift | BoundMoments | MomentsOfNames | DrillDown | OfCells
    ):
        raise IncompleteParametersError
    return mechanism.count_inverse_scale


def _bounded_intervals(
    parameters: ReleaseParameters, selection: Selection, shown: int, alpha: Fraction
) -> tuple[CountIntervals, IntervalKind]:
    """Return intervals for bounded counts; the lower ends, at alpha / 2, hold for the counts before bounding too."""
    look = look_of(parameters)
    if look is None:
        raise IncompleteParametersError
    noisy, thresholds = _noisy_counts(selection)[:shown], selection_thresholds(selection, shown)
    # Over an unknown domain nothing below the smallest count is shown.
    minimum = look.min_count or 0
    if thresholds is None:
        plain = gaussian_noise_interval(noisy, look.variance, alpha=alpha, minimum=minimum)
        return plain, IntervalKind.PLAIN
    found = selected_gaussian_interval(noisy, thresholds, look.variance, alpha=alpha, minimum=minimum)
    return found, IntervalKind.GIVEN_SHOWN


def _noisy_counts(selection: Selection) -> NDArray[np.int64]:
    if selection.noisy_counts is None:
        raise IncompleteParametersError
    return selection.noisy_counts
