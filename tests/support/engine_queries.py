"""The query that an engine gets for a question, as the connector makes it of dp_service's translation."""

from __future__ import annotations

from dp_service.queries.read_columns import ReadColumn
from dp_service.queries.render import render, required_feature
from dp_service.queries.resolution import Resolution
from dp_service.server.messages import read_column
from pinot_connector.engines import base
from pinot_connector.results import COLUMN_TYPES, TIME_UNITS


def engine_query(resolution: Resolution, dialect: str) -> base.EngineQuery:
    """Return the query for the engine of a dialect, with all that it has to check."""
    feature = required_feature(resolution, dialect)
    return base.EngineQuery(
        table=resolution.query.table,
        sql=render(resolution, dialect),
        columns=tuple(
            base.ExpectedColumn(name, base.ColumnType[kind.name]) for name, kind in resolution.columns
        ),
        row_limit=resolution.row_limit,
        requires=frozenset() if feature is None else frozenset({base.Feature[feature.name]}),
        reads=tuple(map(_read, resolution.reads)),
    )


def _read(column: ReadColumn) -> base.ReadColumn:
    """Return what an engine checks, by way of the message that says it."""
    message = read_column(column)
    null_value = message.null_value
    named = null_value.WhichOneof("kind")
    value = (
        null_value.timestamp.ToMicroseconds()
        if named == "timestamp"
        else named and getattr(null_value, named)
    )
    return base.ReadColumn(
        message.name,
        COLUMN_TYPES[message.type] if message.type else None,
        value,
        (message.smallest, message.largest) if message.HasField("smallest") else None,
        TIME_UNITS[message.time_unit] if message.time_unit else None,
    )
