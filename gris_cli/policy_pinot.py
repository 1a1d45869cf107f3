"""Whether the tables of a Pinot are what a policy says, by their schemas: for `gris policy check --pinot`.

A question that names another column than Pinot has is refused when it is asked; this says so before anybody asks.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from dp_service.queries.read_columns import MISSING_MEMBER
from dp_service.queries.structured import Value
from dp_service.queries.tables import Column, Policy, Table
from gris_cli.clients import PinotAccess
from gris_cli.table_schema import pinot_columns
from pinot_connector.days import days_of
from pinot_connector.engines.base import ColumnType, Element, ReadColumn, TimeUnit
from pinot_connector.engines.pinot.columns import require_readable
from pinot_connector.errors import EngineRefused

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def faults_of_schemas(policy: Policy, controller: str, access: PinotAccess) -> Iterator[str]:
    """Yield what the schemas of a policy's tables are otherwise than the policy says; no row is read.

    Raises:
        SchemaError: The controller cannot be reached, or lacks a table.
    """
    for table in policy.tables:
        held = pinot_columns(controller, table.name, access)
        for read in _reads(table):
            try:
                require_readable(held, [read])
            except EngineRefused as error:
                yield f"{table.name}: {error}"


def _reads(table: Table) -> Iterator[ReadColumn]:
    if table.member_column() is None:
        yield ReadColumn(table.member, None, MISSING_MEMBER)
    for column in table.columns:
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
