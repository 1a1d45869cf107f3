"""Values as PostgreSQL's types write them, as text and in binary."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from typing import Any

from gris_gateway.faces.postgres.errors import NOT_SUPPORTED, PROTOCOL, VALUE, PostgresError
from pinot_connector.dbapi.types import Kind

_FIRST_DAY = datetime.date(2000, 1, 1)
_FIRST_INSTANT = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


class Oid(IntEnum):
    """The types that are known here, by PostgreSQL's numbers."""

    UNKNOWN = 0
    BOOL = 16
    INT8 = 20
    INT2 = 21
    INT4 = 23
    TEXT = 25
    FLOAT4 = 700
    FLOAT8 = 701
    UNKNOWN_TEXT = 705
    VARCHAR = 1043
    DATE = 1082
    TIMESTAMP = 1114
    TIMESTAMPTZ = 1184
    NUMERIC = 1700
    UUID = 2950
    BOOLS = 1000
    INT2S = 1005
    INT4S = 1007
    TEXTS = 1009
    VARCHARS = 1015
    INT8S = 1016
    TIMESTAMPS = 1115
    DATES = 1182
    TIMESTAMPTZS = 1185


OID_OF = {
    Kind.TEXT: Oid.TEXT,
    Kind.TRUTH: Oid.BOOL,
    Kind.WHOLE: Oid.INT8,
    Kind.REAL: Oid.FLOAT8,
    Kind.DAY: Oid.DATE,
    Kind.INSTANT: Oid.TIMESTAMPTZ,
}
TEXTS = (Oid.UNKNOWN, Oid.TEXT, Oid.UNKNOWN_TEXT, Oid.VARCHAR)
ARRAYS: dict[int, Oid] = {
    **{Oid.BOOLS: Oid.BOOL, Oid.INT2S: Oid.INT2, Oid.INT4S: Oid.INT4, Oid.INT8S: Oid.INT8},
    **{Oid.VARCHARS: Oid.VARCHAR, Oid.TEXTS: Oid.TEXT, Oid.DATES: Oid.DATE},
    **{Oid.TIMESTAMPS: Oid.TIMESTAMP, Oid.TIMESTAMPTZS: Oid.TIMESTAMPTZ},
}
"""The types of arrays, with those of their values."""
SIZES = {Oid.BOOL: 1, Oid.INT4: 4, Oid.INT8: 8, Oid.FLOAT8: 8, Oid.DATE: 4, Oid.TIMESTAMPTZ: 8}
"""How many bytes values have; of other types that varies."""


def forms_of(stated: Sequence[int], count: int) -> Sequence[int]:
    """Return the forms of so many values, as a message states them: of each, of all, or none for text; 1 is binary.

    Raises:
        PostgresError: It states as many as there are no values.
    """
    if len(stated) not in (0, 1, count):
        raise PostgresError(PROTOCOL, "expected a form for each value, or one for all")
    return stated if len(stated) == count else [*(stated or [0])] * count


def written(value: Any, oid: Oid, *, binary: bool) -> bytes | None:
    """Return a value as a client gets it; None: NULL."""
    if value is None:
        return None
    return _BINARY[oid](value) if binary else _text(value).encode()


def _text(value: Any) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return repr(value).removesuffix(".0")
        case datetime.datetime():
            at = value.astimezone(datetime.UTC) if value.tzinfo else value
            return f"{at.replace(tzinfo=None).isoformat(sep=' ')}+00"
        case datetime.date():
            return value.isoformat()
        case _:
            return str(value)


def _instant(value: datetime.datetime) -> bytes:
    at = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return struct.pack("!q", (at - _FIRST_INSTANT) // _MICROSECOND)


_BINARY: dict[Oid, Callable[[Any], bytes]] = {
    Oid.BOOL: lambda value: b"\x01" if value else b"\x00",
    Oid.INT4: lambda value: struct.pack("!i", value),
    Oid.INT8: lambda value: struct.pack("!q", value),
    Oid.FLOAT8: lambda value: struct.pack("!d", value),
    Oid.TEXT: lambda value: str(value).encode(),
    Oid.DATE: lambda value: struct.pack("!i", (value - _FIRST_DAY).days),
    Oid.TIMESTAMPTZ: _instant,
}


def read(field: str, value: bytes, oid: int, *, binary: bool) -> Any:
    """Return the value that a client sends as a parameter.

    Args:
        field: What errors call it.
        value: What was sent.
        oid: Its type's number.
        binary: In which of the two forms.

    Returns:
        The value; of an array a tuple, or the text that dp_service reads.

    Raises:
        PostgresError: It is none of a type that is known here.
    """
    try:
        if binary and oid in ARRAYS:
            return tuple(_read_array(field, value))
        if oid in TEXTS or oid in ARRAYS:
            return value.decode()
        if not binary and oid in _FROM_TEXT:
            return _FROM_TEXT[oid](value.decode())
        if binary and oid in _FROM_BINARY:
            return _FROM_BINARY[oid](value)
    except (ValueError, InvalidOperation, OverflowError, struct.error):
        raise PostgresError(VALUE, f"{field}: expected a value of the type that it is sent as") from None
    raise PostgresError(
        NOT_SUPPORTED,
        f"{field}: expected a text, a number, a truth value, a day or a timestamp, or a list of them",
    )


def _read_array(field: str, value: bytes) -> Iterator[Any]:
    """Yield the values of an array of one dimension."""
    dimensions, _, oid = struct.unpack_from("!iiI", value)
    if dimensions > 1:
        raise ValueError("no list")
    (count,) = struct.unpack_from("!i", value, 12) if dimensions else (0,)
    place = 20
    for _ in range(count):
        (length,) = struct.unpack_from("!i", value, place)
        if length < 0:
            raise PostgresError(VALUE, f"{field}: expected a list without NULL: write IS NULL for it")
        place += 4
        yield read(field, value[place : place + length], oid, binary=True)
        place += length


def _truth(text: str) -> bool:
    given = text.strip().lower()
    if given in ("t", "true", "y", "yes", "on", "1"):
        return True
    if given in ("f", "false", "n", "no", "off", "0"):
        return False
    raise ValueError("no truth value")


_FROM_TEXT: dict[int, Callable[[str], Any]] = {
    **dict.fromkeys((Oid.INT2, Oid.INT4, Oid.INT8), int),
    **dict.fromkeys((Oid.FLOAT4, Oid.FLOAT8, Oid.NUMERIC), Decimal),
    Oid.BOOL: _truth,
    Oid.DATE: datetime.date.fromisoformat,
    Oid.TIMESTAMP: datetime.datetime.fromisoformat,
    Oid.TIMESTAMPTZ: datetime.datetime.fromisoformat,
}


def _unpacked(form: str) -> Callable[[bytes], Any]:
    return lambda value: struct.unpack(form, value)[0]


def _read_instant(value: bytes) -> datetime.datetime:
    (microseconds,) = struct.unpack("!q", value)
    return _FIRST_INSTANT + int(microseconds) * _MICROSECOND


def _read_numeric(value: bytes) -> Decimal:
    """Return a number that is written by digits to the base of 10,000."""
    count, weight, sign, _ = struct.unpack_from("!hhHH", value)
    if sign not in (0, 0x4000) or len(value) != 8 + 2 * count:
        raise ValueError("no finite number")
    digits = struct.unpack_from(f"!{count}h", value, 8)
    number = sum(
        (Decimal(digit).scaleb(4 * (weight - place)) for place, digit in enumerate(digits)), Decimal(0)
    )
    return -number if sign else number


_FROM_BINARY: dict[int, Callable[[bytes], Any]] = {
    Oid.BOOL: lambda value: struct.unpack("!?", value)[0],
    Oid.INT2: _unpacked("!h"),
    Oid.INT4: _unpacked("!i"),
    Oid.INT8: _unpacked("!q"),
    Oid.FLOAT4: _unpacked("!f"),
    Oid.FLOAT8: _unpacked("!d"),
    Oid.NUMERIC: _read_numeric,
    Oid.DATE: lambda value: _FIRST_DAY + datetime.timedelta(days=struct.unpack("!i", value)[0]),
    # One without a zone is in that of the column that it is compared with.
    Oid.TIMESTAMP: lambda value: _read_instant(value).replace(tzinfo=None),
    Oid.TIMESTAMPTZ: _read_instant,
}
