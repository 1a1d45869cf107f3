"""The values of columns, and the conditions that a question sets on them."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from dp_service.queries.errors import QuestionError
from dp_service.terms import ColumnType

MAXIMUM_VALUES = 1000
MAXIMUM_TEXT_LENGTH = 1024
INT64_MINIMUM = -(2**63)
INT64_MAXIMUM = 2**63 - 1

FORBIDDEN_CHARACTER = re.compile("[\0\ud800-\udfff]")

Value = str | int | bool | datetime.date
"""A value of a column; a timestamp is a `datetime.datetime`, which is a `datetime.date` to Python, in UTC."""


# Exact classes: bool is a subclass of int and datetime of date, and neither may pass for the other.
_TYPE_OF_CLASS = {
    str: ColumnType.STRING,
    int: ColumnType.INT64,
    bool: ColumnType.BOOL,
    datetime.date: ColumnType.DATE,
    datetime.datetime: ColumnType.TIMESTAMP,
}

VALUES_OF = {
    ColumnType.STRING: "texts (in SQL in single quotes)",
    ColumnType.INT64: "integers (in SQL without quotes)",
    ColumnType.BOOL: "truth values (in SQL TRUE or FALSE)",
    ColumnType.DATE: "days (in SQL as 'YYYY-MM-DD')",
    ColumnType.TIMESTAMP: "timestamps (in SQL as TIMESTAMP 'YYYY-MM-DD hh:mm:ss' or DATE 'YYYY-MM-DD')",
}
"""What a column of each type is compared with, in messages."""


def fault_of(value: object) -> str | None:
    """Return what is wrong with `value` as a value of any column, or None."""
    if type(value) not in _TYPE_OF_CLASS:
        return "expected a text, an integer, a truth value, a day or a timestamp"
    if isinstance(value, str):
        return _fault_of_text(value)
    if type(value) is int and not INT64_MINIMUM <= value <= INT64_MAXIMUM:
        return "expected an integer of 64 bits"
    if isinstance(value, datetime.datetime) and value.utcoffset() != datetime.timedelta(0):
        return "expected timestamps in UTC"
    return None


def _fault_of_text(text: str) -> str | None:
    if len(text) > MAXIMUM_TEXT_LENGTH:
        return f"expected a text of at most {MAXIMUM_TEXT_LENGTH} characters"
    if FORBIDDEN_CHARACTER.search(text):
        return "expected a text without NUL and surrogate code points"
    return None


def type_of(value: Value) -> ColumnType:
    """Return the column type that a value belongs to."""
    return _TYPE_OF_CLASS[type(value)]


def require_valid(condition: bool, field: str, message: str) -> None:
    """Raise QuestionError with this field and message unless the condition holds."""
    if not condition:
        raise QuestionError(field, message)


def _check_value(value: Value) -> None:
    fault = fault_of(value)
    if fault is not None:
        raise QuestionError("filters", fault)


def _check_set(values: tuple[Value, ...]) -> None:
    require_valid(
        1 <= len(values) <= MAXIMUM_VALUES, "filters", f"expected 1 to {MAXIMUM_VALUES} values in a set"
    )
    for value in values:
        _check_value(value)
    require_valid(len(set(map(type_of, values))) == 1, "filters", "expected values of one type in a set")


@dataclass(frozen=True)
class In:
    """The column's value is one of `values`; their order and repetition have no meaning."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _check_set(self.values)


@dataclass(frozen=True)
class NotIn:
    """The column's value is none of `values`; their order and repetition have no meaning."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _check_set(self.values)


@dataclass(frozen=True)
class Bound:
    """One end of an interval; `exclusive` leaves the value itself out."""

    value: Value
    exclusive: bool = False

    def __post_init__(self) -> None:
        _check_value(self.value)


@dataclass(frozen=True)
class Range:
    """The column's value lies between two bounds, of which one may be missing."""

    column: str
    lower: Bound | None
    upper: Bound | None

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.lower, self.upper) if bound is not None]
        require_valid(bool(bounds), "filters", "expected a lower bound, an upper bound or both")
        types = {type_of(bound.value) for bound in bounds}
        require_valid(len(types) == 1, "filters", "expected two bounds of one type")


Filter = In | NotIn | Range


@dataclass(frozen=True)
class TimeRange:
    """The half-open interval [start, end) of timestamps in UTC, or of days of the time column's zone.

    A day stands for its beginning; None: unbounded on that side.
    """

    start: datetime.date | None
    end: datetime.date | None

    def __post_init__(self) -> None:
        for bound in (self.start, self.end):
            in_utc = not isinstance(bound, datetime.datetime) or bound.utcoffset() == datetime.timedelta(0)
            require_valid(in_utc, "time_range", "expected timestamps in UTC")
