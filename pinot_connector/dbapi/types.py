"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime
from enum import Enum

from pinot_connector.engines.base import ColumnType


class Type(Enum):
    """What a column in `description` holds. PEP 249 asks for binary and row ids too, which no result has."""

    STRING = "string"
    BINARY = "binary"
    NUMBER = "number"
    DATETIME = "datetime"
    ROWID = "rowid"
    BOOLEAN = "boolean"


STRING = Type.STRING
BINARY = Type.BINARY
NUMBER = Type.NUMBER
DATETIME = Type.DATETIME
ROWID = Type.ROWID
BOOLEAN = Type.BOOLEAN


class Kind(Enum):
    """What a column of a result holds, finer than PEP 249 says it."""

    TEXT = "text"
    TRUTH = "truth"
    WHOLE = "whole"
    REAL = "real"
    DAY = "day"
    INSTANT = "instant"


KIND_OF_COLUMN = {
    ColumnType.STRING: Kind.TEXT,
    ColumnType.INT64: Kind.WHOLE,
    ColumnType.BOOL: Kind.TRUTH,
    ColumnType.DATE: Kind.DAY,
    ColumnType.TIMESTAMP: Kind.INSTANT,
}
TYPE_OF_KIND = {
    Kind.TEXT: STRING,
    Kind.TRUTH: BOOLEAN,
    Kind.WHOLE: NUMBER,
    Kind.REAL: NUMBER,
    Kind.DAY: DATETIME,
    Kind.INSTANT: DATETIME,
}

# Days and timestamps can be parameters of a question; the other constructors make values that are refused by name.
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes
DateFromTicks = datetime.date.fromtimestamp
TimestampFromTicks = datetime.datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - PEP 249's name
    """Returns the local time of day, so many seconds after the beginning of 1970 in UTC."""
    return datetime.datetime.fromtimestamp(ticks).time()
