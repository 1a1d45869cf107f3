"""Converts messages to values and back. It checks only what a message can hold."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import assert_never

from google.protobuf import timestamp_pb2
from gris_api.common.v1 import cost_pb2, histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.queries import structured
from dp_service.queries.contributions import PreparedCopy
from dp_service.queries.elements import days_of
from dp_service.queries.pairs import PairsRange
from dp_service.queries.read_columns import ReadColumn, ReadValue
from dp_service.queries.render import Feature
from dp_service.queries.resolution import ClosedStream
from dp_service.queries.times import CompleteBy, TimeUnit
from dp_service.releases.histogram import HistogramError
from dp_service.releases.statements import Statement
from dp_service.terms import (
    AggregateFunction,
    Answering,
    BoundedBy,
    ColumnType,
    Consistency,
    CountNoise,
    Element,
    MechanismName,
    Scalar,
    ValueType,
)

MEASURES = {
    structured.Measure.DISTINCT_MEMBERS: question_pb2.MEASURE_DISTINCT_MEMBERS,
    structured.Measure.EVENTS: question_pb2.MEASURE_EVENTS,
}
COLUMN_TYPES = {
    ColumnType.STRING: histogram_pb2.COLUMN_TYPE_STRING,
    ColumnType.INT64: histogram_pb2.COLUMN_TYPE_INT64,
    ColumnType.BOOL: histogram_pb2.COLUMN_TYPE_BOOL,
    ColumnType.DATE: histogram_pb2.COLUMN_TYPE_DATE,
    ColumnType.TIMESTAMP: histogram_pb2.COLUMN_TYPE_TIMESTAMP,
}
TIME_UNITS = {
    TimeUnit.DAYS: dp_pb2.TIME_UNIT_DAYS,
    TimeUnit.SECONDS: dp_pb2.TIME_UNIT_SECONDS,
    TimeUnit.MILLISECONDS: dp_pb2.TIME_UNIT_MILLISECONDS,
    TimeUnit.MICROSECONDS: dp_pb2.TIME_UNIT_MICROSECONDS,
}
MECHANISMS = {
    MechanismName.KNOWN_LAP: dp_pb2.MECHANISM_KNOWN_LAP,
    MechanismName.KNOWN_GUMB: dp_pb2.MECHANISM_KNOWN_GUMB,
    MechanismName.UNK_LAP: dp_pb2.MECHANISM_UNK_LAP,
    MechanismName.UNK_GUMB: dp_pb2.MECHANISM_UNK_GUMB,
    MechanismName.BOUND_GAUSS: dp_pb2.MECHANISM_BOUND_GAUSS,
    MechanismName.BOUND_MOMENTS: dp_pb2.MECHANISM_BOUND_MOMENTS,
    MechanismName.QUANTILE_GUMB: dp_pb2.MECHANISM_QUANTILE_GUMB,
}
ANSWERINGS = {
    Answering.UNBOUNDED: dp_pb2.ANSWERING_UNBOUNDED,
    Answering.ONE_LOOK: dp_pb2.ANSWERING_ONE_LOOK,
    Answering.TWO_LOOKS: dp_pb2.ANSWERING_TWO_LOOKS,
}
BOUNDED_BY = {
    BoundedBy.IN_QUERY: dp_pb2.BOUNDED_BY_IN_QUERY,
    BoundedBy.PREPARED: dp_pb2.BOUNDED_BY_PREPARED,
    BoundedBy.ASSUMED: dp_pb2.BOUNDED_BY_ASSUMED,
}
CONSISTENCIES = {
    Consistency.KEYED: dp_pb2.CONSISTENCY_KEYED,
    Consistency.FRESH: dp_pb2.CONSISTENCY_FRESH,
}
COUNT_NOISES = {
    CountNoise.LAPLACE: dp_pb2.COUNT_NOISE_DISCRETE_LAPLACE,
    CountNoise.GAUSSIAN: dp_pb2.COUNT_NOISE_DISCRETE_GAUSSIAN,
}
AGGREGATE_FUNCTIONS = {
    AggregateFunction.SUM: question_pb2.AGGREGATE_FUNCTION_SUM,
    AggregateFunction.AVERAGE: question_pb2.AGGREGATE_FUNCTION_AVERAGE,
}
_VALUE_TYPES = {
    ValueType.INT64: dp_pb2.VALUE_TYPE_INT64,
    ValueType.DECIMAL: dp_pb2.VALUE_TYPE_DECIMAL,
    ValueType.DATE: dp_pb2.VALUE_TYPE_DATE,
}
_FEATURES = {
    Feature.PINOT_MULTISTAGE: dp_pb2.ENGINE_FEATURE_PINOT_MULTISTAGE,
    Feature.BOUNDED_COPY: dp_pb2.ENGINE_FEATURE_BOUNDED_COPY,
    Feature.PAIRS_COPY: dp_pb2.ENGINE_FEATURE_PAIRS_COPY_BUILDS,
    Feature.FIRST_COUNTS: dp_pb2.ENGINE_FEATURE_FIRST_COUNTS,
    Feature.CLOSED_STREAM: dp_pb2.ENGINE_FEATURE_CLOSED_STREAM,
}
_COMPLETE_BY = {
    CompleteBy.OFFSETS: dp_pb2.COMPLETE_BY_OFFSETS,
    CompleteBy.DELAY: dp_pb2.COMPLETE_BY_DELAY,
}


def statement_message(statement: Statement) -> dp_pb2.Statement:
    """Return what is said of a question or an answer."""
    return dp_pb2.Statement(
        code=statement.code, text=statement.text, column=statement.column, values=statement.values
    )


def column_values(message: histogram_pb2.ElementColumn) -> Sequence[Scalar]:
    """Return the values of one column of a message; dates as days since 1970-01-01."""
    match message.WhichOneof("values"):
        case "strings":
            return list(message.strings.values)
        case "int64s":
            return list(message.int64s.values)
        case "bools":
            return list(message.bools.values)
        case "dates":
            return list(message.dates.days)
        case _:
            raise HistogramError("expected values in every element column")


def element_columns(
    columns: Sequence[tuple[str, ColumnType]], elements: Sequence[Element]
) -> list[histogram_pb2.ElementColumn]:
    """Return elements as typed columns, one for each dimension."""
    values: Iterable[Sequence[Scalar]] = zip(*elements, strict=True) if elements else [()] * len(columns)
    return [_element_column(name, kind, column) for (name, kind), column in zip(columns, values, strict=True)]


def _element_column(name: str, kind: ColumnType, values: Sequence[Scalar]) -> histogram_pb2.ElementColumn:
    column = histogram_pb2.ElementColumn(name=name)
    match kind:
        case ColumnType.STRING:
            column.strings.values.extend(values)  # type: ignore[arg-type]  # the histogram's types were checked
            column.strings.SetInParent()
        case ColumnType.INT64:
            column.int64s.values.extend(values)  # type: ignore[arg-type]
            column.int64s.SetInParent()
        case ColumnType.BOOL:
            column.bools.values.extend(values)  # type: ignore[arg-type]
            column.bools.SetInParent()
        case ColumnType.DATE:
            column.dates.days.extend(values)  # type: ignore[arg-type]
            column.dates.SetInParent()
        case ColumnType.TIMESTAMP:
            # No question groups by one, and the policy lists no domain of one.
            raise AssertionError("timestamps are no elements")
        case _:
            assert_never(kind)
    return column


def engine_features(
    required: Iterable[Feature],
    *,
    two_looks: bool,
    sums: bool,
    over_rows: bool,
    own_counts: bool,
    quantiles: bool,
    quantiles_of_names: bool,
    rows: bool,
    totals: bool,
) -> list[dp_pb2.EngineFeature]:
    """Return the features that an engine needs to run a query, and its client where it has more to do than that."""
    of_client = {
        dp_pb2.ENGINE_FEATURE_TWO_LOOKS: two_looks,
        dp_pb2.ENGINE_FEATURE_SUMS: sums,
        dp_pb2.ENGINE_FEATURE_SUMS_OVER_ROWS: over_rows,
        dp_pb2.ENGINE_FEATURE_OWN_COUNTS: own_counts,
        dp_pb2.ENGINE_FEATURE_QUANTILES: quantiles,
        dp_pb2.ENGINE_FEATURE_QUANTILES_OF_NAMES: quantiles_of_names,
        dp_pb2.ENGINE_FEATURE_SHOWN_ROWS: rows,
        dp_pb2.ENGINE_FEATURE_TOTALS: totals,
    }
    return [*(_FEATURES[each] for each in required), *(each for each, needed in of_client.items() if needed)]


def closed_stream(stream: ClosedStream | None) -> dp_pb2.ClosedStream | None:
    """Return what must hold of the table's stream; None: nothing."""
    if stream is None:
        return None
    return dp_pb2.ClosedStream(
        time_column=stream.time_column,
        start=stream.start,
        end=stream.end,
        complete_by=_COMPLETE_BY[stream.stated.complete_by],
        replaced_until_closed=stream.stated.replaced_until_closed,
        offline_days_are_whole=stream.stated.offline_days_are_whole,
        # Only a table whose rows are replaced has a key.
        member_column=stream.member if stream.stated.replaced_until_closed else "",
        replaced_by_same_member=stream.stated.replaced_by_same_member,
    )


def bounded_copy(copy: PreparedCopy | None) -> dp_pb2.BoundedCopy | None:
    """Return what the table's file must say of itself; None: nothing."""
    if copy is None:
        return None
    return dp_pb2.BoundedCopy(
        table=copy.table,
        member=copy.member,
        elements=copy.elements,
        delta_0=copy.delta_0,
        period=copy.period,
    )


def pairs_copy(pairs: PairsRange | None) -> dp_pb2.PairsCopy | None:
    """Return what a pairs copy has to hold; None: the question is not asked of one."""
    if pairs is None:
        return None
    return dp_pb2.PairsCopy(
        asked_table=pairs.asked_table,
        start=pairs.start,
        end=pairs.end,
        periods=[days_of(each.start) for each in pairs.periods],
        rows=[each.rows for each in pairs.periods],
        builds=[each.build for each in pairs.periods],
        check_sums=[each.check_sum for each in pairs.periods],
    )


def expected_columns(
    columns: Sequence[tuple[str, ColumnType]], aliases: Sequence[str | None]
) -> list[histogram_pb2.Column]:
    """Return names and types of the element columns, and their aliases; empty: they have none."""
    named = zip(columns, aliases or [None] * len(columns), strict=True)
    return [
        histogram_pb2.Column(name=name, type=COLUMN_TYPES[kind], alias=alias) for (name, kind), alias in named
    ]


def read_column(column: ReadColumn) -> dp_pb2.ReadColumn:
    """Return what a query assumes about a column."""
    message = dp_pb2.ReadColumn(name=column.name)
    if column.type is not None:
        message.type = COLUMN_TYPES[column.type]
    if column.null_value is not None:
        message.null_value.CopyFrom(value_message(column.null_value))
    if column.numbers is not None:
        message.smallest, message.largest = column.numbers.start, column.numbers.end - 1
    if column.stored is not None:
        message.time_unit = TIME_UNITS[column.stored]
    return message


def read_value(value: ReadValue) -> dp_pb2.ReadValue:
    """Return what a query assumes about a column that it sums."""
    null_value = "" if value.null_value is None else str(value.null_value)
    return dp_pb2.ReadValue(name=value.name, type=_VALUE_TYPES[value.type], null_value=null_value)


def value_message(value: structured.Value) -> question_pb2.Value:
    """Return a value of a policy or a question."""
    match value:
        case bool():
            return question_pb2.Value(bool=value)
        case int():
            return question_pb2.Value(int64=value)
        case str():
            return question_pb2.Value(string=value)
        case datetime.datetime():
            timestamp = timestamp_pb2.Timestamp()
            timestamp.FromDatetime(value)
            return question_pb2.Value(timestamp=timestamp)
        case datetime.date():
            return question_pb2.Value(date=days_of(value))


def cost_message(cost: Cost, unit_id: str) -> cost_pb2.Cost:
    """Return a cost in its currency."""
    return cost_pb2.Cost(information=cost.information, calls=cost.calls, unit_id=unit_id)
