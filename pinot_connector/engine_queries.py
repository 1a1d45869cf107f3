"""What a translated question asks of an engine: the query in its dialect, and the columns to expect."""

from __future__ import annotations

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector.engines.base import Element, EngineQuery, ExpectedColumn, Feature, ReadColumn
from pinot_connector.errors import EngineRefused, IntegrityError
from pinot_connector.results import COLUMN_TYPES, TIME_UNITS, known

_FEATURES = {dp_pb2.ENGINE_FEATURE_PINOT_MULTISTAGE: Feature.PINOT_MULTISTAGE}


def engine_query(translation: dp_pb2.TranslateQueryResponse, dialect: str) -> EngineQuery:
    """Returns the query of a translation for one dialect.

    Raises:
        EngineRefused: there is none for this dialect, or it requires what this version does not know.
        IntegrityError: dp_service does not say which columns the query names.
    """
    found = [query for query in translation.engine_queries if query.dialect == dialect]
    if len(found) != 1:
        raise EngineRefused("this engine cannot answer the question")
    columns = expected_columns(translation)
    requires = frozenset(_required(feature) for feature in found[0].requires)
    reads = tuple(_read(column) for column in translation.reads)
    if not reads:
        raise IntegrityError(
            "dp_service does not say which columns a query names; it is older than this connector"
        )
    return EngineQuery(translation.table, found[0].sql, columns, translation.row_limit, requires, reads)


def expected_columns(translation: dp_pb2.TranslateQueryResponse) -> tuple[ExpectedColumn, ...]:
    """Returns the columns of a translation's answer, with the aliases that the question gives them."""
    return tuple(_expected(column) for column in translation.columns)


def _read(column: dp_pb2.ReadColumn) -> ReadColumn:
    kind = None
    if column.type != histogram_pb2.COLUMN_TYPE_UNSPECIFIED:
        kind = known(COLUMN_TYPES, column.type)
    numbers = (column.smallest, column.largest) if column.HasField("smallest") else None
    unit = known(TIME_UNITS, column.time_unit) if column.time_unit else None
    return ReadColumn(column.name, kind, _null_value(column.null_value), numbers, unit)


def _null_value(message: question_pb2.Value) -> Element | None:
    named = message.WhichOneof("kind")
    if named == "timestamp":
        return message.timestamp.ToMicroseconds()
    return None if named is None else getattr(message, named)


def _required(feature: dp_pb2.EngineFeature) -> Feature:
    if feature not in _FEATURES:
        raise EngineRefused("the query requires something of the engine that this version does not know")
    return _FEATURES[feature]


def _expected(column: histogram_pb2.Column) -> ExpectedColumn:
    return ExpectedColumn(column.name, known(COLUMN_TYPES, column.type), column.alias or None)
