"""The query that an engine gets for a question, as the connector makes it of dp_service's translation."""

from __future__ import annotations

from gris_api.dp.v1 import dp_pb2

from dp_service.queries.read_columns import ReadColumn, ReadValue, quantiles_read, values_read
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.resolution import Resolution
from dp_service.server.messages import closed_stream, pairs_copy, read_column
from pinot_connector.engines import base
from pinot_connector.parameter_messages import COLUMN_TYPES, TIME_UNITS


def engine_query(resolution: Resolution, dialect: str) -> base.EngineQuery:
    """Return the query for the engine of a dialect, with all that it has to check."""
    features = required_features(resolution, dialect)
    copy = resolution.copy
    quantiles = next(map(_read_value, quantiles_read(resolution.query)), None)
    return base.EngineQuery(
        table=resolution.query.table,
        sql=render(resolution, dialect),
        columns=(
            *(base.ExpectedColumn(name, base.ColumnType[kind.name]) for name, kind in resolution.columns),
            *((base.CellColumn(base.CELL_COLUMN, base.ColumnType.INT64),) if resolution.counts_cells else ()),
        ),
        row_limit=resolution.row_limit,
        requires=frozenset(base.Feature[each.name] for each in features if each is not Feature.FIRST_COUNTS),
        reads=tuple(map(_read, resolution.reads)),
        bounded_copy=None
        if copy is None
        else base.BoundedCopy(copy.table, copy.member, copy.elements, copy.delta_0, copy.period),
        pairs_copy=_pairs(pairs_copy(resolution.pairs)),
        first_counts=Feature.FIRST_COUNTS in features,
        sums=tuple(map(_read_value, values_read(resolution.query))),
        quantiles=quantiles,
        own_counts=len(resolution.query.own_counts),
        stream=_stream(closed_stream(resolution.stream)),
    )


def _stream(message: dp_pb2.ClosedStream | None) -> base.ClosedStream | None:
    if message is None:
        return None
    return base.ClosedStream(
        message.time_column,
        message.start,
        message.end,
        base.CompleteBy[dp_pb2.CompleteBy.Name(message.complete_by).removeprefix("COMPLETE_BY_")],
        message.replaced_until_closed,
        message.offline_days_are_whole,
        message.member_column,
        message.replaced_by_same_member,
    )


def _pairs(message: dp_pb2.PairsCopy | None) -> base.PairsCopy | None:
    if message is None:
        return None
    stated = zip(message.periods, message.builds, message.rows, message.check_sums, strict=True)
    start = message.start if message.HasField("start") else None
    return base.PairsCopy(start, message.end, tuple(base.PairsPeriod(*each) for each in stated))


def _read_value(value: ReadValue) -> base.ReadValue:
    return base.ReadValue(value.name, base.ValueType(value.type.value), value.null_value)


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
