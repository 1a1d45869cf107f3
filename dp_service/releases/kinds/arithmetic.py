"""Arithmetic over released numbers: its value in each row that is shown, and its interval.

All of it follows from what was released, so it has no price, and whatever a question computes of the same numbers is of
the same release.

LINEAR, over numbers that nothing selected: the law of the sum of their independent noise, on the grid on which it lies.
Numbers of one row share the noise of its count, so weights of one draw are added up first.

OTHERWISE the box: each number has its own interval, given that it is shown, at alpha divided by how many numbers there
are. With 1 - alpha all of them hold at once, however their noise depends on one another, and then the result lies
between its ends in that box. Where the interval of a divisor holds 0, there is no result.

`SUM(number) OVER ()` is the number of the row and the sum of the others. That sum is one number with one interval where
nothing selected its terms; else it is as many numbers as it has terms.

Where a number other than the count decided which rows are shown, every interval is at alpha divided by how many rows
were released, and so is this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol, TypeAlias

from dp_service.mechanisms.aggregates.added_draws import Draws, half_width
from dp_service.parameters.expressions import Expression, leaves
from dp_service.releases.kinds.linear import Box, Ends, Leaf, Linear, Point, ends_of, ratio_of, value_of
from dp_service.releases.kinds.views import Answer
from dp_service.releases.statements import Statement

SAID = Statement(
    "numbers.arithmetic",
    "What is computed of released numbers has no price. The interval of a sum or a difference of numbers that nothing "
    "selected is that of their noise together; any other has the box of its numbers' intervals, with the error divided "
    "by how many they are. It holds for numbers chosen beforehand: of the largest of several, divide the error by how "
    "many there were. Where the interval of a divisor holds 0, there is no result.",
)

_HUNDREDTH = Fraction(1, 100)
_MOST_SHORT = 10**4

Noise: TypeAlias = Mapping[int, Fraction]
"""The noise of a number: the weights of the row's draws in it."""


class Parts(Protocol):
    """The released numbers of the rows that are shown, by their places in an expression."""

    @property
    def rows(self) -> int:
        """How many rows are shown."""

    @property
    def candidates(self) -> int:
        """Over how many intervals alpha is divided for what decided which rows are shown."""

    @property
    def variances(self) -> Mapping[int, Fraction]:
        """The variance of each of a row's draws, but for those that had a part in what is shown."""

    def values(self, place: int) -> Sequence[Fraction | None]:
        """Return a number of each row; None: the row has none."""

    def ends(self, place: int, alpha: Fraction) -> Sequence[Ends | None]:
        """Return its interval in each row, given that the row is shown."""

    def noise(self, place: int) -> Noise | None:
        """Return its noise; None: it is no linear form of draws."""


@dataclass(frozen=True)
class Arithmetic:
    """An expression over the numbers of an answer."""

    expression: Expression
    parts: Parts
    alpha: Fraction

    def answers(self) -> tuple[Answer | None, ...]:
        """Return its value and its interval in each row that is shown; None: it has no value there."""
        if not self.parts.rows:
            return ()
        ratio = ratio_of(self.expression)
        linear = None if ratio is None else ratio.linear
        width = None if linear is None or len(linear.weights) < 2 else self._width(linear)
        if linear is None or width is None:
            return tuple(self._in_boxes())
        return tuple(
            None if each is None else Answer(each, each - width, each + width) for each in self.values()
        )

    def values(self) -> list[Fraction | None]:
        """Return its value in each row, wherever its interval is."""
        complete = len(self._named)
        return [
            value_of(self.expression, point) if len(point) == complete else None for point in self._points()
        ]

    def _width(self, linear: Linear) -> Fraction | None:
        """Return how far the noise of a linear form reaches to either side; None: its law is not known."""
        own, others = (self._noise(linear, of_others=each) for each in (False, True))
        known = self.parts.variances
        if own is None or others is None or not {*own, *others} <= set(known):
            return None
        draws = [Draws(weight, known[draw]) for draw, weight in own.items()]
        draws += [Draws(weight, known[draw], self.parts.rows - 1) for draw, weight in others.items()]
        return half_width(draws, self.alpha / self.parts.candidates)

    def _noise(self, linear: Linear, *, of_others: bool) -> dict[int, Fraction] | None:
        """Return the weights of the draws of a row, or of each other row, in a linear form."""
        found: dict[int, Fraction] = {}
        for leaf, weight in linear.weights.items():
            if leaf.of_others is not of_others:
                continue
            noise = self.parts.noise(leaf.place)
            if noise is None:
                return None
            for draw, of_draw in noise.items():
                found[draw] = found.get(draw, Fraction(0)) + weight * of_draw
        return {draw: weight for draw, weight in found.items() if weight}

    @cached_property
    def _named(self) -> list[Leaf]:
        """The numbers of a row that the expression is of."""
        ratios = map(ratio_of, leaves(self.expression))
        return sorted({leaf for ratio in ratios if ratio is not None for leaf in ratio.above.weights})

    def _values(self, leaf: Leaf) -> Sequence[Fraction | None]:
        values = self.parts.values(leaf.place)
        if not leaf.of_others:
            return values
        known = [each for each in values if each is not None]
        whole = sum(known)
        return [None if each is None or len(known) < len(values) else whole - each for each in values]

    def _ends(self, leaf: Leaf, level: Fraction) -> Sequence[Ends | None]:
        if not leaf.of_others:
            return self.parts.ends(leaf.place, level)
        width = self._width_of_others(leaf, level)
        if width is not None:
            values = self._values(leaf)
            return [None if each is None else Ends(each - width, each + width) for each in values]
        ends = self.parts.ends(leaf.place, level)
        known = [each for each in ends if each is not None]
        if len(known) < len(ends):
            return [None] * len(ends)
        lower, upper = (sum(each[end] for each in known) for end in (0, 1))
        return [Ends(lower - each.lower, upper - each.upper) for each in known]

    def _width_of_others(self, leaf: Leaf, level: Fraction) -> Fraction | None:
        """Return how far the sum of a number over other rows may be off; None: its law is not known."""
        return replace(self, alpha=level)._width(Linear(Fraction(0), {leaf: Fraction(1)}))

    def _numbers_in(self, leaf: Leaf) -> int:
        """Return how many intervals a leaf takes."""
        return (
            self.parts.rows - 1 if leaf.of_others and self._width_of_others(leaf, self.alpha) is None else 1
        )

    def _points(self) -> Iterator[Point]:
        """Yield the numbers of each row; of one that lacks some, none."""
        columns = {leaf: self._values(leaf) for leaf in self._named}
        for row in range(self.parts.rows):
            found = {leaf: values[row] for leaf, values in columns.items()}
            yield {leaf: value for leaf, value in found.items() if value is not None}

    def _in_boxes(self) -> Iterator[Answer | None]:
        level = self.alpha / max(sum(self._numbers_in(leaf) for leaf in self._named), 1)
        columns = {leaf: self._ends(leaf, level) for leaf in self._named}
        for row, point in enumerate(self._points()):
            box = {leaf: ends[row] for leaf, ends in columns.items()}
            yield self._in_box(point, {leaf: ends for leaf, ends in box.items() if ends is not None})

    def _in_box(self, point: Point, box: Box) -> Answer | None:
        if set(point) != set(box) or len(point) < len(self._named):
            return None
        ends, value = ends_of(self.expression, box), value_of(self.expression, point)
        if ends is None or value is None:
            return None
        # A wider interval covers as often, and people read one that leaves out the value beside it as a mistake.
        return Answer(value, min(ends.lower, value), max(ends.upper, value))


def step_of(expression: Expression, quanta: Sequence[Fraction]) -> Fraction:
    """Return what one step of the value is worth: that of its grid, or a hundredth where that is no short decimal."""
    ratio = ratio_of(expression)
    linear = None if ratio is None else ratio.linear
    if linear is None:
        return _HUNDREDTH
    steps = [linear.constant, *(weight * quanta[leaf.place] for leaf, weight in linear.weights.items())]
    scale = math.lcm(*(each.denominator for each in steps))
    return Fraction(1, scale) if _MOST_SHORT % scale == 0 else _HUNDREDTH


def may_be_missing(expression: Expression) -> bool:
    """Return whether an expression has a divisor that is no number."""
    ratio = ratio_of(expression)
    return ratio is None or ratio.linear is None
