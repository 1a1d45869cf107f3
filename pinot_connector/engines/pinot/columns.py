"""Reads the columns of a Pinot schema, and checks that they are what a query was written for.

If they are not, Pinot answers all the same: it counts one row in several elements, counts rows without a member, or
compares numbers as texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from struct import pack, unpack
from typing import Any

from pinot_connector.days import FIRST_DAY, LAST_DAY
from pinot_connector.engines.base import ColumnType, Element, ReadColumn, ReadValue, TimeUnit, ValueType
from pinot_connector.engines.pinot.answer import PINOT_TYPES, SUMMED_TYPES
from pinot_connector.errors import EngineRefused

_INT_MINIMUM, _INT_MAXIMUM = -(2**31), 2**31 - 1
_LONG_MINIMUM = -(2**63)
# Days since 1970, as schemas say it before and since Pinot 0.11.
_DAYS = re.compile(r"1:DAYS:EPOCH|EPOCH\|DAYS(\|1)?", re.IGNORECASE)
# The same for other units of numbers since 1970.
_EPOCH = r"1:{unit}:EPOCH|EPOCH\|{unit}(\|1)?"

# What Pinot stores where a value is missing and the schema does not define it.
_NULLS_OF_DIMENSIONS: Mapping[str, Element] = {
    "STRING": "null",
    "INT": _INT_MINIMUM,
    "LONG": _LONG_MINIMUM,
    "BOOLEAN": False,
    "TIMESTAMP": 0,
}
_NULLS_OF_METRICS = {**_NULLS_OF_DIMENSIONS, "INT": 0, "LONG": 0}
# The same as numbers; in a metric, 0 stands for all of them.
_NUMBERS: Mapping[str, Fraction | None] = {
    "INT": Fraction(_INT_MINIMUM),
    "LONG": Fraction(_LONG_MINIMUM),
    "FLOAT": None,
    "DOUBLE": None,
    "BIG_DECIMAL": Fraction(0),
}
_READ_AS: Mapping[str, Callable[[str], Element]] = {
    "STRING": str,
    "INT": int,
    "LONG": int,
    "BOOLEAN": lambda text: text.lower() in ("true", "1"),
    # Text that Pinot writes for a time is in the controller's own zone, which is not known here.
    "TIMESTAMP": lambda text: int(text) * 1000 if re.fullmatch(r"-?[0-9]{1,15}", text) else text,
}


@dataclass(frozen=True)
class PinotColumn:
    """A column of a schema; `null_value` is what stands for NULL, None for a type that no question reads.

    For a TIMESTAMP it is in microseconds, or a text where the schema does not give a number. `format` is the format of
    times; None: the schema has none. `null_number` is the number that stands for NULL; None: an infinity, or none.
    """

    type: str
    is_single: bool
    null_value: Element | None
    format: str | None
    null_number: Fraction | None = None


def columns_of(schema: Mapping[str, Any]) -> Mapping[str, PinotColumn]:
    """Returns the columns of a schema by name.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: it is no schema.
    """
    metrics = schema.get("metricFieldSpecs") or ()
    dimensions = ((field, _NULLS_OF_DIMENSIONS) for field in _fields_but_metrics(schema))
    fields = (*dimensions, *((field, _NULLS_OF_METRICS) for field in metrics))
    return {field["name"]: _column(field, nulls) for field, nulls in fields}


def fields_of(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields what a schema says of each of its columns, whatever the list that names it."""
    yield from _fields_but_metrics(schema)
    yield from schema.get("metricFieldSpecs") or ()


def _fields_but_metrics(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from schema.get("dimensionFieldSpecs") or ()
    yield from schema.get("dateTimeFieldSpecs") or ()
    times = schema.get("timeFieldSpec") or {}
    # The old way of naming one time column: what is stored is the outgoing form, if there is another.
    time = times.get("outgoingGranularitySpec") or times.get("incomingGranularitySpec")
    if time:
        yield {**times, **time}


def key_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """Returns the columns of a schema's key; most schemas have none."""
    return frozenset(map(str, schema.get("primaryKeyColumns") or ()))


def _column(field: Mapping[str, Any], nulls: Mapping[str, Element]) -> PinotColumn:
    kind, stated = field["dataType"], field.get("defaultNullValue")
    null_value = nulls.get(kind) if stated is None or kind not in _READ_AS else _READ_AS[kind](str(stated))
    format_ = field.get("format")
    is_single = field.get("singleValueField", True) is True
    number = _null_number(kind, stated, is_metric=nulls is _NULLS_OF_METRICS)
    return PinotColumn(kind, is_single, null_value, None if format_ is None else str(format_), number)


def _null_number(kind: str, stated: object, *, is_metric: bool) -> Fraction | None:
    """Returns the number that stands for NULL in a column of numbers; None: an infinity, or it is of another type."""
    if kind not in _NUMBERS:
        return None
    if stated is None:
        return Fraction(0) if is_metric else _NUMBERS[kind]
    try:
        number = Decimal(str(stated))
        # In 32 bits another number is stored than a schema says.
        held = unpack("f", pack("f", number))[0] if kind == "FLOAT" else number
        return Fraction(held) if math.isfinite(held) else None
    except (InvalidOperation, OverflowError, ValueError):
        # No number, or one that is too large for the type, of which an infinity is stored.
        return None


def require_readable(columns: Mapping[str, PinotColumn], reads: Iterable[ReadColumn]) -> None:
    """Refuses a query for another table than the one that Pinot has.

    Raises:
        EngineRefused: there is no such column, one row has several values in it, it has another type or another value
            in the place of NULL than the policy says, holds days or timestamps in another form than their number since
            1970, or is compared with integers that it cannot hold.
    """
    for read in reads:
        if read.name not in columns:
            raise EngineRefused(f"Pinot's table has no column {read.name}")
        fault = next(_faults(read, columns[read.name]), None)
        if fault is not None:
            raise EngineRefused(f"column {read.name}: {fault}")


def require_summable(columns: Mapping[str, PinotColumn], sums: Iterable[ReadValue]) -> None:
    """Refuses a query that sums other columns than Pinot has, as `require_readable` does for those it reads.

    Raises:
        EngineRefused: there is no such column, one row has several values in it, or it has another type or another
            number in the place of NULL than the policy says.
    """
    for value in sums:
        if value.name not in columns:
            raise EngineRefused(f"Pinot's table has no column {value.name}")
        held = columns[value.name]
        if not held.is_single or held.type not in SUMMED_TYPES[value.type]:
            raise EngineRefused(
                f"column {value.name}: expected one {value.type.value} in each row, and Pinot holds {held.type}"
            )
        if value.type is ValueType.DATE:
            require_readable(columns, [ReadColumn(value.name, ColumnType.DATE, None)])
        elif held.null_number != value.null_value:
            raise EngineRefused(
                f"column {value.name}: Pinot stores another number than the policy's null_value where a value is "
                "missing"
            )


def _faults(read: ReadColumn, held: PinotColumn) -> Iterator[str]:
    if not held.is_single:
        yield "one row has several values in it (singleValueField: false), and would count in several elements"
    if held.type not in PINOT_TYPES[read.held_as or ColumnType.STRING]:
        yield f"Pinot holds {held.type}, {_policy_type(read)}"
    if read.type is ColumnType.DATE and held.format is not None and not _DAYS.fullmatch(held.format):
        yield f"Pinot holds it as {held.format}, and a date is the number of days since 1970 (EPOCH|DAYS)"
    if read.time_unit is not None and not _counts(read.time_unit, held):
        yield f"Pinot holds it as {held.format}, {_policy_type(read)}"
    if not _is_null(read, held):
        yield f"Pinot stores {_text(held)} where a value is missing, {_policy_null(read)}"
    if held.type == "INT" and any(
        not _INT_MINIMUM <= number <= _INT_MAXIMUM for number in read.numbers or ()
    ):
        yield "Pinot holds INT, and the question compares it with a number of more than 32 bits"


def _counts(unit: TimeUnit, held: PinotColumn) -> bool:
    """Returns whether the schema says nothing else than that the column's integers count this unit since 1970."""
    epoch = re.compile(_EPOCH.format(unit=unit.name), re.IGNORECASE)
    return held.format is None or epoch.fullmatch(held.format) is not None


def _is_null(read: ReadColumn, held: PinotColumn) -> bool:
    if read.null_value is None:
        # Nothing tells a missing truth value. Values outside the range of days are left out by every query.
        return (
            isinstance(held.null_value, bool)
            or not isinstance(held.null_value, int)
            or not FIRST_DAY <= held.null_value <= LAST_DAY
        )
    return held.null_value == read.null_value


def _policy_type(read: ReadColumn) -> str:
    if read.type is None:
        return "and the policy does not: list the member column there, with its type and null_value"
    return f"and the policy says {read.declared}"


def _text(held: PinotColumn) -> str:
    value = held.null_value
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _policy_null(read: ReadColumn) -> str:
    if read.type is None:
        return "and the policy does not say so: list the member column there, with its type and null_value"
    if read.null_value is None:
        return "which is a day, and the policy states no null_value"
    return f"and the policy's null_value is {read.null_value!r}"
