"""The ends beside a number, and what they say of the number in the table: the same on every surface.

Bounds of a policy can cut what members have. Then noise says nothing of the number in the table from above, and nothing
at all where numbers are divided or subtracted. Columns, JSON and tools name ends by the fields here.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from pinot_connector import formats
from pinot_connector.errors import IntegrityError

End = TypeVar("End", int, Fraction, datetime.date)


class Interval(NamedTuple, Generic[End]):
    """Both ends hold the number in the table with the confidence, inclusive."""

    lower: End
    upper: End


class Least(NamedTuple, Generic[End]):
    """The number in the table is no less; that is wrong half as often as an interval misses."""

    at_least: End


class LeastAndMost(NamedTuple, Generic[End]):
    """It is no less, and no more if at most as much is cut as the policy's owner states."""

    at_least: End
    at_most: End


class Noise(NamedTuple, Generic[End]):
    """The number of what counts lies between them with the confidence; that in the table may lie elsewhere."""

    noise_lower: End
    noise_upper: End


class Cell(NamedTuple, Generic[End]):
    """The first and the last value of the public cell that was chosen for a quantile."""

    cell_from: End
    cell_to: End


# Digits behind the point, where a column says nothing of them.
_DIGITS = 2

Ends: TypeAlias = Interval[End] | Least[End] | LeastAndMost[End] | Noise[End] | Cell[End]
AnyEnds: TypeAlias = Ends[int] | Ends[Fraction] | Ends[datetime.date]


FORMS: tuple[type, ...] = (Interval, Least, LeastAndMost, Noise, Cell)


@dataclass(frozen=True)
class TwoSided:
    """Nothing that a member has can be cut: the ends beside a number hold the number in the table."""

    names: ClassVar = Interval._fields

    def ends(self, lower: End, upper: End) -> Ends[End]:
        """Returns the ends that noise leaves possible as what they say."""
        return Interval(lower, upper)

    def head(self, confidence: float) -> str:
        """Returns what stands above the ends in a table."""
        return f"{formats.confidence(confidence)} interval"


@dataclass(frozen=True)
class AtLeast:
    """Members can be cut: the number in the table is at least the lower end.

    With a `largest_cut` that the owner states, it is at most the upper end divided by what is left.
    """

    largest_cut: Fraction | None = None

    def __post_init__(self) -> None:
        if self.largest_cut is not None and not 0 < self.largest_cut < 1:
            raise IntegrityError("dp_service sent a part that is none")

    @property
    def names(self) -> tuple[str, ...]:
        """What the ends are called."""
        return Least._fields if self.largest_cut is None else LeastAndMost._fields

    def ends(self, lower: End, upper: End) -> Ends[End]:
        """Returns the ends that noise leaves possible as what they say."""
        if self.largest_cut is None or isinstance(upper, datetime.date):
            return Least(lower)
        most = upper / (1 - self.largest_cut)
        return LeastAndMost(lower, ceil(most) if isinstance(upper, int) else most)

    def head(self, confidence: float) -> str:
        """Returns what stands above the ends in a table: each misses half as often as an interval."""
        often = formats.confidence(float(1 - (1 - Fraction(str(confidence))) / 2))
        cut = "" if self.largest_cut is None else f", if at most {self.largest_cut} is cut"
        return f"bound ({often}{cut})"


@dataclass(frozen=True)
class NoiseAlone:
    """Members can be cut, and the number in the table can lie to either side of the ends."""

    names: ClassVar = Noise._fields

    def ends(self, lower: End, upper: End) -> Ends[End]:
        """Returns the ends that noise leaves possible as what they say."""
        return Noise(lower, upper)

    def head(self, confidence: float) -> str:
        """Returns what stands above the ends in a table."""
        return "noise"


@dataclass(frozen=True)
class InCells:
    """The number is the middle of a public cell."""

    names: ClassVar = Cell._fields

    def ends(self, lower: End, upper: End) -> Ends[End]:
        """Returns the ends of a cell."""
        return Cell(lower, upper)

    def head(self, confidence: float) -> str:
        """Returns what stands above the ends in a table."""
        return "cell"


Coverage: TypeAlias = TwoSided | AtLeast | NoiseAlone


def written(value: float | Fraction | datetime.date, ends: AnyEnds, least: int = _DIGITS) -> tuple[str, str]:
    """Returns a number and the ends beside it as people read them: numbers with their thousands apart, and days.

    Exact numbers have `least` digits behind the point, or more (`formats.digits_of`). What is written holds the ends:
    the lower one is rounded down, and the upper one up.
    """
    if not isinstance(value, Fraction):
        texts = (str(each) if isinstance(each, datetime.date) else f"{each:,}" for each in (value, *ends))
        number, *rounded = texts
        return number, _said(ends).format(*rounded)
    exact = tuple(each for each in ends if isinstance(each, Fraction))
    digits = formats.digits_of(value, exact, least)
    scale = 10**digits
    steps = (round(value * scale), floor(exact[0] * scale), *(ceil(each * scale) for each in exact[1:]))
    number, *rounded = (formats.decimal(each, digits) for each in steps)
    return number, _said(ends).format(*rounded)


def _said(ends: AnyEnds) -> str:
    match ends:
        case Least():
            return "at least {}"
        case LeastAndMost():
            return "at least {}, at most {}"
    return "{} to {}"
