"""The conditions of a question in words, all of them: who pays sees what is bought."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.dp.v1 import question_pb2

_EPOCH = datetime.date(1970, 1, 1)
_COMPARISONS = {
    question_pb2.COMPARISON_LESS: "<",
    question_pb2.COMPARISON_AT_MOST: "<=",
    question_pb2.COMPARISON_GREATER: ">",
    question_pb2.COMPARISON_AT_LEAST: ">=",
}


def conditions(asked: question_pb2.HistogramQuery) -> Iterator[str]:
    """Yield each condition on rows, and on what is shown."""
    for each in asked.filters:
        yield f"{each.column} {_predicate(each)}"
    if asked.condition:
        yield f"({asked.condition})"
    if asked.HasField("time_range"):
        yield f"time {_time_range(asked.time_range)}"
    for having in asked.having:
        number = f"number {having.aggregate + 1}" if having.HasField("aggregate") else "count"
        yield f"{number} {_COMPARISONS.get(having.comparison, '?')} {having.bound}"


def _predicate(condition: question_pb2.Filter) -> str:
    kind = condition.WhichOneof("predicate")
    if kind == "in":
        return f"in ({_listed(getattr(condition, 'in'))})"
    if kind == "not_in":
        return f"not in ({_listed(condition.not_in)})"
    found = condition.range
    lower, upper = found.lower, found.upper
    ends = []
    if found.HasField("lower"):
        ends.append(f"{'>' if lower.exclusive else '>='} {_value(lower.value)}")
    if found.HasField("upper"):
        ends.append(f"{'<' if upper.exclusive else '<='} {_value(upper.value)}")
    return " and ".join(ends) or "of any value"


def _listed(values: question_pb2.ValueSet) -> str:
    return ", ".join(map(_value, values.values))


def _value(value: question_pb2.Value) -> str:
    kind = value.WhichOneof("kind")
    if kind == "date":
        return _day(value.date)
    if kind == "timestamp":
        return _time(value.timestamp)
    if kind == "bool":
        return "true" if value.bool else "false"
    return str(value.int64) if kind == "int64" else f"'{value.string}'"


def _day(days: int) -> str:
    # A form holds what somebody sent; only the gateway checks it.
    try:
        return (_EPOCH + datetime.timedelta(days=days)).isoformat()
    except OverflowError:
        return f"day {days}"


def _time_range(found: question_pb2.TimeRange) -> str:
    ends = ((word, found.WhichOneof(end)) for word, end in _ENDS)
    return " ".join(f"{word} {_time(getattr(found, name))}" for word, name in ends if name is not None)


_ENDS: tuple[tuple[str, Literal["start", "end"]], ...] = (("from", "start"), ("before", "end"))


def _time(stamp: Timestamp | int) -> str:
    if isinstance(stamp, int):
        return _day(stamp)
    try:
        time = stamp.ToDatetime()
    except (OverflowError, ValueError):
        return f"second {stamp.seconds}"
    return time.date().isoformat() if time.time() == datetime.time() else f"{time.isoformat(' ')} UTC"
