"""HAVING: conditions on numbers into what is shown of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dp_service.parameters.release import HavingCondition
from dp_service.queries.asked_numbers import Counted
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import TURNED, fraction_of
from dp_service.queries.sql.numbers import is_count, measure_of
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.scope import Scope
from dp_service.terms import Comparison

_OPPOSITE = {
    Comparison.EQUAL: Comparison.NOT_EQUAL,
    Comparison.NOT_EQUAL: Comparison.EQUAL,
    Comparison.LESS: Comparison.AT_LEAST,
    Comparison.AT_MOST: Comparison.GREATER,
    Comparison.GREATER: Comparison.AT_MOST,
    Comparison.AT_LEAST: Comparison.LESS,
}
_HAVING = (
    "expected HAVING with the count, or a sum or an average that is selected, compared with numbers by =, <>, <, <=, "
    ">, >= or BETWEEN, joined by AND; conditions on columns are in WHERE"
)


def having_of(
    root: tree.Expression, place_of: Callable[[tree.Expression], int | None]
) -> Iterator[HavingCondition]:
    """Yield the conditions of a HAVING clause.

    Args:
        root: The clause's condition.
        place_of: The place of the sum or average that a node names, None for the count.

    Raises:
        QuestionError: A condition is not accepted.
    """
    for part in tree.conjunction(root):
        node = _without_not(part)
        match node:
            case tree.Not(condition=tree.IsNull(value=number)):
                # What is released has a value.
                place_of(number)
            case tree.Compared(right=tree.Number() as number):
                yield HavingCondition(place_of(node.left), node.comparison, fraction_of(number))
            case tree.Compared(left=tree.Number() as number):
                turned = TURNED.get(node.comparison, node.comparison)
                yield HavingCondition(place_of(node.right), turned, fraction_of(number))
            case tree.Between(low=tree.Number() as low, high=tree.Number() as high):
                place = place_of(node.value)
                yield HavingCondition(place, Comparison.AT_LEAST, fraction_of(low))
                yield HavingCondition(place, Comparison.AT_MOST, fraction_of(high))
            case _:
                refuse(node, _HAVING)


def measure_in(node: tree.Expression, scope: Scope) -> Counted | None:
    """Return what the first count in a condition counts; None: it has none."""
    if isinstance(node, tree.Call):
        return measure_of(node, scope) if is_count(node) else None
    return next((found for part in tree.parts_of(node) if (found := measure_in(part, scope))), None)


def says_that_rows_are(root: tree.Expression, scope: Scope) -> bool:
    """Return whether a condition is COUNT(..) > 0, which tools write of a total that is shown if there are rows."""
    match root:
        case tree.Compared(
            comparison=sign, left=left, right=tree.Number(text="0" | "1" as text, negative=False)
        ):
            least = {"0": Comparison.GREATER, "1": Comparison.AT_LEAST}[text]
            if isinstance(left, tree.Call) and is_count(left) and sign is least:
                measure_of(left, scope)
                return True
    return False


def _without_not(node: tree.Expression) -> tree.Expression:
    """Return a comparison with its opposite in the place of NOT before it; there is no third truth of a number."""
    if isinstance(node, tree.Not) and isinstance(node.condition, tree.Compared):
        return replace(node.condition, comparison=_OPPOSITE[node.condition.comparison])
    return node
