"""What a translated question asks of an engine: the query in its dialect, and the columns to expect."""

from __future__ import annotations

from dataclasses import replace

from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector.engines.base import (
    CELL_COLUMN,
    BoundedCopy,
    CellColumn,
    ClosedStream,
    ColumnType,
    Element,
    EngineQuery,
    ExpectedColumn,
    Feature,
    ReadColumn,
    ReadValue,
)
from pinot_connector.errors import EngineRefused, IntegrityError
from pinot_connector.views import meanings, view

_FEATURES = meanings(Feature, dp_pb2.EngineFeature.DESCRIPTOR)
_CELLS = CellColumn(CELL_COLUMN, ColumnType.INT64)


def engine_query(translation: dp_pb2.TranslateQueryResponse, dialect: str) -> EngineQuery:
    """Returns the query of a translation for one dialect.

    Raises:
        EngineRefused: there is none for this dialect, or it requires what this version does not know.
        IntegrityError: dp_service does not say which columns the query names.
    """
    found = [query for query in translation.engine_queries if query.dialect == dialect]
    if len(found) != 1:
        raise EngineRefused("dp_service has no query of this question for this engine")
    columns = expected_columns(translation)
    if translation.HasField("quantiles"):
        columns = (*columns, _CELLS)
    features = set(found[0].requires)
    counts_firsts = dp_pb2.ENGINE_FEATURE_FIRST_COUNTS in features
    features.discard(dp_pb2.ENGINE_FEATURE_FIRST_COUNTS)
    reads = tuple(map(read_column_of, translation.reads))
    if not reads:
        raise IntegrityError("dp_service does not say which columns a query names")
    copy = view(BoundedCopy, translation.bounded_copy) if translation.HasField("bounded_copy") else None
    return EngineQuery(
        table=translation.table,
        sql=found[0].sql,
        columns=columns,
        row_limit=translation.row_limit,
        requires=frozenset(map(_required, features)),
        reads=reads,
        bounded_copy=copy,
        first_counts=counts_firsts,
        sums=tuple(view(ReadValue, each) for each in translation.sums),
        quantiles=view(ReadValue, translation.quantiles) if translation.HasField("quantiles") else None,
        bins=tuple(view(ReadValue, each) for each in translation.bins),
        own_counts=translation.own_counts,
        stream=view(ClosedStream, translation.stream) if translation.HasField("stream") else None,
    )


def second_query(first: EngineQuery, look: dp_pb2.NextLook, dialect: str) -> EngineQuery:
    """Returns the query of the second of two looks; it names the same columns of the same table as the first.

    For quantiles it has the column of cells, too.

    Raises:
        IntegrityError: there is none for this dialect.
    """
    found = [query for query in look.engine_queries if query.dialect == dialect]
    if len(found) != 1 or look.row_limit < 1:
        raise IntegrityError("dp_service sent a second look without a query")
    columns = first.columns if first.quantiles is None else (*first.columns, _CELLS)
    return replace(first, sql=found[0].sql, columns=columns, row_limit=look.row_limit)


def expected_columns(translation: dp_pb2.TranslateQueryResponse) -> tuple[ExpectedColumn, ...]:
    """Returns the columns of a translation's answer, with the aliases that the question gives them."""
    return tuple(view(ExpectedColumn, column) for column in translation.columns)


def read_column_of(message: dp_pb2.ReadColumn) -> ReadColumn:
    """Returns a column that a query names, and what the query assumes about it."""
    numbers = (message.smallest, message.largest) if message.HasField("smallest") else None
    return view(ReadColumn, message, null_value=_null_value(message.null_value), numbers=numbers)


def _null_value(message: question_pb2.Value) -> Element | None:
    named = message.WhichOneof("kind")
    if named == "timestamp":
        return message.timestamp.ToMicroseconds()
    return None if named is None else getattr(message, named)


def _required(feature: dp_pb2.EngineFeature) -> Feature:
    if feature not in _FEATURES:
        raise EngineRefused("the query requires something of the engine that this version does not know")
    return _FEATURES[feature]
