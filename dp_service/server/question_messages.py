"""Structured questions as messages."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TypeAlias

from google.protobuf import timestamp_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.queries import asked_numbers, filters, structured
from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.elements import date_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS
from dp_service.server.errors import RequestError
from dp_service.server.messages import MEASURES

ReadCondition: TypeAlias = Callable[[str, tuple[str, ...]], tuple[filters.Filter, ...]]
"""Reads a condition in SQL, given its text and the columns that the question groups by."""

MAXIMUM_AUDIENCE_VALUES = 16
MAXIMUM_AUDIENCE_CHARACTERS = 512


def audience_of(message: question_pb2.Question | dp_pb2.GetCatalogRequest) -> AskedAs | None:
    """Return as which audience a message asks; None: as none.

    Raises:
        RequestError: It gives more values, or longer ones, than any audience has.
    """
    if not message.HasField("audience"):
        return None
    name = message.audience.name
    values = [(each.name, each.value) for each in message.audience.values]
    longest = max(map(len, (name, *(text for each in values for text in each))))
    if len(values) > MAXIMUM_AUDIENCE_VALUES or longest > MAXIMUM_AUDIENCE_CHARACTERS:
        raise RequestError(
            "audience",
            f"expected a name and at most {MAXIMUM_AUDIENCE_VALUES} values, of at most {MAXIMUM_AUDIENCE_CHARACTERS} "
            "characters each",
        )
    return AskedAs(name, tuple(sorted(values)))


def structured_question(
    message: question_pb2.HistogramQuery, read_condition: ReadCondition
) -> structured.HistogramQuery:
    """Return the structured question of a message.

    Args:
        message: The message.
        read_condition: Reads its condition in SQL.

    Raises:
        QuestionError: A part of the message is missing or out of range; `field` names it.
    """
    dimensions = tuple(message.dimensions)
    in_sql = read_condition(message.condition, dimensions) if message.condition else ()
    return structured.HistogramQuery(
        table=message.table,
        dimensions=dimensions,
        measure=_counted(message),
        filters=(*map(_filter, message.filters), *in_sql),
        time_range=_time_range(message.time_range) if message.HasField("time_range") else None,
        k=message.k if message.HasField("k") else None,
    )


def _counted(message: question_pb2.HistogramQuery) -> asked_numbers.Counted:
    of_values = message.measure == question_pb2.MEASURE_DISTINCT_VALUES
    if of_values is not bool(message.distinct_of):
        raise QuestionError("distinct_of", "expected a column with MEASURE_DISTINCT_VALUES, and else none")
    if of_values:
        return asked_numbers.DistinctValues(message.distinct_of)
    measures = {number: measure for measure, number in MEASURES.items()}
    if message.measure not in measures:
        expected = "expected MEASURE_DISTINCT_MEMBERS, MEASURE_EVENTS or MEASURE_DISTINCT_VALUES"
        raise QuestionError("measure", expected)
    return measures[message.measure]


def _filter(message: question_pb2.Filter) -> filters.Filter:
    match message.WhichOneof("predicate"):
        case "in":
            return filters.In(message.column, _values(getattr(message, "in")))
        case "not_in":
            return filters.NotIn(message.column, _values(message.not_in))
        case "range":
            return filters.Range(
                message.column, _bound(message.range, "lower"), _bound(message.range, "upper")
            )
        case _:
            raise QuestionError("filters.predicate", "expected one of in, not_in, range")


def _values(message: question_pb2.ValueSet) -> tuple[filters.Value, ...]:
    return tuple(_value(value) for value in message.values)


def _value(message: question_pb2.Value) -> filters.Value:
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


def _date(days: int, field: str = "filters.value.date") -> datetime.date:
    try:
        return date_of(days)
    except (ValueError, OverflowError):
        raise QuestionError(field, "expected a day between the years 1 and 9999") from None


def _bound(message: question_pb2.ValueRange, end: str) -> filters.Bound | None:
    if not message.HasField("lower" if end == "lower" else "upper"):
        return None
    bound = message.lower if end == "lower" else message.upper
    return filters.Bound(_value(bound.value), exclusive=bound.exclusive)


def _time_range(message: question_pb2.TimeRange) -> filters.TimeRange:
    return filters.TimeRange(*(_end(message, end) for end in ("start", "end")))


def _end(message: question_pb2.TimeRange, end: str) -> datetime.date | None:
    given = message.WhichOneof(end)
    if given is None:
        return None
    bound = getattr(message, given)
    return _date(bound, "time_range") if isinstance(bound, int) else _timestamp(bound, "time_range")


def _timestamp(message: timestamp_pb2.Timestamp, field: str) -> datetime.datetime:
    if message.nanos % 1000:
        raise QuestionError(field, "expected timestamps of whole microseconds")
    try:
        return message.ToDatetime(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        raise QuestionError(field, BEYOND_ALL_TIMESTAMPS) from None
