"""Conditions of a WHERE clause into filters."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import NoReturn

from sqlglot import exp

from dp_service.queries.columns import Column
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import VALUES_OF, Bound, Filter, In, NotIn, Range, Value, type_of
from dp_service.queries.sql_nodes import Scope, only, refuse_node, strip_parentheses, whole_number
from dp_service.queries.sql_tokens import refuse
from dp_service.queries.times import instant_of
from dp_service.terms import ColumnType

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    rf"{_DAY.pattern}"
    r"(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
# What the text of a typed literal has to be.
_TYPED = {exp.DataType.Type.DATE: _DAY, exp.DataType.Type.TIMESTAMP: _TIMESTAMP}


def parse_conditions(root: exp.Expr, scope: Scope) -> Iterator[Filter]:
    """Yield one filter for each condition of a conjunction.

    Raises:
        QuestionError: A condition is not accepted.
        RefusedByPolicyError: The policy does not list a column.
    """
    # A stack rather than recursion: a conjunction of a thousand conditions is a tree a thousand deep.
    waiting = [root]
    while waiting:
        node = strip_parentheses(waiting.pop())
        if isinstance(node, exp.And):
            only(node, "this", "expression")
            waiting += [node.expression, node.this]
        else:
            yield _condition(node, scope)


def _condition(node: exp.Expr, scope: Scope) -> Filter:
    match node:
        case exp.In() | exp.Or():
            return _in(node, scope)
        case exp.Not():
            return _not_in(node, scope)
        case exp.Between():
            return _between(node, scope)
        case _:
            return _comparison(node, scope)


def _in(root: exp.Expr, scope: Scope) -> In:
    """Return the list that conditions by = and IN on one column, joined by OR, mean."""
    waiting: list[exp.Expr] = [root]
    names: set[str] = set()
    values: list[Value] = []
    while waiting:
        node = strip_parentheses(waiting.pop())
        match node:
            case exp.Or():
                only(node, "this", "expression")
                waiting += [node.expression, node.this]
            case exp.In():
                name, listed = _set(node, scope)
                names.add(name)
                values += listed
            case exp.EQ():
                equal = _comparison(node, scope)
                names.add(equal.column)
                values += equal.values if isinstance(equal, In) else ()
            case _:
                refuse("OR other than between = and IN on one column")
    if len(names) != 1:
        refuse(f"OR between different columns ({', '.join(sorted(names))})")
    return In(names.pop(), tuple(values))


def _not_in(node: exp.Not, scope: Scope) -> NotIn:
    only(node, "this")
    inner = strip_parentheses(node.this)
    if isinstance(inner, exp.Is | exp.Column):
        _refuse_without_comparison(inner)
    if not isinstance(inner, exp.In):
        refuse_node(node)
    return NotIn(*_set(inner, scope))


def _set(node: exp.In, scope: Scope) -> tuple[str, tuple[Value, ...]]:
    only(node, "this", "expressions")
    column = _column(node.this, scope)
    return column.name, tuple(_literal(value, column) for value in node.expressions)


def _between(node: exp.Between, scope: Scope) -> Range:
    only(node, "this", "low", "high")
    column = _column(node.this, scope)
    low, high = (_literal(node.args[end], column) for end in ("low", "high"))
    return Range(column.name, Bound(low), Bound(high))


def _comparison(node: exp.Expr, scope: Scope) -> Filter:
    if not isinstance(node, _COMPARISONS):
        _refuse_without_comparison(node)
    only(node, "this", "expression")
    column = _column(node.this, scope)
    value = _literal(node.expression, column)
    match node:
        case exp.EQ():
            return In(column.name, (value,))
        case exp.NEQ():
            return NotIn(column.name, (value,))
        case exp.LT() | exp.LTE():
            return Range(column.name, None, Bound(value, exclusive=isinstance(node, exp.LT)))
        case _:
            return Range(column.name, Bound(value, exclusive=isinstance(node, exp.GT)), None)


def _refuse_without_comparison(node: exp.Expr) -> NoReturn:
    """Refuse a condition that compares nothing with a value, and say how that is written instead."""
    if isinstance(node, exp.Column):
        raise QuestionError("sql", "a column alone is no condition: compare it, as in = TRUE or = FALSE")
    if isinstance(node, exp.Is):
        raise QuestionError("sql", _WITH_IS)
    refuse_node(node)


_WITH_IS = (
    "IS is not accepted: a truth value is compared by = TRUE or = FALSE, and the policy says whether rows without a "
    "value count"
)


def _column(node: exp.Expr, scope: Scope) -> Column:
    """Return the column on the left of a condition, the only side that may have one."""
    stripped = strip_parentheses(node)
    if not isinstance(stripped, exp.Column):
        refuse("a condition that does not begin with a column")
    return scope.table.column(scope.column_name(stripped))


def _literal(node: exp.Expr, column: Column) -> Value:
    """Return a literal as a value of the column's type."""
    if column.timestamps is not None:
        return _timestamp(strip_parentheses(node), column.name, column.timestamps.zone)
    value = _value(strip_parentheses(node), column.type)
    if type_of(value) is not column.type:
        raise QuestionError("sql", f"{column.name}: expected {VALUES_OF[column.type]}")
    return value


def _value(node: exp.Expr, expected: ColumnType) -> Value:
    match node:
        case exp.Literal(is_string=True):
            only(node, "this", "is_string")
            return _day(node.this) if expected is ColumnType.DATE else str(node.this)
        case exp.Boolean():
            only(node, "this")
            return bool(node.this)
        case exp.Cast(to=exp.DataType(this=exp.DataType.Type.DATE), this=exp.Literal(is_string=True)):
            # This is how sqlglot reads DATE '2024-01-31'; CAST(..) itself was refused as a function.
            only(node, "this", "to")
            return _day(node.this.this)
        case exp.Neg():
            only(node, "this")
            return -_integer(node.this)
        case _:
            return _integer(node)


def _integer(node: exp.Expr) -> int:
    if isinstance(node, exp.Column):
        # The name may be a literal in the wrong quotes, which no message repeats.
        raise QuestionError(
            "sql",
            "a name where a value is expected: texts are in single quotes, and columns are not compared",
        )
    number = whole_number(node)
    if number is None:
        refuse_node(node)
    return number


def _timestamp(node: exp.Expr, column: str, zone: str) -> datetime.datetime:
    """Return a literal as a timestamp in UTC: a day stands for its beginning, and what has no offset is in `zone`."""
    text = _timestamp_text(node)
    if text is None:
        raise QuestionError("sql", f"{column}: expected {VALUES_OF[ColumnType.TIMESTAMP]}")
    try:
        found = _instant(text, zone)
    except (ValueError, OverflowError):
        found = None
    # Raised outside of the handler, so that the foreign error, which repeats the literal, is not its context.
    if found is None:
        raise QuestionError("sql", f"{column}: expected {_KNOWN_TIMES.format(zone=zone)}")
    return found


_KNOWN_TIMES = (
    "a time that the clocks of {zone} show once, between the years 1 and 9999; for another one write its offset, as in "
    "TIMESTAMP 'YYYY-MM-DD hh:mm:ss+00:00'"
)


def _timestamp_text(node: exp.Expr) -> str | None:
    """Return the text of a literal of a day or a timestamp, with or without the word; None: it is none."""
    form = _TIMESTAMP
    if isinstance(node, exp.Cast) and isinstance(node.to, exp.DataType) and node.to.this in _TYPED:
        # This is how sqlglot reads DATE '..' and TIMESTAMP '..'; CAST(..) itself was refused as a function.
        only(node, "this", "to")
        form, node = _TYPED[node.to.this], node.this
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    only(node, "this", "is_string")
    return str(node.this) if form.fullmatch(node.this) else None


def _instant(text: str, zone: str) -> datetime.datetime | None:
    written = datetime.datetime.fromisoformat(text)
    return instant_of(written, zone) if written.tzinfo is None else written.astimezone(datetime.UTC)


def _day(text: str) -> datetime.date:
    try:
        if _DAY.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    # Raised outside of the handler, so that the foreign error, which repeats the literal, is not its context.
    raise QuestionError("sql", "expected days as 'YYYY-MM-DD'")
