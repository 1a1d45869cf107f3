"""What is shown of each form of number: its value in a row, its list, and its intervals.

All of it follows from what was released of counts and sums, so none of it has a price.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from dp_service.mechanisms.aggregates.intervals import (
    AverageInterval,
    ShownRows,
    SumInterval,
    average_intervals,
    least_certain_count,
    shown_by_average,
    shown_by_sum,
    sum_intervals,
)
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.numbers import Average, Form, Plain
from dp_service.releases.kinds.kind import Value
from dp_service.releases.kinds.views import Answer, AnsweredAggregate, ShownAverages, ShownSums
from dp_service.releases.statements import Statement


class NumberView(Protocol):
    """What is shown of a number of one form.

    Attributes:
        said: What is said of numbers of this form; None: nothing.
        may_be_missing: Whether it has no value where it would be divided by what may be 0.
    """

    said: ClassVar[Statement | None]
    may_be_missing: ClassVar[bool]

    @property
    def quantum(self) -> Fraction:
        """What one of its steps is worth."""

    def value(self, release: ReleasedMoments, alpha: Fraction) -> Value:
        """Return what gives its value in a row; None: it has none."""

    def rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        """Return the `most` rows where it is largest, in its order."""

    def answered(self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction) -> AnsweredAggregate:
        """Return it in every row that is shown, with its interval."""


def view_of(form: Form[int], columns: Sequence[SummedValue]) -> NumberView:
    """Return what is shown of a number.

    Args:
        form: What it is of which columns.
        columns: What the release adds up.
    """
    if isinstance(form, Plain):
        return _OfSum(form.added, columns[form.added].quantum)
    if isinstance(form, Average):
        return _OfAverage(form.averaged, columns[form.averaged].quantum)
    return _OfQuotient(form.above, columns[form.above].quantum * form.factor)


@dataclass(frozen=True)
class _OfSum:
    said: ClassVar[Statement | None] = None
    may_be_missing: ClassVar[bool] = False
    place: int
    quantum: Fraction

    def value(self, release: ReleasedMoments, alpha: Fraction) -> Value:
        column = release.columns[self.place]
        return lambda row: column.sum_of(row) * self.quantum

    def rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        return shown_by_sum(release, self.place, most=most)

    def answered(self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction) -> AnsweredAggregate:
        column = release.columns[self.place]
        ends = sum_intervals(release, self.place, shown, alpha=alpha)
        return sums_shown(map(column.doubled_sum, shown.rows), ends, self.quantum)


@dataclass(frozen=True)
class _OfAverage:
    said: ClassVar[Statement | None] = Statement(
        "sums.averages", "Where the interval of a count reaches down to 0, no average is shown."
    )
    may_be_missing: ClassVar[bool] = True
    place: int
    quantum: Fraction

    def value(self, release: ReleasedMoments, alpha: Fraction) -> Value:
        column, least = release.columns[self.place], least_certain_count(release, self.place, alpha=alpha)

        def average(row: int) -> Fraction | None:
            value = column.average_of(row) if int(column.counts[row]) >= least else None
            return None if value is None else value * self.quantum

        return average

    def rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        return shown_by_average(release, self.place, most=most, alpha=alpha)

    def answered(self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction) -> AnsweredAggregate:
        values = map(release.columns[self.place].average_of, shown.rows)
        intervals = average_intervals(release, self.place, shown, alpha=alpha)
        found = zip(values, intervals, strict=True)
        return ShownAverages(tuple(_in_units(*each, self.quantum) for each in found))


@dataclass(frozen=True)
class _OfQuotient(_OfAverage):
    """A quotient by the count is an average, times its factor."""

    said: ClassVar[Statement | None] = Statement(
        "sums.quotients",
        "A number per count is divided by the count of its element, and its interval is that of their quotient, and "
        "not of two intervals. Where the interval of the count reaches down to 0, no quotient is shown.",
    )


def sums_shown(doubled: Iterable[int], ends: Sequence[SumInterval], quantum: Fraction) -> ShownSums:
    """Return sums and their intervals, of which `doubled` is twice the sums in steps of the quantum."""
    lower, upper = (tuple(2 * each[end] for each in ends) for end in (0, 1))
    return ShownSums(tuple(doubled), lower, upper, quantum)


def _in_units(value: Fraction | None, interval: AverageInterval | None, quantum: Fraction) -> Answer | None:
    if value is None or interval is None:
        return None
    return Answer(value * quantum, interval.lower * quantum, interval.upper * quantum)
