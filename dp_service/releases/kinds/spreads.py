"""Variances and standard deviations, as a release of sums shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dp_service.mechanisms.aggregates.intervals import ShownRows, shown_in_order
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.mechanisms.aggregates.spreads import SpreadColumns, SpreadInterval
from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.numbers import Spread
from dp_service.releases.kinds.kind import Value
from dp_service.releases.kinds.views import Answer, AnsweredAggregate, ShownAverages
from dp_service.releases.statements import Statement
from dp_service.values.bounds import Clamp


def rows_by_value(
    value: Callable[[ReleasedMoments, Fraction], Value], release: ReleasedMoments, most: int, alpha: Fraction
) -> ShownRows:
    """Return the `most` rows of a release where a number is largest, in its order."""
    # Which of them have a value depends on over how many intervals alpha is divided.
    is_cut = most < release.groups.size
    return shown_in_order(release, value(release, alpha / (release.groups.size if is_cut else 1)), most)


@dataclass(frozen=True)
class OfSpread:
    """A variance, or a standard deviation if it `is_root`, of which a step of the column is worth `step`."""

    said: ClassVar[Statement | None] = Statement(
        "sums.spreads",
        "Variances and standard deviations are of the numbers as they count, between their ends, and divided by how "
        "many there are, not by one less. Their intervals follow from those of two averages, of the numbers and of "
        "their squares, and cover more often than they say. Where the interval of a count reaches down to 0, none is "
        "shown.",
    )
    may_be_missing: ClassVar[bool] = True
    columns: SpreadColumns
    is_root: bool
    step: Fraction

    @classmethod
    def of(cls, form: Spread[int], columns: Sequence[SummedValue]) -> OfSpread:
        """Return the view of a column and its squares."""
        column, squared = columns[form.values], columns[form.squares]
        size = squared.quantum * 4 / column.quantum**2
        of_columns = SpreadColumns(form.values, form.squares, Clamp(column.low, column.high), size)
        return cls(of_columns, form.is_root, column.quantum)

    @property
    def quantum(self) -> Fraction:
        """What one of its steps is worth."""
        return self.step if self.is_root else self.step**2

    def value(self, release: ReleasedMoments, alpha: Fraction) -> Value:
        """Return what gives its value in a row; None: it has none."""

        def spread(row: int) -> Fraction | None:
            found = self.columns.shown_value(release, row, alpha=alpha)
            return None if found is None else self._in_units(SpreadInterval(found, found, found)).value

        return spread

    def rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        """Return the `most` rows where it is largest, in its order."""
        return rows_by_value(self.value, release, most, alpha)

    def answered(self, release: ReleasedMoments, shown: ShownRows, alpha: Fraction) -> AnsweredAggregate:
        """Return it in every row that is shown, with its interval."""
        found = self.columns.intervals(release, shown, alpha=alpha)
        return ShownAverages(tuple(None if each is None else self._in_units(each) for each in found))

    def _in_units(self, spread: SpreadInterval) -> Answer:
        ends = spread.root if self.is_root else spread
        return Answer(*(end * self.quantum for end in ends))
