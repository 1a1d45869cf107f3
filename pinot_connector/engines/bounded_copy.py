"""What a bounded copy says of itself: which bound it was made for, of which table, and by which rule.

`gris bound` writes it into the footer of its Parquet files. It is compared with the policy when such a file is
loaded, before any question relies on the bound. It is a statement of the owner's tool and no proof: nobody counts
again how many elements a member has. What can be seen is seen, though. The columns must be there, and the file must
have as many rows as it says, because a library that joins copies with other rows may carry a footer over to what is
no copy any more.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TypeGuard

import duckdb

from pinot_connector.engines.parquet import columns_of
from pinot_connector.engines.parquet_files import is_hidden

METADATA_KEY = "gris_bound"
"""The key of the file's metadata. Its value is a JSON object with the keys that `CopyStatement` describes."""

RULE = "weights/v1"
"""How much a member counts in each of its elements; only such copies are known to be bounded."""

WEIGHT_COLUMN = "weight"
"""The column of a copy that says so, in hundredths."""

ONE_PERIOD = "all"
"""Stands for the period of a copy that is one period as a whole."""

CALENDAR_PERIOD = re.compile(r"(?:day|week|month)\((?P<column>[A-Za-z_][A-Za-z0-9_]*)(?:, [^()]+)?\)")
"""Stands for periods of the calendar: `month(day)`, or `month(seen, Europe/Berlin)` for timestamps in a zone."""

_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Where Spark writes its schema. It can write no other key, so its copies state their bound at the member's column."""


class BoundedCopyError(ValueError):
    """A file is no bounded copy, or no longer the one that was made; the text says where, and repeats no row."""


@dataclass(frozen=True)
class CopyStatement:
    """What is stated in a bounded copy, under the JSON keys in quotes.

    Attributes:
        table: "table", the table's name in the policy.
        member: "member", the column of members.
        elements: "elements", the columns that make up an element together.
        typical: "typical", how many elements of a member count in full, in each period.
        period: "period", the column whose value is a row's period, `ONE_PERIOD` if all rows are one period, or
            the periods of the calendar into which a column's days fall (`CALENDAR_PERIOD`).
        rule: "rule", the name of the rule that gives weights.
        rows: "rows", how many rows the copy has, over all its files.
    """

    table: str
    member: str
    elements: tuple[str, ...]
    typical: int
    period: str
    rule: str
    rows: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the copy has."""
        of_calendar = CALENDAR_PERIOD.fullmatch(self.period)
        period = of_calendar["column"] if of_calendar else self.period
        periods = () if self.period == ONE_PERIOD else (period,)
        return (self.member, *self.elements, *periods, WEIGHT_COLUMN)

    def to_json(self) -> str:
        """Return the value of the file's metadata."""
        return json.dumps(
            {
                "table": self.table,
                "member": self.member,
                "elements": list(self.elements),
                "typical": self.typical,
                "period": self.period,
                "rule": self.rule,
                "rows": self.rows,
            },
            ensure_ascii=False,
        )


def read_bounded_copy(path: Path) -> CopyStatement:
    """Return what a bounded copy states, from the footers of its files; no row is read.

    Args:
        path: A Parquet file, or a directory of them that belong together, as Spark writes it.

    Raises:
        BoundedCopyError: There is no such file, it cannot be read, it states nothing or something else than a bounded
            copy would, its files do not state the same, a column is missing, or rows are missing or too many.
    """
    with duckdb.connect() as connection:
        files = _files(path)
        stated = {_stated(connection, file) for file in files}
        rows = sum(_row_count(connection, file) for file in files)
    if len(stated) != 1:
        raise BoundedCopyError(f"{path} holds files of different bounded copies")
    (copy,) = stated
    if rows != copy.rows:
        raise BoundedCopyError(
            f"{path} states {copy.rows} rows and has {rows}: it is not the copy that was made"
        )
    return copy


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = [each for each in sorted(path.rglob("*")) if each.is_file() and not is_hidden(each, path)]
    if not found or any(each.suffix != ".parquet" for each in found):
        raise BoundedCopyError(f"{path} must hold Parquet files and nothing else")
    return found


def _stated(connection: duckdb.DuckDBPyConnection, file: Path) -> CopyStatement:
    if not file.is_file():
        raise BoundedCopyError(f"there is no file {file}")
    try:
        values = _values(connection, file)
        columns = columns_of(connection, file)
    except duckdb.Error:
        # What DuckDB says may quote the file's content.
        values, columns = None, {}
    if values is None:
        raise BoundedCopyError(f"{file} cannot be read as Parquet")
    if len(values) != 1:
        raise BoundedCopyError(f"{file} states no bound: it was not made by gris bound")
    copy = _decoded(values[0], file)
    for name in copy.columns:
        if name not in columns:
            raise BoundedCopyError(f"{file} states a column {name}, which it does not have")
    return copy


def _values(connection: duckdb.DuckDBPyConnection, file: Path) -> list[bytes]:
    """Return all statements of a file, wherever they are."""
    # A name is a pattern for DuckDB, also here.
    found = connection.execute(
        "SELECT key, value FROM parquet_kv_metadata(?)", [escape(str(file))]
    ).fetchall()
    own = [bytes(value) for key, value in found if bytes(key) == METADATA_KEY.encode()]
    schemas = [bytes(value) for key, value in found if bytes(key) == _SPARK_SCHEMA.encode()]
    return own + [stated for schema in schemas for stated in _at_columns(schema)]


def _at_columns(schema: bytes) -> list[bytes]:
    """Return what Spark's schema states at any column; nothing if it is no such schema."""
    try:
        fields = json.loads(schema)["fields"]
        stated = [field["metadata"][METADATA_KEY] for field in fields if METADATA_KEY in field["metadata"]]
        return [each.encode() for each in stated]
    except (ValueError, LookupError, TypeError, AttributeError):
        return []


def _row_count(connection: duckdb.DuckDBPyConnection, file: Path) -> int:
    found = connection.execute(
        "SELECT num_rows FROM parquet_file_metadata(?)", [escape(str(file))]
    ).fetchone()
    return found[0] if found else 0


def _decoded(value: bytes, file: Path) -> CopyStatement:
    try:
        stated = json.loads(value)
    except ValueError:
        stated = None
    copy = _checked(stated) if isinstance(stated, dict) else None
    if copy is None:
        raise BoundedCopyError(
            f"{file} states its bound in another form than this version of gris bound: make the copy again"
        )
    return copy


def _checked(stated: dict[str, object]) -> CopyStatement | None:
    """Return the statement, or None if a key is missing or has another type."""
    texts = [stated.get(key) for key in ("table", "member", "period", "rule")]
    numbers, elements = [stated.get(key) for key in ("typical", "rows")], stated.get("elements")
    if not (_are_texts(texts) and _are_texts(elements) and elements and _are_counts(numbers) and numbers[0]):
        return None
    table, member, period, rule = texts
    typical, rows = numbers
    return CopyStatement(table, member, tuple(elements), typical, period, rule, rows)


def _are_texts(values: object) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(each, str) and each for each in values)


def _are_counts(values: list[object]) -> TypeGuard[list[int]]:
    return all(type(each) is int and each >= 0 for each in values)
