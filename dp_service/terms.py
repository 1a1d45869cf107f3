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


Scalar = str | int | bool
"""One value of an element; a day is its number of days since 1970-01-01."""

Element = tuple[Scalar, ...]
"""What a count belongs to: one value for each column that is grouped by."""
