"""Turns the rows of an engine's answer into columns, and checks their names and types."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pinot_connector.days import days_of
from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, ValueType
from pinot_connector.errors import DataUnreadable, EngineRefused, IncompleteAnswer

_TYPE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ ]{0,40}")


def require_columns(
    query: EngineQuery, described: Sequence[tuple[str, str]], accepted: dict[ColumnType, frozenset[str]]
) -> None:
    """Checks names and types before the first row is read: what is refused here does not depend on any row.

    Args:
        query: what was asked.
        described: name and type of each column of the answer, in the engine's words.
        accepted: the engine's types for each type of the policy. Counts are integers.

    Raises:
        IncompleteAnswer: other columns than asked.
        EngineRefused: a column does not have the policy's type.
    """
    expected = [(column.name, accepted[column.type]) for column in query.columns]
    expected += [(name, accepted[ColumnType.INT64]) for name in query.numbers]
    if [name for name, _ in described] != [name for name, _ in expected]:
        raise IncompleteAnswer("the engine answered with other columns than asked")
    if any(type_ not in types for (_, type_), (_, types) in zip(described, expected, strict=True)):
        raise EngineRefused("a column of the table does not have the type that the policy gives it")


def require_readable(
    query: EngineQuery, held: Iterable[tuple[str, str]], accepted: Mapping[ColumnType, frozenset[str]]
) -> None:
    """Checks the columns of the table before the query: in a filter, another type silently means something else.

    Args:
        query: what is to be asked.
        held: name and type of each column of the table, in the engine's words.
        accepted: the engine's types for each type of the policy.

    Raises:
        DataUnreadable: the table has no such column, or it does not have the policy's type. The message names the
            engine's type without what stands in its brackets, which may be data, as in a DuckDB ENUM.
    """
    # Names do not differ by case to these engines, nor to a policy.
    types = {name.casefold(): type_ for name, type_ in held}
    for column in query.reads:
        if column.name.casefold() not in types:
            raise DataUnreadable(
                f"the table {query.table} has no column {column.name}, which the policy lists"
            )
        found, expected = types[column.name.casefold()], column.held_as
        if expected is not None and found not in accepted[expected]:
            raise DataUnreadable(
                f"the column {column.name} of the table {query.table} holds {plain_type(found)}, and not the policy's "
                f"type, {column.declared}"
            )


def require_summable(
    query: EngineQuery, held: Iterable[tuple[str, str]], accepted: Mapping[ValueType, frozenset[str]]
) -> None:
    """Checks the columns that a query sums, or whose quantiles it asks for, as `require_readable` checks the others.

    Args:
        query: what is to be asked.
        held: name and type of each column of the table, in the engine's words.
        accepted: the engine's types for each type of the policy, without what stands in their brackets.

    Raises:
        DataUnreadable: the table has no such column, or it does not have the policy's type.
    """
    types = {name.casefold(): type_ for name, type_ in held}
    for value in query.read_values:
        if value.name.casefold() not in types:
            raise DataUnreadable(
                f"the table {query.table} has no column {value.name}, which the policy lists"
            )
        found = plain_type(types[value.name.casefold()])
        if found not in accepted[value.type]:
            raise DataUnreadable(
                f"the column {value.name} of the table {query.table} holds {found}, and not the policy's type, "
                f"{value.type.value}"
            )


def plain_type(type_: str) -> str:
    """Returns the name of an engine's type without what stands in brackets, which can be values of the data."""
    found = _TYPE_NAME.match(type_)
    return found.group().strip() if found is not None else "another one"


def answer_of(query: EngineQuery, rows: Sequence[tuple[Any, ...]], data_version: str) -> EngineAnswer:
    """Returns rows as an answer; the columns were checked before.

    Raises:
        IncompleteAnswer: too many rows, NULL, or a day outside the years 1 to 9999.
    """
    if len(rows) > query.row_limit:
        raise IncompleteAnswer("the engine answered with more rows than asked")
    columns: list[list[Any]] = (
        [list(column) for column in zip(*rows, strict=True)]
        if rows
        else [[] for _ in (*query.columns, *query.numbers)]
    )
    if any(None in column for column in columns):
        raise IncompleteAnswer("the engine answered with NULL")
    width = len(query.columns)
    elements = columns[:width]
    for position, column in enumerate(query.columns):
        if column.type is ColumnType.DATE:
            elements[position] = [_days(value) for value in elements[position]]
    return query.answer(tuple(elements), columns[width:], data_version)


def _days(value: object) -> int:
    # DuckDB gives a text where Python has no such day.
    if not isinstance(value, datetime.date):
        raise IncompleteAnswer("the engine answered with a day outside the years 1 to 9999")
    return days_of(value)
