"""Arithmetic over released numbers, as a question asks for it: a tree whose leaves are numbers of one answer.

A leaf names a released number by its place in a list that stands beside the expression. No two classes have the same
fields, by which a plan tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias


@dataclass(frozen=True)
class Number:
    """A number that the question states."""

    value: Fraction


@dataclass(frozen=True)
class Released:
    """A released number of the row."""

    place: int


@dataclass(frozen=True)
class OverAll:
    """The sum of a released number over all rows that are shown."""

    added_up: int


@dataclass(frozen=True)
class Sum:
    """Terms added up."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Product:
    """Factors multiplied."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True)
class Quotient:
    """One expression divided by another one."""

    above: Expression
    below: Expression


Expression: TypeAlias = Number | Released | OverAll | Sum | Product | Quotient


def leaves(expression: Expression) -> Iterator[Released | OverAll]:
    """Yield the released numbers of an expression, each as often as it is written."""
    match expression:
        case Released() | OverAll():
            yield expression
        case Sum(parts) | Product(parts):
            for part in parts:
                yield from leaves(part)
        case Quotient(above, below):
            yield from leaves(above)
            yield from leaves(below)


def degree(expression: Expression) -> int:
    """Return how many released numbers are multiplied with, or divide, each other at most."""
    match expression:
        case Released() | OverAll():
            return 1
        case Sum(terms):
            return max(map(degree, terms))
        case Product(factors):
            return sum(map(degree, factors))
        case Quotient(above, below):
            return degree(above) + degree(below)
    return 0


def rises(expression: Expression) -> bool:
    """Return whether a value is the larger, the larger its released number is, wherever sums over all rows are above 0.

    It is asked of an expression with one released number.
    """
    match expression:
        case Released():
            return True
        case Sum(terms):
            return all(isinstance(term, Number) or rises(term) for term in terms)
        case Product(factors):
            rest = [factor for factor in factors if not rises(factor)]
            return len(rest) == len(factors) - 1 and all(map(_is_positive, rest))
        case Quotient(above, below):
            return rises(above) and _is_positive(below)
    return False


def _is_positive(expression: Expression) -> bool:
    match expression:
        case Number(value):
            return value > 0
        case Product(factors):
            return all(map(_is_positive, factors))
    return isinstance(expression, OverAll)


def negative(expression: Expression) -> Expression:
    """Return an expression times -1."""
    if isinstance(expression, Sum):
        return Sum(tuple(map(negative, expression.terms)))
    if isinstance(expression, Product) and expression.factors[0] == Number(Fraction(-1)):
        rest = expression.factors[1:]
        return rest[0] if len(rest) == 1 else Product(rest)
    return Product((Number(Fraction(-1)), expression))


def called(expression: Expression, names: Sequence[str]) -> str:
    """Return a name for the value of an expression, made of those of its leaves."""
    match expression:
        case Sum((first, *rest)):
            return called(first, names) + "".join(_added(called(term, names)) for term in rest)
        case Product((first, *rest)) if first == Number(Fraction(-1)):
            return f"minus_{_factors(rest, names)}"
        case Product(factors):
            return _factors(factors, names)
        case Quotient(above, below):
            return f"{called(above, names)}_per_{called(below, names)}"
    return _leaf_called(expression, names)


def _leaf_called(expression: Expression, names: Sequence[str]) -> str:
    match expression:
        case Released(place):
            return names[place]
        case OverAll(place):
            return f"sum_of_{names[place]}"
        case Number(value):
            return f"{float(value)!r}".removesuffix(".0").replace("-", "minus_")
    raise TypeError(f"expected a leaf, got {type(expression).__name__}")


def _added(name: str) -> str:
    return f"_{name}" if name.startswith("minus_") else f"_plus_{name}"


def _factors(factors: Sequence[Expression], names: Sequence[str]) -> str:
    return "_times_".join(called(factor, names) for factor in factors)
