"""Builds questions from Python values. It checks only what a message can hold; dp_service checks the rest."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from google.protobuf import timestamp_pb2
from gris_api.dp.v1 import question_pb2

from pinot_connector.checked_arguments import checked_text, checked_texts
from pinot_connector.days import days_of
from pinot_connector.errors import InvalidQuestion
from pinot_connector.having import having_conditions
from pinot_connector.python_values import plain_value, several
from pinot_connector.views import numbers

# A `datetime.datetime` is a `datetime.date` to Python; as a value it needs a time zone.
Value: TypeAlias = str | int | bool | datetime.date
TimeBound: TypeAlias = datetime.date | datetime.datetime | None
# "min" and "max" stand for about the smallest and the largest value.
QuantileLike: TypeAlias = float | str | Fraction | Decimal
MaxError: TypeAlias = float | str | Decimal | None


class Measure(Enum):
    """What is counted for each element."""

    DISTINCT_MEMBERS = "distinct_members"
    EVENTS = "events"
    DISTINCT_VALUES = "distinct"


class RankFunction(Enum):
    """Which of the members' values is asked for: the one at a quantile, or about the smallest or the largest."""

    QUANTILE = "quantile"
    SMALLEST = "min"
    LARGEST = "max"


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


_BUCKET = re.compile(r"(day|week|month|quarter|year):([A-Za-z_][A-Za-z0-9_]*)")
_RANKS = numbers(RankFunction, question_pb2.RankFunction.DESCRIPTOR)
MEASURES = numbers(Measure, question_pb2.Measure.DESCRIPTOR)
_COUNTS = {"members": "MEMBERS()", "rows": "COUNT(*)"}
_FUNCTIONS = {"sum": "SUM", "avg": "AVG"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALIASED = re.compile(r"(.+?)\s+AS\s+(\w+)", re.IGNORECASE | re.DOTALL)
_SHORT = re.compile(
    r"\s*(?:(?P<factor>[0-9.]+)\s*\*\s*)?(?:(?P<of>sum|avg)\s*:\s*(?P<column>[^\s:]+)|(?P<counted>members|rows))"
    r"(?:\s+where\s+(?P<condition>.+?))?(?:\s*/\s*(?P<per>count|members|rows))?\s*",
    re.IGNORECASE | re.DOTALL,
)


def structured_question(
    table: str,
    by: str | Sequence[str],
    *,
    k: int | None,
    measure: Measure | str = Measure.DISTINCT_MEMBERS,
    where: Where | None = None,
    condition: str = "",
    time_range: tuple[TimeBound, TimeBound] | None = None,
    counts: bool = True,
    sums: Sequence[str] = (),
    averages: Sequence[str] = (),
    numbers: Sequence[str] = (),
    order_by: str | None = None,
    quantiles: Mapping[str, Sequence[QuantileLike]] | None = None,
    bucket: str | None = None,
    ranked: bool = False,
    having: str | Sequence[str] = (),
    max_error: MaxError = None,
) -> question_pb2.Question:
    """Builds a question.

    Args:
        table: a table of the policy.
        by: what to group by, or a sequence of up to four: columns, or functions in SQL, such as
            `"EXTRACT(HOUR FROM viewed_at) AS hour"`,
            `"FUNNEL_COUNT(STEPS(event = 'cart', event = 'purchase'))"`, `"DATE_TRUNC('month', MIN(viewed_at))"` for
            first times or `"RETENTION('month', viewed_at)"`; without them one total is counted. `TableEntry.functions`
            of the catalogue has an example of each that the table permits.
        k: the most elements to show; None for all that the mechanism may show.
        measure: a `Measure` or its value; `distinct:COLUMN` counts the distinct values of a column.
        where: conditions by column, all of which must hold; a sequence of values means `In`. Or `condition`.
        condition: one that must hold as well, in SQL, such as `"country = 'de' OR title LIKE '%engineer%'"`.
        time_range: `(from, to)` on the policy's time column, without `to` itself; None leaves an end open. A day means
            its beginning in the zone of that column; a datetime needs a time zone.
        counts: whether to show noisy counts; a ranking alone costs less.
        sums: the value columns whose sums to show beside the counts: of each member its total in an element counts, or
            if events are counted its rows.
        averages: the value columns whose averages to show, behind the sums: over the same.
        numbers: what else to show, in SQL as behind SELECT: `"SUM(amount) FILTER (WHERE paid)"`, `"COUNT(*)"`. Short
            forms are `members where <condition>`, `rows where <condition>`, `sum:<column> where <condition>`,
            `avg:<column> where <condition>`; and `rows` beside a count of members. With ` / count` behind it a number
            is divided by the count, perhaps times another: `100 * members where <condition> / count`; so it is with
            ` / members` and ` / rows`. Which elements are shown does not depend on them.
        order_by: one of these sums, averages or numbers, as `sum:<column>`, `avg:<column>`, as `numbers` has it, or by
            its alias: the list is in its descending order, and `k` shows the elements where it is largest. None: the
            list is in the order of its counts.
        quantiles: the quantiles to show of one column instead of counts, such as `{"amount": [0.25, 0.5, 0.75]}`;
            "min" and "max" among them stand for about the smallest and the largest value.
        bucket: the policy's time column, divided into buckets: `<length>:<column>`, such as `month:day`, for
            `DATE_TRUNC('month', day)`. It stands in the place of the column in `by`, or before the others.
        ranked: whether a list by functions of time is in the order of its counts. Otherwise it is in that of time, and
            `k` shows the first elements of it.
        having: conditions on what is released, such as `"count >= 100"` or `"sum:amount < 2500.50"`; elements that do
            not meet all of them are not shown. A text is one condition.
        max_error: how far a count may be off on average, or as a part of the smallest one: `"10%"`; see `top_k`.

    Raises:
        InvalidQuestion: a message cannot hold a value; `field` says which.
    """
    dimensions = checked_texts("dimensions", [by] if isinstance(by, str) else by)
    query = question_pb2.HistogramQuery(
        table=checked_text("table", table),
        dimensions=dimensions if bucket is None else _with_bucket(bucket, dimensions),
        measure=MEASURES[_measure(measure)],
        distinct_of=_distinct_of(measure),
        filters=[column_filter(column, condition) for column, condition in _conditions(where)],
        condition=checked_text("condition", where if isinstance(where, str) else condition),
        k=_checked_k(k),
        omit_counts=not counts,
        ranked=ranked,
        aggregates=[
            *(_function("sum", each) for each in _texts(sums)),
            *(_function("avg", each) for each in _texts(averages)),
            *(_number(each, measure) for each in _texts(numbers)),
        ],
        quantiles=_quantiles(quantiles or {}),
        max_error="" if max_error is None else checked_text("max_error", str(max_error)),
    )
    if order_by is not None:
        named = _number(checked_text("ordered_by", order_by), measure)
        query.ordered_by = _place("ordered_by", named, query.aggregates)
    conditions = checked_texts("having", [having] if isinstance(having, str) else having)
    query.having.extend(
        having_conditions(conditions, lambda name: _place("having", _number(name, measure), query.aggregates))
    )
    if time_range is not None:
        query.time_range.CopyFrom(_time_range(time_range))
    return question_pb2.Question(structured=query)


def _texts(numbers: Sequence[str]) -> list[str]:
    # A text is a sequence of texts to Python, but not of numbers.
    return checked_texts("aggregates", [numbers] if isinstance(numbers, str) else numbers)


def _function(of: str, column: str) -> str:
    quoted = '"' + column.replace('"', '""') + '"'
    return f"{_FUNCTIONS[of]}({column if _PLAIN_NAME.fullmatch(column) else quoted})"


def _quantiles(asked: Mapping[str, Sequence[QuantileLike]]) -> Iterator[question_pb2.Quantile]:
    if not isinstance(asked, Mapping):
        raise InvalidQuestion("quantiles", "expected a column with its quantiles: {column: [0.25, 0.5]}")
    for column, wanted in asked.items():
        # A text is a sequence of texts to Python, but not of quantiles.
        if isinstance(wanted, str) or not isinstance(wanted, Sequence) or not wanted:
            raise InvalidQuestion("quantiles", "expected a sequence of quantiles for each column")
        name = checked_text("quantiles", column)
        yield from (_quantile(name, each) for each in wanted)


def _quantile(column: str, wanted: QuantileLike) -> question_pb2.Quantile:
    for function in (RankFunction.SMALLEST, RankFunction.LARGEST):
        if wanted == function.value:
            return question_pb2.Quantile(function=_RANKS[function], column=column)
    if isinstance(wanted, bool) or not isinstance(wanted, int | float | str | Fraction | Decimal):
        raise InvalidQuestion("quantiles", "expected numbers between 0 and 1, min or max")
    text = checked_text("quantiles", str(wanted))
    number = _RANKS[RankFunction.QUANTILE]
    return question_pb2.Quantile(function=number, column=column, q=text)


def _number(text: str, measure: Measure | str) -> str:
    """Returns a number in SQL, of its short form or as it is."""
    found = _SHORT.fullmatch(text)
    if found is None or (found["factor"] and not found["per"]):
        return text.strip()
    of = found["of"]
    written = _function(of.lower(), found["column"]) if of else _COUNTS[found["counted"].lower()]
    if found["condition"]:
        written += f" FILTER (WHERE {found['condition'].strip()})"
    if not found["per"]:
        return written
    counted = "members" if _measure(measure) is Measure.DISTINCT_MEMBERS else "rows"
    per = {**_COUNTS, "count": _COUNTS[counted]}[found["per"].lower()]
    return f"{found['factor'] or '1'} * {written} / {per}"


def _place(field: str, named: str, aggregates: Sequence[str]) -> int:
    for place, each in enumerate(aggregates):
        aliased = _ALIASED.fullmatch(each)
        if named == each or (aliased and named in aliased.groups()):
            return place
    count = "count, or " if field == "having" else ""
    raise InvalidQuestion(
        field, f"expected {count}sum:COLUMN, avg:COLUMN or another number, one that is asked for"
    )


def _with_bucket(bucket: str, dimensions: list[str]) -> list[str]:
    """Returns what to group by, with the time column divided into buckets."""
    found = _BUCKET.fullmatch(checked_text("bucket", bucket))
    if found is None:
        raise InvalidQuestion(
            "bucket",
            "expected LENGTH:COLUMN, with the time column and one of day, week, month, quarter and year",
        )
    length, column = found.groups()
    written = f"DATE_TRUNC('{length}', {column})"
    if column not in dimensions:
        return [written, *dimensions]
    return [written if each == column else each for each in dimensions]


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
