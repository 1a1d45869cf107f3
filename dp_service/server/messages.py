"""Converts messages to values and back. It checks only what a message can hold."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import assert_never

from google.protobuf import timestamp_pb2
from gris_api.common.v1 import cost_pb2, histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.mechanisms.bounded import Shift
from dp_service.mechanisms.parameters import Cost
from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.contributions import LooksBefore
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries import structured
from dp_service.queries.contributions import PreparedCopy
from dp_service.queries.elements import date_of, days_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.pairs import PairsRange
from dp_service.queries.read_columns import ReadColumn, ReadValue
from dp_service.queries.render import Feature
from dp_service.queries.resolution import ClosedStream
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS, CompleteBy, TimeUnit
from dp_service.releases.histogram import HistogramError
from dp_service.releases.mechanism import look_of, moments_of, shift_of, two_looks_of
from dp_service.releases.sharpening import law_of
from dp_service.server.listing_messages import bucket_of, having_of, name_of_conditions
from dp_service.server.quantile_messages import RANK_FUNCTIONS, quantiles_message
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


def structured_question(message: question_pb2.HistogramQuery) -> structured.HistogramQuery:
    """Return the structured question of a message.

    Raises:
        QuestionError: A part of the message is missing or out of range; `field` names it.
    """
    measures = {number: measure for measure, number in MEASURES.items()}
    if message.measure not in measures:
        raise QuestionError("measure", "expected MEASURE_DISTINCT_MEMBERS or MEASURE_EVENTS")
    return structured.HistogramQuery(
        table=message.table,
        dimensions=tuple(message.dimensions),
        measure=measures[message.measure],
        filters=tuple(_filter(each) for each in message.filters),
        time_range=_time_range(message.time_range) if message.HasField("time_range") else None,
        k=message.k if message.HasField("k") else None,
        omit_counts=message.omit_counts,
        aggregates=tuple(map(_aggregate, message.aggregates)),
        ordered_by=message.ordered_by if message.HasField("ordered_by") else None,
        quantiles=tuple(map(_quantile, message.quantiles)),
        bucket=bucket_of(message.bucket) if message.HasField("bucket") else None,
        having=tuple(map(having_of, message.having)),
        totals_by=message.totals_by or None,
    )


# As many digits as a quantile can need; a text of a million digits is no number to anybody.
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12}|/[1-9][0-9]{0,11})?")


def _quantile(message: question_pb2.Quantile) -> structured.AskedQuantile:
    functions = {number: function for function, number in RANK_FUNCTIONS.items()}
    if message.function not in functions:
        raise QuestionError(
            "quantiles",
            "expected RANK_FUNCTION_QUANTILE, RANK_FUNCTION_SMALLEST or RANK_FUNCTION_LARGEST, and a column",
        )
    if message.q and not _NUMBER.fullmatch(message.q):
        raise QuestionError("quantiles", "expected a number between 0 and 1, such as 0.25 or 1/3")
    q = Fraction(message.q) if message.q else None
    return structured.AskedQuantile(functions[message.function], message.column, q)


def _aggregate(message: question_pb2.Aggregate) -> structured.Aggregate:
    functions = {number: function for function, number in AGGREGATE_FUNCTIONS.items()}
    if message.function not in functions:
        raise QuestionError(
            "aggregates", "expected AGGREGATE_FUNCTION_SUM or AGGREGATE_FUNCTION_AVERAGE, and a column"
        )
    return structured.Aggregate(functions[message.function], message.column)


def _filter(message: question_pb2.Filter) -> structured.Filter:
    match message.WhichOneof("predicate"):
        case "in":
            return structured.In(message.column, _values(getattr(message, "in")))
        case "not_in":
            return structured.NotIn(message.column, _values(message.not_in))
        case "range":
            return structured.Range(
                message.column, _bound(message.range, "lower"), _bound(message.range, "upper")
            )
        case _:
            raise QuestionError("filters.predicate", "expected one of in, not_in, range")


def _values(message: question_pb2.ValueSet) -> tuple[structured.Value, ...]:
    return tuple(_value(value) for value in message.values)


def _value(message: question_pb2.Value) -> structured.Value:
    match message.WhichOneof("kind"):
        case "string":
            return message.string
        case "int64":
            return message.int64
        case "bool":
            return message.bool
        case "date":
            return _date(message.date)
        case "timestamp":
            return _timestamp(message.timestamp, "filters.value.timestamp")
        case _:
            raise QuestionError("filters.value", "expected one of string, int64, bool, date, timestamp")


def _date(days: int) -> datetime.date:
    try:
        return date_of(days)
    except (ValueError, OverflowError):
        raise QuestionError("filters.value.date", "expected a day between the years 1 and 9999") from None


def _bound(message: question_pb2.ValueRange, end: str) -> structured.Bound | None:
    if not message.HasField("lower" if end == "lower" else "upper"):
        return None
    bound = message.lower if end == "lower" else message.upper
    return structured.Bound(_value(bound.value), exclusive=bound.exclusive)


def _time_range(message: question_pb2.TimeRange) -> structured.TimeRange:
    start = _timestamp(getattr(message, "from"), "time_range") if message.HasField("from") else None
    end = _timestamp(message.to, "time_range") if message.HasField("to") else None
    return structured.TimeRange(start, end)


def _timestamp(message: timestamp_pb2.Timestamp, field: str) -> datetime.datetime:
    if message.nanos % 1000:
        raise QuestionError(field, "expected timestamps of whole microseconds")
    try:
        return message.ToDatetime(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        raise QuestionError(field, BEYOND_ALL_TIMESTAMPS) from None


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


def parameters_message(
    parameters: ReleaseParameters, noise_scale: Fraction | None
) -> dp_pb2.MechanismParameters:
    """Return the parameters in the form in which people read them.

    Args:
        parameters: The parameters of the release.
        noise_scale: The scale of the noise in the counts; None: the release has no counts.
    """
    known = parameters.domain is not None
    return dp_pb2.MechanismParameters(
        mechanism=MECHANISMS[parameters.mechanism],
        epsilon_per=str(parameters.epsilon_per),
        delta="" if known else str(parameters.delta),
        tau=parameters.tau,
        delta_l0=parameters.delta_l0 or 0,
        d_bar=parameters.d_bar or 0,
        k=parameters.k or 0,
        domain_size=len(parameters.domain or ()),
        count_noise=dp_pb2.COUNT_NOISE_NONE if noise_scale is None else COUNT_NOISES[parameters.count_noise],
        noise_scale="" if noise_scale is None else str(noise_scale),
        consistency=CONSISTENCIES[parameters.consistency],
        contributions=_contributions(parameters),
        clipped=parameters.clips,
        sums=_sums(parameters),
        quantiles=quantiles_message(parameters),
        in_element_order=parameters.listing is not None and parameters.listing.in_element_order,
        having="" if parameters.listing is None else name_of_conditions(parameters.listing.having),
    )


def _sums(parameters: ReleaseParameters) -> dp_pb2.Sums | None:
    stated, mechanism = parameters.sums, moments_of(parameters)
    if stated is None or mechanism is None:
        return None
    return dp_pb2.Sums(
        share=str(stated.share),
        columns=[
            _summed_column(column, mechanism.sum_variance(place), mechanism.own_count_variance(place))
            for place, column in enumerate(stated.columns)
        ],
        aggregates=[
            dp_pb2.ShownAggregate(
                function=AGGREGATE_FUNCTIONS[each.function],
                column=stated.columns[each.place].name,
                alias=each.alias,
            )
            for each in stated.asked
        ],
        ordered_by=stated.ordered_by,
        over_rows=parameters.sums_rows,
    )


def _summed_column(
    column: SummedValue, variance: Fraction, of_own_count: Fraction | None
) -> dp_pb2.SummedColumn:
    return dp_pb2.SummedColumn(
        name=column.name,
        quantum=str(column.quantum),
        lower=str(column.low * column.quantum),
        upper=str(column.high * column.quantum),
        share=str(column.share),
        noise_variance=str(variance),
        has_own_count=column.count_share is not None,
        count_share="" if column.count_share is None else str(column.count_share),
        count_variance="" if of_own_count is None else str(of_own_count),
    )


def _contributions(parameters: ReleaseParameters) -> dp_pb2.Contributions | None:
    stated, look, shift = parameters.contributions, look_of(parameters), shift_of(parameters)
    if stated is None:
        return None
    variance = shift.error_variance if shift is not None else look.variance if look is not None else None
    return dp_pb2.Contributions(
        bounded_by=BOUNDED_BY[stated.bounded_by],
        delta_0=stated.delta_0,
        periods=stated.periods,
        units=stated.units,
        min_count=stated.min_count or 0,
        threshold=None if look is None else look.threshold,
        noise_variance="" if variance is None else str(variance),
        names=_names_look(parameters),
        shift=None if shift is None else _shift(shift),
        sharpened=None if stated.before is None else _sharpened(parameters, stated.before),
    )


def _sharpened(parameters: ReleaseParameters, before: LooksBefore) -> dp_pb2.Sharpened:
    law = law_of(parameters)
    return dp_pb2.Sharpened(
        units_before=map(str, before.units),
        denominator=law.denominator,
        noise_variance=str(law.variance),
        planned=before.planned,
    )


def _shift(shift: Shift) -> dp_pb2.Shift:
    factor, denominator = shift.factors
    return dp_pb2.Shift(
        factor=factor,
        denominator=denominator,
        count_variance=str(shift.count_variance),
        total_variance=str(shift.total_variance),
    )


def _names_look(parameters: ReleaseParameters) -> dp_pb2.NamesLook | None:
    mechanism = two_looks_of(parameters)
    if mechanism is None:
        return None
    look = mechanism.names_look
    return dp_pb2.NamesLook(
        delta_1=look.bound.delta_0,
        units=str(look.units),
        max_names=mechanism.most_names,
        threshold=look.threshold,
        noise_variance=str(look.variance),
    )
