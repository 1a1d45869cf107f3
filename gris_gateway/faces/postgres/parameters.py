"""Parameters, `$1` and so on: which types they have, and the statement in which their values stand.

A value becomes one literal, whatever it holds (`pinot_connector.dbapi.parameters` argues why): parameters are known
only outside of what quotes and comments hold, and dp_service knows the same quotes and comments.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gris_gateway.faces.postgres.errors import SYNTAX, TOO_MUCH, VALUE, PostgresError, error_of
from gris_gateway.faces.postgres.texts import Part, Text
from gris_gateway.faces.postgres.types import ARRAYS, OID_OF, TEXTS, Oid, forms_of, read
from pinot_connector.catalog import Catalog, ColumnEntry
from pinot_connector.dbapi.parameters import literal
from pinot_connector.dbapi.types import KIND_OF_COLUMN
from pinot_connector.errors import InvalidQuestion

_OID_OF_CAST = {
    **dict.fromkeys(("SMALLINT", "INT", "INT2", "INT4", "INT8", "INTEGER", "BIGINT"), Oid.INT8),
    **dict.fromkeys(("BOOL", "BOOLEAN"), Oid.BOOL),
    "DATE": Oid.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ"), Oid.TIMESTAMPTZ),
}
_CASTS = {
    **dict.fromkeys((Oid.INT2, Oid.INT4, Oid.INT8), "::bigint[]"),
    Oid.BOOL: "::boolean[]",
}
_ARRAY_OF = {each: Oid(array) for array, each in ARRAYS.items()}
_OID_OF_CAST |= {f"{cast}[]": _ARRAY_OF[oid] for cast, oid in _OID_OF_CAST.items()}
_WHOLE_NUMBERS = ("LIMIT", "OFFSET", "FETCH", "TOP")
# What stands between a column and the parameter that it is compared with.
_QUANTIFIERS = frozenset(("ANY", "SOME", "ALL"))
_BETWEEN = frozenset(("IN", "BETWEEN", "AND", "NOT", "LIKE", "ILIKE", "SYMMETRIC")) | _QUANTIFIERS
# As drivers write a day that they take for an instant.
_DAY_WITH_ZONE = re.compile(r"(\d{4}-\d\d-\d\d) ?[+-]\d\d(?::?\d\d)?")
_MOST_DIGITS = 40
MOST_PARAMETERS = 32_767
_FIRST_EXAMPLE = datetime.date(2000, 1, 1)


@dataclass(frozen=True)
class Parameter:
    """What may stand for a parameter.

    Attributes:
        oid: Its type.
        example: A value of it, for a statement of which only the columns are asked.
    """

    oid: int
    example: object


def parameters_of(text: Text, stated: Sequence[int], catalog: Catalog) -> tuple[Parameter, ...]:
    """Return a statement's parameters, with the types that the client states, else those of the columns beside them."""
    columns = {each.name: each for table in catalog.tables for each in table.columns}
    columns = {name.casefold(): each for name, each in columns.items()} | columns
    words = text.words
    found: dict[int, ColumnEntry | Oid | None] = {}
    casts: dict[int, Oid] = {}
    arrays: set[int] = set()
    before: ColumnEntry | Oid | None = None
    for place, word in enumerate(words):
        if number := word.parameter:
            found[number] = before
            # It stands alone in ANY or ALL.
            if place > 1 and words[place - 1].written == "(" and words[place - 2].said in _QUANTIFIERS:
                arrays.add(number)
            casts |= {number: _OID_OF_CAST[word.cast]} if word.cast in _OID_OF_CAST else {}
        elif word.kind == "word" and word.said in _WHOLE_NUMBERS:
            before = Oid.INT8
        elif (column := _column(word, columns)) is not None:
            before = column
        elif word.kind == "word" and word.said not in _BETWEEN:
            before = None
    if max((len(stated), *found)) > MOST_PARAMETERS:
        raise PostgresError(TOO_MUCH, f"expected at most {MOST_PARAMETERS:,} parameters")
    parameters = []
    for number in range(1, max((len(stated), *found)) + 1):
        beside = found.get(number)
        oid = stated[number - 1] if number <= len(stated) else Oid.UNKNOWN
        if oid in TEXTS:
            # A driver that states no type, or text for everything, has a cast beside it.
            oid = casts.get(number, oid)
        if oid == Oid.UNKNOWN:
            oid = _ARRAY_OF[_oid_of(beside)] if number in arrays else _oid_of(beside)
        example = _example(ARRAYS.get(oid, oid), number, beside)
        parameters.append(Parameter(oid, (example,) if oid in ARRAYS else example))
    return tuple(parameters)


def _oid_of(beside: ColumnEntry | Oid | None) -> Oid:
    if isinstance(beside, Oid):
        return beside
    return OID_OF[KIND_OF_COLUMN[beside.type]] if isinstance(beside, ColumnEntry) else Oid.TEXT


def _column(word: Part, columns: Mapping[str, ColumnEntry]) -> ColumnEntry | None:
    if word.kind == "name":
        return columns.get(word.said)
    return columns.get(word.written.casefold()) if word.kind == "word" else None


def _example(oid: int, number: int, beside: ColumnEntry | Oid | None) -> object:
    if isinstance(beside, ColumnEntry) and beside.domain:
        return beside.domain[0]
    match oid:
        case Oid.INT2 | Oid.INT4 | Oid.INT8 | Oid.FLOAT4 | Oid.FLOAT8 | Oid.NUMERIC:
            return number
        case Oid.BOOL:
            return True
        case Oid.DATE | Oid.TIMESTAMP | Oid.TIMESTAMPTZ:
            return _FIRST_EXAMPLE + datetime.timedelta(days=number)
        case _:
            return "a"


@dataclass(frozen=True)
class _ArrayText:
    """An array as PostgreSQL writes it, and the cast behind it that says of what it is."""

    text: str
    cast: str


def values_of(
    sent: Sequence[bytes | None], formats: Sequence[int], types: Sequence[int]
) -> tuple[object, ...]:
    """Return the values that a client sends.

    Args:
        sent: What it sends of each.
        formats: In which form: one for each, one for all, or none for text; 1 is binary.
        types: Their types.

    Raises:
        PostgresError: There are others than the statement has, or one is no value of its type.
    """
    if len(sent) != len(types):
        raise PostgresError(VALUE, f"expected {len(types)} parameters, got {len(sent)}")
    values = []
    forms = forms_of(formats, len(sent))
    for place, (value, oid, form) in enumerate(zip(sent, types, forms, strict=True), 1):
        field = f"${place}"
        if value is None:
            raise PostgresError(VALUE, f"{field}: expected a value: write IS NULL for NULL")
        found = read(field, value, _sent_as(oid, form), binary=form == 1)
        is_text = oid in ARRAYS and isinstance(found, str)
        values.append(
            _ArrayText(found, _CASTS.get(ARRAYS[oid], "")) if is_text else _fitting(field, found, oid)
        )
    return tuple(values)


def _sent_as(oid: int, form: int) -> int:
    """Return how a value is read: what was sent as text for a column of times is a text, in one of many forms."""
    return Oid.TEXT if form == 0 and oid in (Oid.DATE, Oid.TIMESTAMP, Oid.TIMESTAMPTZ) else oid


def _fitting(field: str, value: Any, oid: int) -> Any:
    if isinstance(value, str) and oid not in TEXTS:
        value = _time(field, value)
    if oid == Oid.DATE and isinstance(value, datetime.datetime):
        # As PostgreSQL reads a day.
        return value.date()
    if isinstance(value, float):
        return Decimal(repr(value))
    return value


def _time(field: str, text: str) -> datetime.date:
    day = _DAY_WITH_ZONE.fullmatch(text.strip())
    try:
        given = datetime.datetime.fromisoformat(day[1] if day else text.strip())
    except ValueError:
        raise PostgresError(VALUE, f"{field}: expected a day or a timestamp, as 2026-01-31") from None
    return given


def with_values(text: Text, values: Sequence[object]) -> str:
    """Return a statement in which values stand for its parameters; an array is a tuple, or one of its types and a text.

    Raises:
        PostgresError: One has no value, or is none that a question can hold.
    """
    return "".join(_piece(each, values) for each in text.parts).rstrip()


def _piece(part: Part, values: Sequence[object]) -> str:
    """Return a part as it is asked; a cast of a parameter says what its type says."""
    if not (number := part.parameter):
        return part.written
    if number > len(values):
        raise PostgresError(SYNTAX, f"there is no parameter ${number}")
    try:
        return f" {_literal(f'${number}', values[number - 1])} "
    except InvalidQuestion as error:
        raise error_of(InvalidQuestion("parameters", str(error))) from None


def _literal(field: str, value: object) -> str:
    if isinstance(value, _ArrayText):
        return f"{literal(field, value.text)}{value.cast}"
    if isinstance(value, tuple):
        return f"ARRAY[{', '.join(_literal(field, each) for each in value)}]"
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and abs(value.adjusted()) <= _MOST_DIGITS
        and value % 1
    ):
        return f"{value:f}"
    return literal(field, value)
