"""What a result states of the values that it sums, averages or ranks."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from gris_api.dp.v1 import dp_pb2

from pinot_connector.coverage import Coverage
from pinot_connector.views import day, exact, known, meanings, read_by, view


class AggregateFunction(Enum):
    """What is added up in each element: the values of a column, or how many members or rows there are."""

    SUM = "sum"
    MEMBERS = "members"
    ROWS = "rows"


@dataclass(frozen=True)
class OwnCount:
    """The count that a summed column has of its own: for `share` of the units, with noise of `noise_variance`."""

    share: Fraction
    noise_variance: Fraction


@dataclass(frozen=True)
class SummedColumn:
    """A column that is summed; all numbers are exact.

    Of each member one number counts in each element: its total, between `lower` and `upper`, in steps of `quantum`.
    `share` is the column's part of the information units, and `noise_variance` that of its noise, in half steps. With
    an `own_count` rows without a usable value count, and the column's sums and averages are of the others. Without a
    name, members or rows are counted, as `function` says; of a column it is None. `condition` is
    the number of the condition that its rows meet, by the order of the question; None: they need not meet any.
    """

    name: str
    quantum: Fraction
    lower: Fraction
    upper: Fraction
    share: Fraction
    noise_variance: Fraction
    own_count: OwnCount | None = None
    function: AggregateFunction | None = None
    condition: int | None = None


@dataclass(frozen=True)
class ShownNumber:
    """A number that a result shows beside the count, and what to call it where it is displayed.

    One step of it is worth `quantum`. If it `may_be_missing`, it is divided by another number: where that may be 0,
    there is none. `coverage` is what the ends beside it say of the number in the table.
    """

    title: str
    quantum: Fraction
    may_be_missing: bool
    coverage: Coverage


@dataclass(frozen=True)
class Sums:
    """What a release sums beside its counts, which take `share` of the units, and what a question shows of that.

    `ordered_by` is the place in `aggregates` of what the list is in descending order of, None if that are the counts.
    """

    share: Fraction
    columns: tuple[SummedColumn, ...]
    aggregates: tuple[ShownNumber, ...]
    ordered_by: int | None = None


class MemberValue(Enum):
    """Which values of a member quantiles are of: its rows, or one value, their total, their mean or the largest."""

    ROWS = "rows"
    TOTAL = "total"
    MEAN = "mean"
    LARGEST = "largest"

    def called(self, column: str) -> str:
        """Return what the values of a column are called: by its own name only those of rows are."""
        return column if self is MemberValue.ROWS else f"{self.value}_{column}_per_member"


_MEMBER_VALUES = meanings(MemberValue, dp_pb2.MemberValue.DESCRIPTOR)


class GridScale(Enum):
    """How the cells of a public grid widen: all are equally wide, or by a common factor; or each has as many days."""

    LINEAR = "linear"
    GEOMETRIC = "geometric"
    DATES = "dates"


@dataclass(frozen=True)
class QuantileColumn:
    """A column whose quantiles may be asked for; all numbers are exact. With a grid of dates its values are days.

    Each value, in steps of `quantum`, is in one of so many public `cells` between `lower` and `upper`; values beyond
    are in the first cell or the last one.
    """

    name: str
    quantum: Fraction
    scale: GridScale
    lower: Fraction | datetime.date = field(metadata=read_by(lambda message: _end(message, message.lower)))
    upper: Fraction | datetime.date = field(metadata=read_by(lambda message: _end(message, message.upper)))
    cells: int


def _end(message: dp_pb2.QuantileColumn, text: str) -> Fraction | datetime.date:
    return day(text) if message.scale == dp_pb2.GRID_SCALE_DATES else exact(text)


class RankFunction(Enum):
    """Which of the members' values is shown: the one at a quantile, or about the smallest or the largest."""

    QUANTILE = "quantile"
    SMALLEST = "min"
    LARGEST = "max"


@dataclass(frozen=True)
class RankCut:
    """A part of the values in the cell of another quantile, `position`, by which a rank may be off further."""

    position: int
    part: Fraction


@dataclass(frozen=True)
class ShownQuantile:
    """A quantile that a result shows, `q` None for about the smallest and the largest value.

    With 95 %, for all quantiles of an element together, its wanted rank is within `rank_error` values, and what `cuts`
    add, of the ranks that the shown cell holds. Both follow from public numbers. `of`: of which values of a member.
    """

    function: RankFunction
    column: str
    q: Fraction | None
    alias: str | None
    rank_error: Fraction
    of: MemberValue
    cuts: tuple[RankCut, ...] = ()

    @property
    def title(self) -> str:
        """What to call it where a result is displayed."""
        if self.alias is not None:
            return self.alias
        if self.q is None:
            return f"{self.function.value}_{self.of.called(self.column)}"
        return f"{self.of.called(self.column)}_p{float(100 * self.q):g}"


def shown_quantiles(message: dp_pb2.Quantiles) -> tuple[ShownQuantile, ...]:
    """Return the quantiles of a message, each with its column."""
    of = known(_MEMBER_VALUES, message.member_value)
    return tuple(view(ShownQuantile, each, column=message.column.name, of=of) for each in message.shown)
