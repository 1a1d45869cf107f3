"""Builds questions from Python values. It checks only what a message can hold; dp_service checks the rest."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from google.protobuf import timestamp_pb2
from gris_api.dp.v1 import question_pb2

from pinot_connector.checked_arguments import checked_text, checked_texts
from pinot_connector.days import days_of
from pinot_connector.errors import InvalidQuestion
from pinot_connector.python_values import plain_value, several
from pinot_connector.views import numbers

# A `datetime.datetime` is a `datetime.date` to Python; as a value it needs a time zone.
Value: TypeAlias = str | int | bool | datetime.date
TimeBound: TypeAlias = datetime.date | datetime.datetime | None


class Measure(Enum):
    """What is counted for each element."""

    DISTINCT_MEMBERS = "distinct_members"
    EVENTS = "events"
    DISTINCT_VALUES = "distinct"


@dataclass(frozen=True)
class In:
    """The column has one of these values."""

    values: Sequence[Value]


@dataclass(frozen=True)
class NotIn:
    """The column has none of these values."""

    values: Sequence[Value]


@dataclass(frozen=True)
class Between:
    """The column lies between two bounds, both included; None leaves an end open."""

    lower: Value | None
    upper: Value | None


Condition: TypeAlias = Value | Sequence[Value] | In | NotIn | Between
# Conditions by column, all of which must hold, or one in SQL.
Where: TypeAlias = Mapping[str, Condition] | str


MEASURES = numbers(Measure, question_pb2.Measure.DESCRIPTOR)


def structured_question(
    table: str,
    by: str | Sequence[str],
    *,
    k: int | None,
    measure: Measure | str = Measure.DISTINCT_MEMBERS,
    where: Where | None = None,
    time_range: tuple[TimeBound, TimeBound] | None = None,
) -> question_pb2.Question:
    """Builds a question that counts. Sums, averages, quantiles and HAVING are asked in SQL: see `sql_question`.

    Args:
        table: a table of the policy.
        by: what to group by, or a sequence of up to four: columns, or functions in SQL, such as
            `"DATE_TRUNC('month', day)"`, `"EXTRACT(HOUR FROM viewed_at) AS hour"`,
            `"FUNNEL_COUNT(STEPS(event = 'cart', event = 'purchase'))"`, `"DATE_TRUNC('month', MIN(viewed_at))"` for
            first times or `"RETENTION('month', viewed_at)"`; without them one total is counted. `TableEntry.functions`
            of the catalogue has an example of each that the table permits.
        k: the most elements to show; None for all that the mechanism may show.
        measure: a `Measure` or its value; `distinct:COLUMN` counts the distinct values of a column.
        where: conditions by column, all of which must hold; a sequence of values means `In`. Or one in SQL, such
            as `"country = 'de' OR title LIKE '%engineer%'"`.
        time_range: `(from, to)` on the policy's time column, without `to` itself; None leaves an end open. A day means
            its beginning in the zone of that column; a datetime needs a time zone.

    Raises:
        InvalidQuestion: a message cannot hold a value; `field` says which.
    """
    query = question_pb2.HistogramQuery(
        table=checked_text("table", table),
        dimensions=checked_texts("dimensions", [by] if isinstance(by, str) else by),
        measure=MEASURES[_measure(measure)],
        distinct_of=_distinct_of(measure),
        filters=[column_filter(column, condition) for column, condition in _conditions(where)],
        condition=checked_text("condition", where) if isinstance(where, str) else "",
        k=_checked_k(k),
    )
    if time_range is not None:
        query.time_range.CopyFrom(_time_range(time_range))
    return question_pb2.Question(structured=query)


def sql_question(text: str) -> question_pb2.Question:
    """Builds a question from SQL of the accepted subset; dp_service parses it, and no engine sees it.

    Args:
        text: one SELECT.

    Raises:
        InvalidQuestion: it is not a text that a message can hold.
    """
    return question_pb2.Question(sql=checked_text("sql", text))


def _measure(measure: Measure | str) -> Measure:
    if _distinct_of(measure):
        return Measure.DISTINCT_VALUES
    try:
        return Measure(measure)
    except ValueError:
        raise InvalidQuestion("measure", "expected distinct_members, events or distinct:COLUMN") from None


def _distinct_of(measure: Measure | str) -> str:
    """Returns the column whose distinct values are counted; empty: something else is."""
    if not isinstance(measure, str):
        return ""
    word, _, column = measure.partition(":")
    return checked_text("measure", column) if word == Measure.DISTINCT_VALUES.value else ""


def measure_text(measure: Measure, distinct_of: str) -> str:
    """Returns what is counted as the text that `structured_question` takes."""
    return f"{measure.value}:{distinct_of}" if measure is Measure.DISTINCT_VALUES else measure.value


def _checked_k(k: int | None) -> int | None:
    # To Python a truth value is an int, but it is no k.
    if k is not None and (type(k) is not int or not 1 <= k < 2**63):
        raise InvalidQuestion("k", "expected a whole number from 1 to 9223372036854775807")
    return k


def column_filter(column: str, condition: Condition) -> question_pb2.Filter:
    """Builds a condition on one column.

    Raises:
        InvalidQuestion: a message cannot hold a value.
    """
    built = question_pb2.Filter(column=checked_text("filters.column", column))
    match condition:
        case Between(lower, upper):
            built.range.SetInParent()
            if lower is not None:
                built.range.lower.value.CopyFrom(_value(column, lower))
            if upper is not None:
                built.range.upper.value.CopyFrom(_value(column, upper))
        case NotIn(values):
            built.not_in.values.extend(_value(column, value) for value in values)
        case In(values):
            _in(built).values.extend(_value(column, value) for value in values)
        case _:
            given = several(condition)
            _in(built).values.extend(
                _value(column, each) for each in ([condition] if given is None else given)
            )
    return built


def _in(built: question_pb2.Filter) -> question_pb2.ValueSet:
    values: question_pb2.ValueSet = getattr(built, "in")  # the field's name is a keyword here
    return values


def _value(column: str, value: object) -> question_pb2.Value:
    match value := plain_value(f"filters.{column}", value):
        case bool():
            return question_pb2.Value(bool=value)
        case int():
            return question_pb2.Value(int64=value)
        case str():
            return question_pb2.Value(string=checked_text(f"filters.{column}", value))
        case datetime.datetime():
            return question_pb2.Value(timestamp=_timestamp(f"filters.{column}", value))
        case datetime.date():
            return question_pb2.Value(date=days_of(value))


def _conditions(where: Where | None) -> Iterable[tuple[str, Condition]]:
    if not isinstance(where, Mapping | str | None):
        raise InvalidQuestion("where", f"expected conditions by column, or SQL, got {type(where).__name__}")
    return where.items() if isinstance(where, Mapping) else ()


def _time_range(ends: tuple[TimeBound, TimeBound]) -> question_pb2.TimeRange:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidQuestion("time_range", "expected two ends, (from, to), each of which may be None")
    built = question_pb2.TimeRange()
    for name, bound in zip(("from", "to"), ends, strict=True):
        match None if bound is None else plain_value("time_range", bound):
            case None:
                pass
            case datetime.datetime() as bound:
                getattr(built, name).CopyFrom(_timestamp("time_range", bound))
            case datetime.date() as bound:
                setattr(built, f"{name}_day", days_of(bound))
            case _:
                raise InvalidQuestion(
                    "time_range", f"expected days or datetimes with a time zone, got {type(bound).__name__}"
                )
    return built


def _timestamp(field: str, bound: datetime.datetime) -> timestamp_pb2.Timestamp:
    if bound.tzinfo is None:
        raise InvalidQuestion(field, "expected a datetime with a time zone")
    timestamp = timestamp_pb2.Timestamp()
    try:
        timestamp.FromDatetime(bound)
    except (ValueError, OverflowError):
        raise InvalidQuestion(field, "expected times in the years 1 to 9999 of UTC") from None
    return timestamp
