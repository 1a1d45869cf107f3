"""What questions assume about the columns of a table, by its policy, as an engine checks it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from dp_service.queries.columns import Column
from dp_service.queries.filters import Value
from dp_service.queries.read_columns import MISSING_MEMBER
from dp_service.queries.tables import Table
from pinot_connector.days import days_of
from pinot_connector.engines.base import ColumnType, Element, ReadColumn, TimeUnit

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def reads_of(table: Table) -> Iterator[ReadColumn]:
    """Yield what questions assume about the columns that a policy lists, and about the member column."""
    if table.member_column() is None:
        yield ReadColumn(table.member, None, MISSING_MEMBER)
    for column in table.columns:
        if column.lookup is not None:
            # The table has its key.
            continue
        yield ReadColumn(
            column.name, ColumnType(column.type), _stored(column.null_value), time_unit=_time_unit(column)
        )


def _time_unit(column: Column) -> TimeUnit | None:
    stored = None if column.timestamps is None else column.timestamps.stored
    return None if stored is None else TimeUnit[stored.name]


def _stored(value: Value | None) -> Element | None:
    """Return a value as an engine that stores no NULL holds it: days and microseconds since 1970."""
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // datetime.timedelta(microseconds=1)
    return days_of(value) if isinstance(value, datetime.date) else value
