"""The terms that all packages share: names of mechanisms, kinds of noise, column types, and what an element is.

This module imports nothing of the project, so every package may use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class MechanismName(StrEnum):
    """The mechanisms that are served, each by its published name."""

    KNOWN_LAP = "KnownLap"
    KNOWN_GUMB = "KnownGumb"
    UNK_LAP = "UnkLap"
    UNK_GUMB = "UnkGumb"
    BOUND_GAUSS = "BoundGauss"
    BOUND_MOMENTS = "BoundMoments"
    QUANTILE_GUMB = "QuantileGumb"

    @property
    def is_gumbel(self) -> bool:
        """Whether elements are selected by Gumbel noise; their counts then get noise of their own, and a price."""
        return self in (MechanismName.KNOWN_GUMB, MechanismName.UNK_GUMB)


class CountNoise(StrEnum):
    """The law of the noise in counts that are drawn apart from the selection, by its name in a policy.

    GAUSSIAN is worth its price in zCDP and Gaussian DP only.
    """

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class BoundedBy(StrEnum):
    """Why a member adds no more than Delta elements would, by its name in a policy.

    IN_QUERY: the query itself sees to it (`Bounding`). PREPARED: the table is a copy that `gris bound` made. ASSUMED:
    the policy's author promises it; nothing checks it, and if it is false the guarantee is.
    """

    IN_QUERY = "in_query"
    PREPARED = "prepared"
    ASSUMED = "assumed"


GRID = 100
"""Where members are weighted, counts are multiples of 1 / GRID."""

FINE_STEPS = 1000
"""So many steps between two ends are fine enough for a mean, and for what is rounded of each member."""


class Bounding(StrEnum):
    """What a query does so that a member adds, in square, no more than Delta elements would.

    NOTHING: no member has more, or something else sees to it. WEIGHTS: a member counts with less than 1 in each of many
    elements. FIRST: it counts in its first Delta elements by a hash.
    """

    NOTHING = "nothing"
    WEIGHTS = "weights"
    FIRST = "first"


class Consistency(StrEnum):
    """Whether the same question on the same data gets the same answer."""

    KEYED = "keyed"
    FRESH = "fresh"


class ColumnType(StrEnum):
    """The type of a column; floating-point numbers are refused by design, and timestamps are never grouped by."""

    STRING = "string"
    INT64 = "int64"
    BOOL = "bool"
    DATE = "date"
    TIMESTAMP = "timestamp"


class ValueType(StrEnum):
    """The type of a column that is summed, by its name in a policy.

    DECIMAL: decimal or floating-point numbers, which engines read as IEEE doubles before they round them.
    DATE: days, which count as their number since 1970-01-01; they have quantiles, and are never summed.
    """

    INT64 = "int64"
    DECIMAL = "decimal"
    DATE = "date"


class AggregateFunction(StrEnum):
    """What is added up in each element: the values of a column, or how many members or rows there are."""

    SUM = "sum"
    MEMBERS = "members"
    ROWS = "rows"


class RankFunction(StrEnum):
    """Which of the members' values is asked for: the one at a quantile, or about the smallest or the largest."""

    QUANTILE = "quantile"
    SMALLEST = "min"
    LARGEST = "max"


class GridScale(StrEnum):
    """How the cells of a public grid widen, by its name in a policy: all are equally wide, or by a common factor.

    DATES: each cell has equally many days.
    """

    LINEAR = "linear"
    GEOMETRIC = "geometric"
    DATES = "dates"


@dataclass(frozen=True)
class GridSpec:
    """How a public grid is made (`dp_service.values.cells`): from and to which step of the quantum, of how many cells.

    A geometric grid can have fewer.
    """

    scale: GridScale
    low: int
    high: int
    cells: int


class MemberValue(StrEnum):
    """Which values of a member quantiles are of: its rows, or one value, their total, their mean or the largest."""

    ROWS = "rows"
    TOTAL = "total"
    MEAN = "mean"
    LARGEST = "largest"


class Comparison(StrEnum):
    """How HAVING compares a number that was released with another one, by its sign in SQL."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="

    def holds(self, value: Fraction, bound: Fraction) -> bool:
        """Return whether a value compares so with a bound, exactly.

        >>> Comparison.AT_LEAST.holds(Fraction(1, 2), Fraction(1, 2))
        True
        """
        match self:
            case Comparison.EQUAL:
                return value == bound
            case Comparison.NOT_EQUAL:
                return value != bound
            case Comparison.LESS:
                return value < bound
            case Comparison.AT_MOST:
                return value <= bound
            case Comparison.GREATER:
                return value > bound
            case Comparison.AT_LEAST:
                return value >= bound


Scalar = str | int | bool
"""One value of an element; a day is its number of days since 1970-01-01."""

Element = tuple[Scalar, ...]
"""What a count belongs to: one value for each column that is grouped by."""
