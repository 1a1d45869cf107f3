"""Sums and averages of a release, with their intervals: a function of what was released, and of nothing else.

Noise is in the counts and the centred sums alone; every sum and average follows from them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates.intervals import (
    AverageInterval,
    ShownRows,
    SumInterval,
    average_intervals,
    count_intervals,
    least_certain_count,
    shown_by_average,
    shown_by_count,
    shown_by_sum,
    sum_intervals,
)
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.mechanisms.selection import Selection
from dp_service.parameters.aggregates import AskedAggregate, SumsReleased
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.mechanism import IncompleteParametersError, moments_of
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.terms import AggregateFunction

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Answer:
    """A sum or an average with its interval, both ends inclusive, in the units of its column; all are exact."""

    value: Fraction
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class AnsweredAggregate:
    """One sum or average for each element that is shown.

    It is None where there is no average to show: where the interval of the count that it is of reaches down to 0.
    """

    answers: tuple[Answer | None, ...]


@dataclass(frozen=True)
class InOrder:
    """Which elements a list shows that is in the order of a sum or an average.

    Attributes:
        rows: Their places in the release, in the order of the list.
        counts: The interval of each count, both ends inclusive.
        is_cut: Whether some elements of the release are left out: then all intervals cover together.
    """

    rows: tuple[int, ...]
    counts: tuple[SumInterval, ...]
    is_cut: bool


@dataclass(frozen=True)
class Answered:
    """The sums and averages that a question shows; `in_order` is None where the list is in the order of its counts."""

    aggregates: tuple[AnsweredAggregate, ...]
    in_order: InOrder | None = None


def drawn_moments(release: ReleasedMoments) -> MechanismOutput:
    """Return a release as the selection of its elements, the noisy centred sums of each column, and own counts."""
    selection = Selection(release.groups, release.counts, ended_in_bottom=False, bottom=release.threshold)
    own = (column.counts for column in release.columns if column.has_own_count)
    return MechanismOutput(selection, sums=(*(column.centred for column in release.columns), *own))


def with_own_counts(
    stated: SumsReleased, numbers: tuple[Integers, ...]
) -> tuple[tuple[Integers, Integers | None], ...]:
    """Return the sums of each column beside its own counts, None where it has none.

    Args:
        stated: What is summed.
        numbers: The sums of each column, and then the own counts of those that have some.
    """
    owned = dict(zip(stated.own_counts, numbers[len(stated.columns) :], strict=True))
    return tuple((numbers[place], owned.get(place)) for place in range(len(stated.columns)))


def answered(
    parameters: ReleaseParameters, drawn: MechanismOutput, *, most: int, alpha: Fraction
) -> Answered:
    """Return the sums and averages that a question shows, and of which elements.

    Args:
        parameters: Those of the question.
        drawn: The release, with the sums of every column for each element.
        most: How many elements the question shows.
        alpha: The probability with which an interval may miss; sums and averages are at half of it each.
    """
    stated, release = parameters.sums, _released(parameters, drawn)
    if stated is None or release is None:
        return Answered(())
    shown = _shown(release, stated, most, alpha)
    aggregates = tuple(
        AnsweredAggregate(tuple(_answers(release, each, stated.columns[each.place].quantum, shown, alpha)))
        for each in stated.asked
    )
    if stated.ordered_by is None:
        return Answered(aggregates)
    counts = tuple(count_intervals(release, shown, alpha=alpha))
    return Answered(aggregates, InOrder(shown.rows, counts, len(shown.rows) < release.groups.size))


def rows_in_order(
    parameters: ReleaseParameters, drawn: MechanismOutput, *, alpha: Fraction
) -> tuple[int, ...] | None:
    """Return all rows of a release in the order of a sum or an average; None: the list is in that of its counts."""
    stated, release = parameters.sums, _released(parameters, drawn)
    if stated is None or release is None or stated.ordered_by is None:
        return None
    return _shown(release, stated, release.groups.size, alpha).rows


def asked_values(
    parameters: ReleaseParameters, drawn: MechanismOutput, *, alpha: Fraction
) -> tuple[Callable[[int], Fraction | None], ...]:
    """Return what gives each sum and average of a row that a question asks for, in the units of its column.

    It gives None where no average is shown at this alpha in a list that shows everything.
    """
    stated, release = parameters.sums, _released(parameters, drawn)
    if stated is None or release is None:
        return ()
    return tuple(_value_of(release, stated, each, alpha) for each in stated.asked)


def _value_of(
    release: ReleasedMoments, stated: SumsReleased, asked: AskedAggregate, alpha: Fraction
) -> Callable[[int], Fraction | None]:
    column, quantum = release.columns[asked.place], stated.columns[asked.place].quantum
    if asked.function is AggregateFunction.SUM:
        return lambda row: column.sum_of(row) * quantum
    least = least_certain_count(release, asked.place, alpha=alpha)

    def average(row: int) -> Fraction | None:
        value = column.average_of(row) if int(column.counts[row]) >= least else None
        return None if value is None else value * quantum

    return average


def _released(parameters: ReleaseParameters, drawn: MechanismOutput) -> ReleasedMoments | None:
    """Return what was released of counts and sums together; None: nothing is summed."""
    mechanism, selection = moments_of(parameters), drawn.selection
    if parameters.sums is None or mechanism is None:
        return None
    if selection.noisy_counts is None:
        raise IncompleteParametersError
    columns = with_own_counts(parameters.sums, drawn.sums)
    return mechanism.released(selection.indices, selection.noisy_counts, columns)


def _shown(release: ReleasedMoments, stated: SumsReleased, most: int, alpha: Fraction) -> ShownRows:
    if stated.ordered_by is None:
        return shown_by_count(release, most=most)
    first = stated.asked[stated.ordered_by]
    match first.function:
        case AggregateFunction.SUM:
            return shown_by_sum(release, first.place, most=most)
        case AggregateFunction.AVERAGE:
            return shown_by_average(release, first.place, most=most, alpha=alpha)


def _answers(
    release: ReleasedMoments, asked: AskedAggregate, quantum: Fraction, shown: ShownRows, alpha: Fraction
) -> list[Answer | None]:
    column = release.columns[asked.place]
    values: Iterable[Fraction | None]
    intervals: Sequence[SumInterval | AverageInterval | None]
    match asked.function:
        case AggregateFunction.SUM:
            values = map(column.sum_of, shown.rows)
            intervals = sum_intervals(release, asked.place, shown, alpha=alpha)
        case AggregateFunction.AVERAGE:
            values = map(column.average_of, shown.rows)
            intervals = average_intervals(release, asked.place, shown, alpha=alpha)
    return [_in_units(*each, quantum) for each in zip(values, intervals, strict=True)]


def _in_units(
    value: Fraction | None, interval: SumInterval | AverageInterval | None, quantum: Fraction
) -> Answer | None:
    if value is None or interval is None:
        return None
    return Answer(value * quantum, interval.lower * quantum, interval.upper * quantum)
