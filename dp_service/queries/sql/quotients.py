"""A number divided by the count: COUNT(..) FILTER (WHERE ..) * 100.0 / COUNT(DISTINCT member), SUM(value) / COUNT(*).

Numbers by which it is multiplied are factors of what is shown; NULLIF(count, 0) is the count, for where that may be 0
nothing is shown. AVG of CASE with ELSE 0 is such a quotient, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.queries.asked_numbers import Aggregate, Measure
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import fraction_of
from dp_service.queries.sql.numbers import aggregate_of, is_aggregate, is_count, measure_of, number_function
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.scope import Scope, alias_name
from dp_service.queries.sql.tokens import Token
from dp_service.terms import AggregateFunction

_BY_COUNT = (
    "a quotient is of a number by the count of the question, such as SUM(value) / COUNT(DISTINCT member) or COUNT(*) "
    "FILTER (WHERE condition) / COUNT(*): ask for other numbers, and divide what comes back"
)


@dataclass(frozen=True)
class Quotient:
    """A number divided by the count of the question, which is of `measure`."""

    number: Aggregate
    measure: Measure


def quotient_of(product: tree.Product, alias: Token | None, scope: Scope) -> Quotient:
    """Return what a product of numbers asks for.

    Raises:
        QuestionError: It is no number divided by a count.
    """
    factor = Fraction(1)
    above: list[tree.Expression] = []
    below: list[tree.Expression] = []
    for node, divides in _factors(product, divides=False):
        if isinstance(node, tree.Number):
            number = fraction_of(node)
            if not number:
                refuse(node, "0 in a product of numbers is not accepted")
            factor = factor / number if divides else factor * number
        else:
            (below if divides else above).append(node)
    count = below[0] if len(below) == 1 else None
    if len(above) != 1 or not isinstance(count, tree.Call) or not is_count(count):
        refuse(product, _BY_COUNT)
    if factor <= 0:
        refuse(product, "a quotient with a negative factor is not accepted")
    measure = measure_of(count, scope)
    if not isinstance(measure, Measure):
        refuse(count, _BY_COUNT)
    name = None if alias is None else alias_name(alias)
    return Quotient(replace(_number_of(above[0], scope), per_count=factor, alias=name), measure)


def _number_of(node: tree.Expression, scope: Scope) -> Aggregate:
    if isinstance(node, tree.Call) and is_count(node):
        return Aggregate(number_function(node, scope))
    if not isinstance(node, tree.Call) or not is_aggregate(node):
        refuse(node, _BY_COUNT)
    found = aggregate_of(node, scope)
    if found.function is AggregateFunction.AVERAGE:
        refuse(node, "an average divided by a count is not accepted: ask for both, and compute")
    return found


def _factors(node: tree.Expression, *, divides: bool) -> Iterator[tuple[tree.Expression, bool]]:
    """Yield what is multiplied, and whether it is divided by."""
    if isinstance(node, tree.Product):
        for part, each in zip(node.parts, node.divides, strict=True):
            yield from _factors(part, divides=divides is not each)
    elif isinstance(node, tree.Cast) and node.to == "DOUBLE":
        yield from _factors(node.value, divides=divides)
    else:
        yield node, divides
