"""What is shown of each form of number: its value in a row, its list, and its intervals.

All of it follows from what was released of counts and sums, so none of it has a price.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from dp_service.mechanisms.aggregates.compared import (
    Weighted,
    doubled_total,
    least_divisor,
    quotient,
    quotient_intervals,
    total_intervals,
)
from dp_service.mechanisms.aggregates.intervals import (
    AverageInterval,
    ShownRows,
    SumInterval,
    average_intervals,
    least_certain_count,
    released_from,
    shown_by_average,
    shown_by_sum,
    shown_in_order,
    sum_intervals,
)
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.numbers import THE_COUNT, Average, Form, Plain, Total
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
    if isinstance(form, Plain | Average):
        (place,) = form.parts
        return (_OfSum if isinstance(form, Plain) else _OfAverage)(place, columns[place].quantum)
    quanta = {THE_COUNT: Fraction(1), **{place: column.quantum for place, column in enumerate(columns)}}
    if isinstance(form, Total):
        return _OfTotal.of(form, [quanta[each] for each in form.terms])
    if form.below == THE_COUNT:
        return _OfQuotient(form.above, quanta[form.above] * form.factor)
    factor = form.factor / quanta[form.below]
    return _OfTwo(_column(form.above), form.below, quanta[form.above], factor)


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


@dataclass(frozen=True)
class _OfTwo:
    """A quotient of two numbers that have noise of their own, and that of the count."""

    said: ClassVar[Statement | None] = Statement(
        "sums.ratios",
        "A quotient of two numbers has the interval of the quotient, with the noise that both share, and not of two "
        "intervals, given that the divisor is above 0. Where it may be 0 or less, no quotient is shown; where it is "
        "little above that, the interval is wide. Each number is cut by its own bounds.",
    )
    may_be_missing: ClassVar[bool] = True
    above: int | None
    below: int
    quantum: Fraction
    factor: Fraction

    def value(self, release: ReleasedMoments, alpha: Fraction) -> Value:
        column = release.columns[self.below]
        least = least_divisor(release, self.below, released_from(release), alpha=alpha)

        def divided(row: int) -> Fraction | None:
            if column.doubled_sum(row) < least:
                return None
            return quotient(release, self.above, self.below, row) * self.quantum * self.factor

        return divided

    def rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        # Which of them have a value depends on over how many intervals alpha is divided.
        is_cut = most < release.groups.size
        level = alpha / (release.groups.size if is_cut else 1)
        return shown_in_order(release, self.value(release, level), most)

    def answered(self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction) -> AnsweredAggregate:
        found = quotient_intervals(release, self.above, self.below, shown, alpha=alpha)
        values = (
            None if each is None else quotient(release, self.above, self.below, row)
            for row, each in zip(shown.rows, found, strict=True)
        )
        step = self.quantum * self.factor
        return ShownAverages(tuple(_in_units(*each, step) for each in zip(values, found, strict=True)))


@dataclass(frozen=True)
class _OfTotal:
    said: ClassVar[Statement | None] = Statement(
        "sums.differences",
        "A sum or a difference of numbers has the interval of what it is, with the noise that its numbers share, and "
        "not of several intervals. Each number is cut by its own bounds.",
    )
    may_be_missing: ClassVar[bool] = False
    numbers: tuple[Weighted, ...]
    quantum: Fraction

    @classmethod
    def of(cls, form: Total[int], quanta: Sequence[Fraction]) -> _OfTotal:
        """Return the view of numbers with these quanta: in steps of the largest one that divides all of them."""
        scale = math.lcm(*(each.denominator for each in quanta))
        step = Fraction(math.gcd(*(int(each * scale) for each in quanta)), scale)
        terms = zip(form.terms, form.signs, quanta, strict=True)
        return cls(tuple(Weighted(_column(each), sign * own / step) for each, sign, own in terms), step)

    def value(self, release: ReleasedMoments, alpha: Fraction) -> Value:
        return lambda row: doubled_total(release, self.numbers, row) / 2 * self.quantum

    def rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        return shown_in_order(release, self.value(release, alpha), most)

    def answered(self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction) -> AnsweredAggregate:
        doubled = (int(doubled_total(release, self.numbers, row)) for row in shown.rows)
        ends = total_intervals(release, self.numbers, shown, alpha=alpha)
        return sums_shown(doubled, ends, self.quantum)


def _column(place: int) -> int | None:
    return None if place == THE_COUNT else place


def sums_shown(doubled: Iterable[int], ends: Sequence[SumInterval], quantum: Fraction) -> ShownSums:
    """Return sums and their intervals, of which `doubled` is twice the sums in steps of the quantum."""
    lower, upper = (tuple(2 * each[end] for each in ends) for end in (0, 1))
    return ShownSums(tuple(doubled), lower, upper, quantum)


def _in_units(value: Fraction | None, interval: AverageInterval | None, quantum: Fraction) -> Answer | None:
    if value is None or interval is None:
        return None
    return Answer(value * quantum, interval.lower * quantum, interval.upper * quantum)
