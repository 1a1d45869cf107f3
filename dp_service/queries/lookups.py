"""The file of a lookup: a public function from the values of one column, its keys, to texts.

It is CSV in UTF-8: a first line with the names of the key's column and of the looked-up one, and then one line for each
key. A policy names it with the SHA-256 of its bytes, so another file is another policy. What it says is public: it was
not found in the data that questions are about.

Reading it is pure; `policy_lookups` opens it.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import re
from collections.abc import Iterator

from dp_service.queries.filters import FORBIDDEN_CHARACTER, INT64_MAXIMUM, INT64_MINIMUM, Value
from dp_service.terms import ColumnType

LARGEST_LOOKUP_BYTES = 512 * 1024
"""How long a file may be: a query for each engine repeats its keys several times, and all fit into one message."""
MAXIMUM_LOOKUP_ENTRIES = 10_000
MAXIMUM_LOOKED_UP_TEXT = 512
"""How long its texts may be: Pinot cuts longer ones when it stores them, and they would not be found."""
KEY_TYPES = (ColumnType.STRING, ColumnType.INT64, ColumnType.BOOL, ColumnType.DATE)

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EXPECTED = {
    ColumnType.STRING: f"a text of at most {MAXIMUM_LOOKED_UP_TEXT} characters, without NUL",
    ColumnType.INT64: "a whole number of 64 bits, such as 42 or -7",
    ColumnType.BOOL: "true or false",
    ColumnType.DATE: "a day as YYYY-MM-DD",
}

Entries = tuple[tuple[Value, str], ...]


class LookupFileError(ValueError):
    """The content is not that of a lookup; the message names the line and what was expected, and repeats no value."""


def hash_of(content: bytes) -> str:
    """Return the name by which a policy pins the content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def read_lookup(content: bytes, *, key: str, kind: ColumnType, column: str) -> Entries:
    """Return the keys, each with its text, ascending by key.

    Args:
        content: The content of the file.
        key: The name of the key's column.
        kind: The type of the key's column, one of `KEY_TYPES`.
        column: The name of the looked-up column.

    Raises:
        LookupFileError: The content is no such file, or gives a key twice.
    """
    if len(content) > LARGEST_LOOKUP_BYTES:
        raise LookupFileError(f"expected at most {LARGEST_LOOKUP_BYTES} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise LookupFileError("expected a text in UTF-8") from None
    found: dict[Value, str] = {}
    lines: dict[Value, int] = {}
    for line, value, shown in _lines(text, key, kind, column):
        if value in found:
            raise LookupFileError(
                f"line {line}: expected each key once; line {lines[value]} has this one, too"
            )
        found[value], lines[value] = shown, line
    if not found:
        raise LookupFileError("expected at least one line after the names of the columns")
    if len(found) > MAXIMUM_LOOKUP_ENTRIES:
        raise LookupFileError(f"expected at most {MAXIMUM_LOOKUP_ENTRIES} keys, got {len(found)}")
    return tuple(sorted(found.items()))


def _lines(text: str, key: str, kind: ColumnType, column: str) -> Iterator[tuple[int, Value, str]]:
    """Yield the number of each line, its key and its text."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if next(reader, None) != [key, column]:
            raise LookupFileError(
                f"line 1: expected the names of two columns, {key},{column}, without a byte order mark"
            )
        for fields in reader:
            yield (reader.line_num, *_entry(fields, kind, reader.line_num, key, column))
    except csv.Error:
        raise LookupFileError(f"line {reader.line_num}: expected CSV with commas and double quotes") from None


def _entry(fields: list[str], kind: ColumnType, line: int, key: str, column: str) -> tuple[Value, str]:
    if len(fields) != 2:
        raise LookupFileError(f"line {line}: expected two fields, {key} and {column}, got {len(fields)}")
    value, shown = _value(fields[0], kind), _text(fields[1])
    if value is None:
        raise LookupFileError(f"line {line}: {key}: expected {_EXPECTED[kind]}")
    if not shown:
        raise LookupFileError(
            f"line {line}: {column}: expected {_EXPECTED[ColumnType.STRING]}, and not empty"
        )
    return value, shown


def _value(text: str, kind: ColumnType) -> Value | None:
    """Return the value that a text denotes; each value has one text, so that no key is hidden by its spelling."""
    match kind:
        case ColumnType.INT64 if _INTEGER.fullmatch(text) and text != "-0":
            number = int(text)
            return number if INT64_MINIMUM <= number <= INT64_MAXIMUM else None
        case ColumnType.BOOL:
            return {"true": True, "false": False}.get(text)
        case ColumnType.DATE if _DATE.fullmatch(text):
            try:
                return datetime.date.fromisoformat(text)
            except ValueError:
                return None
        case ColumnType.STRING:
            return _text(text)
        case _:
            return None


def _text(text: str) -> str | None:
    is_sound = len(text) <= MAXIMUM_LOOKED_UP_TEXT and not FORBIDDEN_CHARACTER.search(text)
    return text if is_sound else None
