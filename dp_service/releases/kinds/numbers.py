"""What is shown of each form of number: its value in a row, its list, and its intervals.

All of it follows from what was released of counts and sums, so none of it has a price.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import ClassVar, Protocol

from dp_service.mechanisms.aggregates.intervals import (
    AverageInterval,
    ShownRows,
    SumInterval,
    average_intervals,
    count_intervals,
    least_certain_count,
    released_from,
    shown_by_average,
    shown_by_sum,
    shown_in_order,
    sum_intervals,
)
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.expressions import OverAll, leaves
from dp_service.parameters.numbers import THE_COUNT, Average, Computed, Form, Plain
from dp_service.releases.kinds.arithmetic import SAID, Arithmetic, Noise, may_be_missing, step_of
from dp_service.releases.kinds.kind import Value
from dp_service.releases.kinds.linear import Ends
from dp_service.releases.kinds.views import Answer, AnsweredAggregate, ShownAverages, ShownSums
from dp_service.releases.statements import Statement


class NumberView(Protocol):
    """What is shown of a number of one form.

    Attributes:
        said: What is said of numbers of this form; None: nothing.
    """

    said: ClassVar[Statement | None]

    @property
    def may_be_missing(self) -> bool:
        """Whether it has no value where it would be divided by what may be 0."""

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
    return _OfExpression(form, tuple(quanta[place] for place in form.parts))


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
        return sums_shown(map(column.doubled_sum, shown.rows), ends, self.quantum, grid=column.grid)


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
class _OfExpression:
    """Arithmetic over numbers of the release.

    Attributes:
        form: The numbers, and the expression over them.
        quanta: What one step of each number is worth.
    """

    said: ClassVar[Statement | None] = SAID
    form: Computed[int]
    quanta: tuple[Fraction, ...]

    @property
    def may_be_missing(self) -> bool:
        averages = any(isinstance(each, Average) for each in self.form.numbers)
        return averages or may_be_missing(self.form.expression)

    @property
    def quantum(self) -> Fraction:
        return step_of(self.form.expression, self.quanta)

    def value(self, release: ReleasedMoments, alpha: Fraction) -> Value:
        every, to_reach = tuple(range(release.groups.size)), released_from(release)
        if any(isinstance(each, OverAll) for each in leaves(self.form.expression)):
            answers = self._answers(release, ShownRows(every, (to_reach,) * len(every)), alpha)
            return lambda row: _value(answers[row])
        return lambda row: _value(*self._answers(release, ShownRows((row,), (to_reach,)), alpha))

    def rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        # Which of them have a value depends on over how many intervals alpha is divided.
        size = release.groups.size
        value = self.value(release, alpha / (size if most < size else 1))
        every = ShownRows(tuple(range(size)), (None,) * size)
        values = Arithmetic(self.form.expression, self._parts(release, every), alpha).values()
        # Intervals of all rows of a long list take long, so of those that are cut off there are none.
        certain = (row for row in release.rows_by(values.__getitem__) if value(row) is not None)
        first = {row: Fraction(-place) for place, row in enumerate(islice(certain, most))}
        return shown_in_order(release, first.get, most)

    def answered(self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction) -> AnsweredAggregate:
        return ShownAverages(self._answers(release, shown, alpha))

    def _answers(
        self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction
    ) -> tuple[Answer | None, ...]:
        return Arithmetic(self.form.expression, self._parts(release, shown), alpha).answers()

    def _parts(self, release: ReleasedMoments, shown: ShownRows) -> _Parts:
        return _Parts(release, shown, self.form.numbers, self.quanta)


@dataclass(frozen=True)
class _Parts:
    """The numbers of an expression in the rows that are shown.

    A row's draws are named by their columns; that of its count is THE_COUNT, and that of a count of a column's own
    stands below it.
    """

    release: ReleasedMoments
    shown: ShownRows
    numbers: tuple[Plain[int] | Average[int], ...]
    quanta: tuple[Fraction, ...]

    @property
    def rows(self) -> int:
        return len(self.shown.rows)

    @property
    def candidates(self) -> int:
        return self.shown.simultaneous

    @property
    def variances(self) -> Mapping[int, Fraction]:
        columns = self.release.columns
        found = {place: column.sum_variance for place, column in enumerate(columns)}
        found |= {
            _own(place): column.count_variance for place, column in enumerate(columns) if column.has_own_count
        }
        selected = any(each is not None for each in self.shown.thresholds)
        return found if selected else {**found, THE_COUNT: self.release.count_variance}

    def values(self, place: int) -> Sequence[Fraction | None]:
        (column,) = self.numbers[place].parts
        if column == THE_COUNT:
            return [Fraction(int(self.release.counts[row]), self.release.grid) for row in self.shown.rows]
        released, quantum = self.release.columns[column], self.quanta[place]
        if isinstance(self.numbers[place], Plain):
            return [released.sum_of(row) * quantum for row in self.shown.rows]
        averages = map(released.average_of, self.shown.rows)
        return [None if each is None else each * quantum for each in averages]

    def ends(self, place: int, alpha: Fraction) -> Sequence[Ends | None]:
        (column,), step = self.numbers[place].parts, self.quanta[place] / self.release.grid
        found: Sequence[SumInterval | AverageInterval | None]
        if column == THE_COUNT:
            found = count_intervals(self.release, self.shown, alpha=alpha)
        elif isinstance(self.numbers[place], Plain):
            # Those of sums are at half of what is given.
            found = sum_intervals(self.release, column, self.shown, alpha=2 * alpha)
        else:
            found, step = average_intervals(self.release, column, self.shown, alpha=alpha), self.quanta[place]
        return [None if each is None else Ends(each.lower * step, each.upper * step) for each in found]

    def noise(self, place: int) -> Noise | None:
        (column,) = self.numbers[place].parts
        if isinstance(self.numbers[place], Average):
            return None
        if column == THE_COUNT:
            return {THE_COUNT: Fraction(1, self.release.grid)}
        released, half = self.release.columns[column], self.quanta[place] / 2
        of_count = _own(column) if released.has_own_count else THE_COUNT
        of_sum = half / released.centred_grid
        return {column: of_sum, of_count: half * released.clamp.centre / released.grid}


def _own(column: int) -> int:
    return THE_COUNT - 1 - column


def _value(answer: Answer | None) -> Fraction | None:
    return None if answer is None else answer.value


def sums_shown(
    doubled: Iterable[int], ends: Sequence[SumInterval], quantum: Fraction, *, grid: int
) -> ShownSums:
    """Return sums and their intervals, rounded to half a quantum and outwards; both are in steps of the grid.

    `doubled` is twice the sums.
    """
    lower, upper = zip(*ends, strict=True) if ends else ((), ())
    return ShownSums(
        tuple((2 * each + grid) // (2 * grid) for each in doubled),
        tuple(2 * each // grid for each in lower),
        tuple(-(-2 * each // grid) for each in upper),
        quantum,
    )


def _in_units(value: Fraction | None, interval: AverageInterval | None, quantum: Fraction) -> Answer | None:
    if value is None or interval is None:
        return None
    return Answer(value * quantum, interval.lower * quantum, interval.upper * quantum)
