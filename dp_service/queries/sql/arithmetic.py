"""Arithmetic over numbers: + - * /, parentheses, numbers, and the sum of a number over the rows of the answer.

    COUNT(..) FILTER (WHERE ..) * 100.0 / COUNT(DISTINCT member), SUM(value) / COUNT(*)
    COUNT(*) FILTER (WHERE ..) - COUNT(*) FILTER (WHERE ..), (SUM(value) - SUM(other)) / NULLIF(SUM(other), 0)
    100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()

Each number in it is released once, however often it is written. NULLIF(number, 0) is the number, for where that may be
0 nothing is shown. AVG of CASE with ELSE 0 is a quotient, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dp_service.parameters.expressions import (
    Expression,
    Number,
    OverAll,
    Product,
    Quotient,
    Released,
    Sum,
    degree,
    leaves,
    negative,
)
from dp_service.parameters.numbers import Average, Computed, Form, Plain
from dp_service.queries.asked_numbers import AskedNumber, Part
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import fraction_of
from dp_service.queries.sql.numbers import aggregate_of, is_number, is_quantile
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.scope import Scope, alias_name

_LARGEST = Fraction(10**9)
# Whatever is released, so many of both at their largest are still floats: a result that is none has no answer.
_MOST_NUMBERS = 16
_MOST_FACTORS = 4


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
    if isinstance(node, tree.Product | tree.Sum | tree.OverAll):
        reader = _Reader(scope)
        expression = reader.read(node)
        if not any(leaves(expression)):
            refuse(node, "expected a number of the table, such as COUNT(*) or SUM(value), in arithmetic")
        if degree(expression) > _MOST_FACTORS:
            refuse(node, f"expected at most {_MOST_FACTORS} numbers of the table in one product or quotient")
        return Computed(tuple(reader.numbers), expression)
    if not isinstance(node, tree.Call) or not is_number(node) or is_quantile(node):
        refuse(node, "expected a number such as SUM(value), AVG(value) or COUNT(*) FILTER (WHERE condition)")
    return aggregate_of(node, scope)


@dataclass
class _Reader:
    """Reads one expression, and lists its numbers, each once."""

    scope: Scope
    numbers: list[Plain[Part] | Average[Part]] = field(default_factory=list)
    stated: int = 0

    def read(self, node: tree.Expression) -> Expression:
        match node:
            case tree.Sum(parts=parts, adds=adds):
                terms = zip(map(self.read, parts), adds, strict=True)
                return Sum(tuple(term if is_added else negative(term) for term, is_added in terms))
            case tree.Product():
                return self._product(node)
            case tree.OverAll(number=number):
                return OverAll(self._place(number))
            case tree.Number():
                return Number(self._number(node))
        return Released(self._place(node))

    def _product(self, node: tree.Product) -> Expression:
        factors: list[Expression] = []
        divisors: list[Expression] = []
        for part, divides in zip(node.parts, node.divides, strict=True):
            found = self.read(part)
            if divides and found == Number(Fraction(0)):
                refuse(part, "a division by 0 is not accepted")
            (divisors if divides else factors).append(found)
        above = _factors(factors)
        return Quotient(above, _factors(divisors)) if divisors else above

    def _number(self, node: tree.Number) -> Fraction:
        self.stated += 1
        number = fraction_of(node)
        if self.stated > _MOST_NUMBERS or (number and not 1 / _LARGEST <= abs(number) <= _LARGEST):
            refuse(node, f"expected at most {_MOST_NUMBERS} numbers from 10^-9 to 10^9 in arithmetic")
        return number

    def _place(self, node: tree.Expression) -> int:
        if not isinstance(node, tree.Call) or not is_number(node) or is_quantile(node):
            refuse(node, "expected counts, SUM, AVG and numbers in arithmetic")
        found = aggregate_of(node, self.scope)
        if not isinstance(found, Plain | Average):
            refuse(node, f"{node.name} in arithmetic is not accepted")
        if found not in self.numbers:
            self.numbers.append(found)
        return self.numbers.index(found)


def _factors(factors: list[Expression]) -> Expression:
    return factors[0] if len(factors) == 1 else Product(tuple(factors))
