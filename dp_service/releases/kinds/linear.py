"""Linear forms of released numbers, and quotients of two of them: what an expression is made of where it can be.

A quotient P / Q of linear forms is largest and smallest at corners of a box on which Q is not 0: along each number it
is monotone, whatever the others are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple, TypeAlias

from dp_service.parameters.expressions import (
    Expression,
    Number,
    OverAll,
    Product,
    Quotient,
    Released,
    Sum,
)

# A quotient of more numbers than this is taken as one of two intervals.
_MOST_CORNERED = 8


class Leaf(NamedTuple):
    """A released number of a row, or the sum of it over all other rows that are shown."""

    place: int
    of_others: bool = False


class Ends(NamedTuple):
    """The ends of an interval, both inclusive."""

    lower: Fraction
    upper: Fraction

    def times(self, other: Ends) -> Ends:
        """Return the products of numbers of both."""
        found = [one * another for one in self for another in other]
        return Ends(min(found), max(found))

    def inverted(self) -> Ends | None:
        """Return the inverses; None: the interval holds 0."""
        return None if self.lower <= 0 <= self.upper else Ends(1 / self.upper, 1 / self.lower)


Box: TypeAlias = Mapping[Leaf, Ends]
Point: TypeAlias = Mapping[Leaf, Fraction]


@dataclass(frozen=True)
class Linear:
    """A number, and numbers times their weights, of which none is 0."""

    constant: Fraction
    weights: Mapping[Leaf, Fraction]

    @property
    def is_constant(self) -> bool:
        """Whether it depends on no released number."""
        return not self.weights

    def times(self, factor: Fraction) -> Linear:
        """Return it times a number."""
        if not factor:
            return _ZERO
        return Linear(
            self.constant * factor, {leaf: weight * factor for leaf, weight in self.weights.items()}
        )

    def plus(self, other: Linear) -> Linear:
        """Return the sum of both."""
        added = {
            leaf: self.weights.get(leaf, Fraction(0)) + other.weights.get(leaf, Fraction(0))
            for leaf in (*self.weights, *other.weights)
        }
        return Linear(
            self.constant + other.constant, {leaf: weight for leaf, weight in added.items() if weight}
        )

    def at(self, point: Point) -> Fraction:
        """Return its value."""
        return self.constant + sum(weight * point[leaf] for leaf, weight in self.weights.items())

    def ends(self, box: Box) -> Ends:
        """Return its smallest and its largest value in a box."""
        ends = [
            sorted((weight * box[leaf].lower, weight * box[leaf].upper))
            for leaf, weight in self.weights.items()
        ]
        return Ends(
            self.constant + sum(low for low, _ in ends), self.constant + sum(high for _, high in ends)
        )


_ZERO = Linear(Fraction(0), {})
_ONE = Linear(Fraction(1), {})


@dataclass(frozen=True)
class Ratio:
    """One linear form divided by another one; by a number, by 1."""

    above: Linear
    below: Linear

    @classmethod
    def of(cls, above: Linear, below: Linear) -> Ratio | None:
        """Return a quotient; None: it is divided by 0."""
        if not below.is_constant:
            return cls(above, below)
        return cls(above.times(1 / below.constant), _ONE) if below.constant else None

    @property
    def linear(self) -> Linear | None:
        """The linear form that it is; None: it is a quotient."""
        return self.above if self.below.is_constant else None

    def ends(self, box: Box) -> Ends | None:
        """Return its smallest and its largest value in a box; None: its divisor may be 0."""
        above, below = self.above.ends(box), self.below.ends(box).inverted()
        if below is None:
            return None
        named = {*self.above.weights, *self.below.weights}
        if self.below.is_constant or len(named) > _MOST_CORNERED:
            return above.times(below)
        corners = (
            dict(zip(named, corner, strict=True)) for corner in product(*(box[leaf] for leaf in named))
        )
        found = [self.above.at(corner) / self.below.at(corner) for corner in corners]
        return Ends(min(found), max(found))


def ratio_of(expression: Expression) -> Ratio | None:
    """Return an expression as one quotient of linear forms; None: it is none."""
    match expression:
        case Number(value):
            return Ratio(_ONE.times(value), _ONE)
        case Released(place):
            return Ratio(Linear(Fraction(0), {Leaf(place): Fraction(1)}), _ONE)
        case OverAll(place):
            every = {Leaf(place): Fraction(1), Leaf(place, of_others=True): Fraction(1)}
            return Ratio(Linear(Fraction(0), every), _ONE)
        case Sum(terms):
            return _folded(terms, _sum)
        case Product(factors):
            return _folded(factors, _product)
        case Quotient(above, below):
            return _folded((above, below), _quotient)


def ends_of(expression: Expression, box: Box) -> Ends | None:
    """Return ends between which an expression lies in a box; None: a divisor may be 0."""
    if (ratio := ratio_of(expression)) is not None:
        return ratio.ends(box)
    match expression:
        case Sum(terms):
            return _each(
                terms, box, lambda one, other: Ends(one.lower + other.lower, one.upper + other.upper)
            )
        case Product(factors):
            return _each(factors, box, Ends.times)
        case Quotient(above, below):
            divided, divisor = ends_of(above, box), ends_of(below, box)
            inverted = None if divisor is None else divisor.inverted()
            return None if divided is None or inverted is None else divided.times(inverted)
    # A divisor that is 0 whatever the released numbers are.
    return None


def value_of(expression: Expression, point: Point) -> Fraction | None:
    """Return the value of an expression; None: a divisor is 0."""
    found = ends_of(expression, {leaf: Ends(value, value) for leaf, value in point.items()})
    return None if found is None else found.lower


def _each(parts: tuple[Expression, ...], box: Box, join: Callable[[Ends, Ends], Ends]) -> Ends | None:
    found: Ends | None = None
    for part in parts:
        ends = ends_of(part, box)
        if ends is None:
            return None
        found = ends if found is None else join(found, ends)
    return found


def _folded(parts: tuple[Expression, ...], join: Callable[[Ratio, Ratio], Ratio | None]) -> Ratio | None:
    found: Ratio | None = None
    for part in parts:
        ratio = ratio_of(part)
        if ratio is None:
            return None
        found = ratio if found is None else join(found, ratio)
        if found is None:
            return None
    return found


def _sum(one: Ratio, other: Ratio) -> Ratio | None:
    if one.below == other.below:
        return Ratio(one.above.plus(other.above), one.below)
    if one.linear is not None:
        one, other = other, one
    if other.linear is None or not other.linear.is_constant:
        return None
    return Ratio(one.above.plus(one.below.times(other.linear.constant)), one.below)


def _product(one: Ratio, other: Ratio) -> Ratio | None:
    if one.linear is not None and one.linear.is_constant:
        one, other = other, one
    if other.linear is None or not other.linear.is_constant:
        return None
    return Ratio(one.above.times(other.linear.constant), one.below)


def _quotient(one: Ratio, other: Ratio) -> Ratio | None:
    if other.linear is None:
        inverted = Ratio.of(other.below, other.above)
        return None if inverted is None else _product(inverted, one)
    if one.linear is not None:
        return Ratio.of(one.linear, other.linear)
    if not other.linear.is_constant or not other.linear.constant:
        return None
    return Ratio(one.above.times(1 / other.linear.constant), one.below)
