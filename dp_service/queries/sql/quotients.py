"""Numbers of several others: quotients, sums and differences.

    COUNT(..) FILTER (WHERE ..) * 100.0 / COUNT(DISTINCT member), SUM(value) / COUNT(*)
    SUM(value) / SUM(other), COUNT(*) FILTER (WHERE ..) / COUNT(*) FILTER (WHERE ..)
    COUNT(*) FILTER (WHERE ..) - COUNT(*) FILTER (WHERE ..), SUM(value) + SUM(other)

Numbers by which a quotient is multiplied are factors of what is shown; NULLIF(number, 0) is the number, for where that
may be 0 nothing is shown. AVG of CASE with ELSE 0 is such a quotient, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dp_service.parameters.numbers import Form, Plain, Quotient, Total
from dp_service.queries.asked_numbers import AskedNumber, Part
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import fraction_of
from dp_service.queries.sql.numbers import aggregate_of, is_number, is_quantile
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.scope import Scope, alias_name

_OF_TWO = (
    "a quotient is of two numbers, such as SUM(value) / COUNT(DISTINCT member) or 100.0 * COUNT(*) FILTER (WHERE "
    "condition) / COUNT(*): ask for other numbers, and compute from what comes back"
)
_OF_NUMBERS = (
    "sums and differences are of SUM and counts as they are, such as COUNT(*) FILTER (WHERE condition) - COUNT(*) "
    "FILTER (WHERE condition): ask for other numbers, and compute from what comes back"
)
_OF_ALL = "a sum over all rows of the answer is not accepted: ask for the total without GROUP BY, and divide by that"
_IN_REACH = Fraction(1, 10**9)


def number_selected(item: tree.Item, scope: Scope) -> AskedNumber:
    """Return a number beside the count, with its alias.

    Raises:
        QuestionError: It is something else.
    """
    return AskedNumber(number_of(item.value, scope), None if item.alias is None else alias_name(item.alias))


def number_of(node: tree.Expression, scope: Scope) -> Form[Part]:
    """Return what a number is of.

    Raises:
        QuestionError: It is no number beside the count.
    """
    if isinstance(node, tree.Product):
        return _quotient_of(node, scope)
    if isinstance(node, tree.Sum):
        terms = tuple(_terms(node, adds=True))
        signs = tuple(1 if adds else -1 for adds, _ in terms)
        return Total(signs, tuple(_part_of(each, scope, _OF_NUMBERS) for _, each in terms))
    if isinstance(node, tree.OverAll):
        refuse(node, _OF_ALL)
    if not isinstance(node, tree.Call) or not is_number(node) or is_quantile(node):
        refuse(node, "expected a number such as SUM(value), AVG(value) or COUNT(*) FILTER (WHERE condition)")
    return aggregate_of(node, scope)


def _quotient_of(product: tree.Product, scope: Scope) -> Quotient[Part]:
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
    if len(above) != 1 or len(below) != 1:
        refuse(product, _OF_TWO)
    if factor <= 0:
        refuse(product, "a quotient with a negative factor is not accepted")
    if not _IN_REACH <= factor <= 1 / _IN_REACH:
        refuse(product, "a quotient times a factor beyond 10^-9 to 10^9 is not accepted")
    (divided,), (divisor,) = above, below
    return Quotient(_part_of(divided, scope, _OF_TWO), _part_of(divisor, scope, _OF_TWO), factor)


def _part_of(node: tree.Expression, scope: Scope, expected: str) -> Part:
    if isinstance(node, tree.OverAll):
        refuse(node, _OF_ALL)
    if not isinstance(node, tree.Call):
        refuse(node, expected)
    found = number_of(node, scope)
    if not isinstance(found, Plain):
        refuse(node, "an average in a number of several is not accepted: ask for both, and compute")
    return found.added


def _terms(node: tree.Expression, *, adds: bool) -> Iterator[tuple[bool, tree.Expression]]:
    """Yield whether a term is added, and the term."""
    if isinstance(node, tree.Sum):
        for part, each in zip(node.parts, node.adds, strict=True):
            yield from _terms(part, adds=adds is each)
    else:
        yield adds, node


def _factors(node: tree.Expression, *, divides: bool) -> Iterator[tuple[tree.Expression, bool]]:
    """Yield what is multiplied, and whether it is divided by."""
    if isinstance(node, tree.Product):
        for part, each in zip(node.parts, node.divides, strict=True):
            yield from _factors(part, divides=divides is not each)
    else:
        yield node, divides
