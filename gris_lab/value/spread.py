"""What is known of how members' totals are spread, and what an upper bound cuts of them: never less, never more.

Known are points of the distribution function F: a part of the members between `least` and `most` has at most `value`.
F rises, so between two points it lies between theirs. What a bound U takes from the sum of N members is N times the
integral of 1 - F from U on, and their mean is the integral from 0 on, as totals are not negative: both are bounded by
the points on either side.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from gris_data.errors import InputError


@dataclass(frozen=True)
class Known:
    """A part of the members, from `least` to `most`, has a total of at most `value`."""

    value: Fraction
    least: Fraction
    most: Fraction


@dataclass(frozen=True)
class Spread:
    """How the totals of so many members are spread, which are not negative.

    `largest`: no total is above it; None: nobody knows.

    Raises:
        InputError: A number is out of range, or larger values are said to be of fewer members.
    """

    members: int
    known: tuple[Known, ...]
    largest: Fraction | None = None

    def __post_init__(self) -> None:
        if self.members < 1:
            raise InputError(f"expected at least 1, got {self.members}", "members")
        if not self.known:
            raise InputError("expected how values are spread", "at", "answer")
        values = [each.value for each in self.known]
        if values[0] < 0 or values != sorted(set(values)):
            raise InputError("expected values of 0 or more, and larger ones for larger parts", "at")
        if self.largest is not None and self.largest < values[-1]:
            raise InputError("expected no less than a value that is known of some members", "largest")
        least = [each.least for each in self.known]
        if least != sorted(least):
            raise InputError("expected larger values for larger parts", "at")

    def above(self, value: Fraction) -> tuple[Fraction, Fraction]:
        """Return which part of the members is above a value, at least and at most."""
        return 1 - self._at_most(value), 1 - self._at_least(value)

    def cut(self, upper: Fraction) -> tuple[Fraction, Fraction | None]:
        """Return what an upper bound takes from the sum of all totals, at least and at most (None: without end)."""
        least, most = self._beyond(upper)
        return self.members * least, None if most is None else self.members * most

    def mean(self) -> tuple[Fraction, Fraction | None]:
        """Return the mean of the totals, at least and at most (None: without end)."""
        return self._beyond(Fraction(0))

    def _beyond(self, start: Fraction) -> tuple[Fraction, Fraction | None]:
        """Return the integral of 1 - F from a value on."""
        ends = [] if self.largest is None else [self.largest]
        steps = sorted(
            {start, *(each for each in [*(known.value for known in self.known), *ends] if each > start)}
        )
        least = most = Fraction(0)
        for low, high in pairwise(steps):
            least += (1 - self._at_most(high)) * (high - low)
            most += (1 - self._at_least(low)) * (high - low)
        is_open = self.largest is None and self._at_least(steps[-1]) < 1
        return least, None if is_open else most

    def _at_least(self, value: Fraction) -> Fraction:
        """Return the least that F can be at a value."""
        if self.largest is not None and value >= self.largest:
            return Fraction(1)
        return max((each.least for each in self.known if each.value <= value), default=Fraction(0))

    def _at_most(self, value: Fraction) -> Fraction:
        """Return the most that F can be at a value."""
        return min((each.most for each in self.known if each.value >= value), default=Fraction(1))


def stated(points: Iterable[tuple[Fraction, Fraction]]) -> tuple[Known, ...]:
    """Return what an owner knows, as pairs of a part of the members and the value that it has at most.

    Raises:
        InputError: A part does not lie strictly between 0 and 1.
    """
    found = sorted(points)
    if any(not 0 < part < 1 for part, _ in found):
        raise InputError("expected parts strictly between 0 and 1", "at")
    return tuple(Known(value, part, part) for part, value in found)


def released(text: str, members: int) -> tuple[Known, ...]:
    """Return what a release of quantiles says, as `PrivateResult.to_dict` wrote it.

    The rank q is within `rank_errors` of the ranks in the cell, with the confidence of the release and but for members
    who share a cell with another quantile. So one part has at most the cell's last value, and another one more than the
    value before its first.

    Raises:
        InputError: It is no release of quantiles of one total.
    """
    try:
        answer = json.loads(text)
        stated_of, (row,) = answer["parameters"]["quantiles"], answer["rows"]
        step = Fraction(stated_of["column"]["quantum"])
        numbers = list(zip(stated_of["shown"], row["values"], answer["rank_errors"], strict=True))
        points = [
            point
            for shown, value, error in numbers
            if shown["function"] == "quantile"
            for point in _ends(value, step, Fraction(shown["q"]), Fraction(error) / members)
        ]
    except (ValueError, KeyError, TypeError):
        raise InputError("expected the JSON of an answer with quantiles of one total", "answer") from None
    return tuple(_rising([each for each in points if each.value >= 0]))


def _ends(value: dict[str, Any], step: Fraction, part: Fraction, error: Fraction) -> Iterator[Known]:
    """Yield what is known at both ends of a cell that holds a rank, which may be off by so large a part."""
    low, high = map(Fraction, value["interval"])
    yield Known(low - step, Fraction(0), min(part + error, Fraction(1)))
    yield Known(high, max(part - error, Fraction(0)), Fraction(1))


def _rising(points: Iterable[Known]) -> Iterator[Known]:
    """Yield points by value, each as certain as those on either side make it: F rises."""
    found = list(points)
    for value in sorted({each.value for each in found}):
        least = max((each.least for each in found if each.value <= value), default=Fraction(0))
        yield Known(value, least, min(each.most for each in found if each.value >= value))
