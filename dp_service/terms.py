"""The terms that all packages share: names of mechanisms, kinds of noise, column types, and what an element is.

This module imports nothing of the project, so every package may use it.
"""

from __future__ import annotations

from enum import StrEnum


class MechanismName(StrEnum):
    """The mechanisms that are served, each by its published name."""

    KNOWN_LAP = "KnownLap"
    KNOWN_GUMB = "KnownGumb"
    UNK_LAP = "UnkLap"
    UNK_GUMB = "UnkGumb"
    BOUND_GAUSS = "BoundGauss"
    BOUND_MOMENTS = "BoundMoments"

    @property
    def is_gumbel(self) -> bool:
        """Whether elements are selected by Gumbel noise; their counts then get noise of their own, and a price."""
        return self in (MechanismName.KNOWN_GUMB, MechanismName.UNK_GUMB)


class CountNoise(StrEnum):
    """The law of the noise in counts that are drawn apart from the selection, by its name in a policy.

    GAUSSIAN is worth its price in zCDP only.
    """

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class BoundedBy(StrEnum):
    """Why a member counts in at most Delta_0 elements, by its name in a policy.

    IN_QUERY: the query itself counts no more of them. PREPARED: the table is a copy that `gris bound` made. ASSUMED:
    the policy's author promises it; nothing checks it, and if it is false the guarantee is.
    """

    IN_QUERY = "in_query"
    PREPARED = "prepared"
    ASSUMED = "assumed"


class Answering(StrEnum):
    """A way of answering between which a policy lets the service choose, by its name in a policy.

    UNBOUNDED: the mechanism that needs no bound, whose price grows with k. ONE_LOOK and TWO_LOOKS: bounded
    contributions; over a known domain two looks are one.
    """

    UNBOUNDED = "unbounded"
    ONE_LOOK = "one_look"
    TWO_LOOKS = "two_looks"


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
    """

    INT64 = "int64"
    DECIMAL = "decimal"


class AggregateFunction(StrEnum):
    """What is computed of a column in each element: the sum, or the average, of its members' totals."""

    SUM = "sum"
    AVERAGE = "average"


Scalar = str | int | bool
"""One value of an element; a day is its number of days since 1970-01-01."""

Element = tuple[Scalar, ...]
"""What a count belongs to: one value for each column that is grouped by."""
