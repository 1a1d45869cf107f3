"""What DuckDB and Spark write differently where an owner's data are copied or published.

A statement is written once, with a dialect's words where the engines' own differ, and run by both. What questions
need as well is in `dp_service.queries.render.dialects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dp_service.queries.render.dialects import DIALECTS, Dialect
from dp_service.terms import ColumnType

_FIRST_DAY, _LAST_DAY = "0001-01-01", "9999-12-31"


@dataclass(frozen=True)
class DataDialect:
    """One engine's SQL.

    Attributes:
        of_questions: How questions write names, literals and days.
        text: What texts are called as a type.
        day: What days are called as a type.
        timestamps: What types of timestamps are called.
        elements: The types of columns that can be elements, parts of them, or attributes, and what a policy calls them.
        members: The types of columns that can be members.
        time: Writes a column of days or timestamps without nanoseconds.
        microseconds: Writes a timestamp as microseconds since 1970.
        timestamp: Writes microseconds since 1970 as a timestamp.
        array: Writes an array of integers.
        item: Writes an item of an array by its place, from 0 on.
        divided: Writes the quotient of two integers, neither negative, rounded down.
    """

    of_questions: Dialect
    text: str
    day: str
    timestamps: frozenset[str]
    elements: Mapping[str, ColumnType]
    members: frozenset[str]
    time: Callable[[str], str]
    microseconds: Callable[[str], str]
    timestamp: Callable[[str], str]
    array: Callable[[Iterable[int]], str]
    item: Callable[[str, str], str]
    divided: Callable[[str, int], str]

    def quoted(self, name: str) -> str:
        """Write the name of a column, whatever characters it has."""
        quote = self.of_questions.quote
        return f"{quote}{name.replace(quote, 2 * quote)}{quote}"


def is_day(expression: str) -> str:
    """Write the condition that a day is one of the years 1 to 9999, which all engines write alike."""
    return f"{expression} BETWEEN DATE '{_FIRST_DAY}' AND DATE '{_LAST_DAY}'"


NANOSECONDS = "TIMESTAMP_NS"
_DUCKDB_ELEMENTS = {
    "VARCHAR": ColumnType.STRING,
    "BOOLEAN": ColumnType.BOOL,
    "DATE": ColumnType.DATE,
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), ColumnType.INT64
    ),
}
_SPARK_ELEMENTS = {
    "string": ColumnType.STRING,
    "boolean": ColumnType.BOOL,
    "date": ColumnType.DATE,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ColumnType.INT64),
}
READ_TIME = "gris_read_time"
"""DuckDB's macro for a column without nanoseconds; what it does depends on the column's type."""

DUCKDB = DataDialect(
    of_questions=DIALECTS["duckdb"],
    text="VARCHAR",
    day="DATE",
    timestamps=frozenset(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", NANOSECONDS, "TIMESTAMP WITH TIME ZONE")
    ),
    elements=_DUCKDB_ELEMENTS,
    members=frozenset((*_DUCKDB_ELEMENTS, "UBIGINT", "HUGEINT", "UUID")),
    time=lambda column: f"{READ_TIME}({column})",
    microseconds=lambda time: f"epoch_us({time})",
    timestamp=lambda number: f"make_timestamp({number})",
    array=lambda numbers: f"[{', '.join(map(str, numbers))}]",
    item=lambda array, place: f"list_extract({array}, {place} + 1)",
    divided=lambda number, by: f"{number} // {by}",
)

SPARK = DataDialect(
    of_questions=DIALECTS["spark"],
    text="string",
    day="date",
    timestamps=frozenset(("timestamp", "timestamp_ntz")),
    elements=_SPARK_ELEMENTS,
    members=frozenset(_SPARK_ELEMENTS),
    time=str,
    microseconds=lambda time: f"unix_micros({time})",
    timestamp=lambda number: f"timestamp_micros({number})",
    array=lambda numbers: f"array({', '.join(map(str, numbers))})",
    item=lambda array, place: f"get({array}, CAST({place} AS INT))",
    divided=lambda number, by: f"{number} div {by}",
)
