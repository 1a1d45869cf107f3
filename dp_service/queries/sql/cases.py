"""CASE that answers with literals, and CASE in the place of an argument, which is another way to write FILTER."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dp_service.queries.filters import Filter, Value, fault_of
from dp_service.queries.functions.cases import Cases
from dp_service.queries.sql import tree
from dp_service.queries.sql.places import placed, refuse
from dp_service.queries.sql.scope import integer


def without_case(call: tree.Call) -> tree.Call | tree.Product:
    """Return a function of CASE WHEN condition THEN value END as one of the value, of the rows that meet the condition.

    To a sum 0 is what no row is to it; everything else counts what stands behind ELSE. An average with 0 for the other
    rows is the sum divided by the number of all.
    """
    case = next((each for each in call.arguments if isinstance(each, tree.Case)), None)
    if case is None:
        return call
    if len(case.conditions) > 1:
        refuse(
            case.conditions[1],
            "a second WHEN is not accepted in a number: write a number for each, and add what comes back",
        )
    (condition,), (value,) = case.conditions, case.values
    if len(call.arguments) > 1 or call.where is not None:
        refuse(
            case,
            "CASE beside another argument, or beside FILTER, is not accepted: join the conditions by AND",
        )
    is_nothing = case.otherwise is None or isinstance(case.otherwise, tree.Null)
    is_zero = isinstance(case.otherwise, tree.Number) and not case.otherwise.text.strip("0.")
    if is_zero and call.name in ("AVG", "MEAN"):
        total = replace(call, name="SUM", arguments=(value,), where=condition, averaged=True)
        rows = tree.Call(call.first, call.last, "COUNT", (tree.Star(call.first, call.first),))
        return tree.Product(call.first, call.last, (total, rows), (False, True))
    if not is_nothing and not (is_zero and call.name == "SUM"):
        rest = (
            "ELSE 0" if call.name == "SUM" else f"nothing behind ELSE, which {call.name} takes into account"
        )
        refuse(case.otherwise or case, f"expected {rest} in a number of the rows that meet a condition")
    return replace(call, arguments=(value,), where=condition)


def cases_of(node: tree.Case, condition: Callable[[tree.Expression], Filter | bool]) -> Cases:
    """Return a CASE that answers with literals.

    Args:
        node: The CASE.
        condition: Reads the conditions behind WHEN.
    """
    branches: list[tuple[Filter, Value]] = []
    conditions, values, rest = node.conditions, node.values, node.otherwise
    # What follows ELSE may be the next question of the same kind, as IF writes it.
    while isinstance(rest, tree.Case):
        conditions, values, rest = conditions + rest.conditions, values + rest.values, rest.otherwise
    otherwise = None if rest is None else answer_of(rest)
    for when, then in zip(conditions, values, strict=True):
        found = condition(when)
        if isinstance(found, bool):
            refuse(when, "a condition in CASE that every row meets, or none, is not accepted: leave it out")
        value = answer_of(then)
        if value is None:
            refuse(
                then,
                "NULL behind THEN is not accepted: without ELSE, rows that meet no condition are left out",
            )
        branches.append((found, value))
    with placed(node):
        return Cases(tuple(branches), otherwise)


def answer_of(node: tree.Expression) -> Value | None:
    """Return the literal that a CASE answers with; None: NULL."""
    match node:
        case tree.Text(value=text, kind=""):
            found: Value | None = text
        case tree.Truth(value=truth):
            found = truth
        case tree.Number():
            found = integer(node)
        case tree.Null():
            return None
        case _:
            refuse(node, "expected a text in single quotes, an integer, TRUE or FALSE behind THEN and ELSE")
    if fault := fault_of(found):
        refuse(node, fault)
    return found
