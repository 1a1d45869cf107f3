"""Literals of a statement as values of a column's type."""

from __future__ import annotations

import datetime
import re

from dp_service.queries.columns import Column
from dp_service.queries.filters import VALUES_OF, Value, fault_of
from dp_service.queries.sql import tree
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.scope import integer, refused_node
from dp_service.queries.times import instant_of
from dp_service.terms import ColumnType

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Tools write a day so, of which a column of days has nothing but the day. An instant has to be midnight in UTC: in
# another zone it may be another day.
_MIDNIGHT = rf"({_DAY.pattern})" + r"(?:[ T]00:00(?::00(?:\.0{1,6})?)?)?(?: ?(?:Z|[+-]%s))?"
_MIDNIGHTS = {
    "": re.compile(_MIDNIGHT % r"[0-9]{2}(?::?[0-9]{2})?"),
    "TIMESTAMP": re.compile(_MIDNIGHT % r"00(?::?00)?"),
}
_TIMESTAMP = re.compile(
    rf"{_DAY.pattern}"
    r"(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_NO_TIME = "expected a day of the calendar and a time up to 23:59:59, as in 'YYYY-MM-DD hh:mm:ss': there is none such"
_KNOWN_TIMES = (
    "a time that the clocks of {zone} show once, between the years 1 and 9999; for another one write its offset, as in "
    "TIMESTAMP 'YYYY-MM-DD hh:mm:ss+00:00'"
)


def value_of(node: tree.Expression, column: Column) -> Value:
    """Return a literal as a value of the column's type.

    Raises:
        QuestionError: It is none, or of another type.
    """
    if column.timestamps is not None:
        return _timestamp(node, column.name, column.timestamps.zone)
    found = _value(node, column.type)
    if found is None:
        refuse(node, f"{column.name}: expected {VALUES_OF[column.type]}")
    if fault := fault_of(found):
        refuse(node, fault)
    return found


def day_of(node: tree.Expression) -> datetime.date:
    """Return a literal as a day: with or without a midnight behind it.

    Raises:
        QuestionError: It is none.
    """
    found = _value(node, ColumnType.DATE)
    if not isinstance(found, datetime.date):
        refuse(node, f"expected {VALUES_OF[ColumnType.DATE]}")
    return found


def _value(node: tree.Expression, expected: ColumnType) -> Value | None:
    """Return a literal as a value of a type; None: it is of another one."""
    match node:
        case tree.Text(value=text, kind="") if expected is ColumnType.STRING:
            return text
        case tree.Text(value=text, kind="" | "DATE" | "TIMESTAMP" as kind) if expected is ColumnType.DATE:
            midnight = None if kind == "DATE" else _MIDNIGHTS[kind].fullmatch(text)
            return _day(node, midnight[1] if midnight else text)
        case tree.Text(kind="TIMESTAMP"):
            raise refused_node(node)
        case tree.Truth(value=truth):
            return truth if expected is ColumnType.BOOL else None
        case tree.Number():
            number = integer(node)
            return number if expected is ColumnType.INT64 else None
        case tree.Text():
            return None
    if isinstance(node, tree.Name):
        # The name may be a literal in the wrong quotes, which no message repeats.
        refuse(
            node, "a name where a value is expected: texts are in single quotes, and columns are not compared"
        )
    raise refused_node(node)


def _day(node: tree.Expression, text: str) -> datetime.date:
    found = None
    if _DAY.fullmatch(text):
        try:
            found = datetime.date.fromisoformat(text)
        except ValueError:
            found = None
    # Refused outside of the handler, so that the foreign error, which repeats the literal, is not its context.
    if found is None:
        refuse(node, "expected days as 'YYYY-MM-DD'")
    return found


def _timestamp(node: tree.Expression, column: str, zone: str) -> datetime.datetime:
    """Return a literal as a timestamp in UTC: a day stands for its beginning, and what has no offset is in `zone`."""
    if not isinstance(node, tree.Text):
        refuse(node, f"{column}: expected {VALUES_OF[ColumnType.TIMESTAMP]}")
    if not (_DAY if node.kind == "DATE" else _TIMESTAMP).fullmatch(node.value):
        refuse(node, f"{column}: expected {VALUES_OF[ColumnType.TIMESTAMP]}")
    # Refused outside of the handlers, so that the foreign error, which repeats the literal, is not its context.
    written = _written(node.value)
    if written is None:
        refuse(node, f"{column}: {_NO_TIME}")
    found = _instant(written, zone)
    if found is None:
        refuse(node, f"{column}: expected {_KNOWN_TIMES.format(zone=zone)}")
    return found


def _written(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _instant(written: datetime.datetime, zone: str) -> datetime.datetime | None:
    try:
        return instant_of(written, zone) if written.tzinfo is None else written.astimezone(datetime.UTC)
    except OverflowError:
        return None
