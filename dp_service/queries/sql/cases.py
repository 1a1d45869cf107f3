"""CASE in the place of an argument, which is another way to write FILTER."""

from __future__ import annotations

from dataclasses import replace

from dp_service.queries.sql import tree
from dp_service.queries.sql.places import refuse


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
        total = replace(call, name="SUM", arguments=(value,), where=condition)
        rows = tree.Call(call.first, call.last, "COUNT", (tree.Star(call.first, call.first),))
        return tree.Product(call.first, call.last, (total, rows), (False, True))
    if not is_nothing and not (is_zero and call.name == "SUM"):
        rest = (
            "ELSE 0" if call.name == "SUM" else f"nothing behind ELSE, which {call.name} takes into account"
        )
        refuse(case.otherwise or case, f"expected {rest} in a number of the rows that meet a condition")
    return replace(call, arguments=(value,), where=condition)
