"""The rows that a pairs copy is made of: of a Parquet file, those with a member, an element and a time, each pair once.

What a row lacks decides whether raw questions count it, so it is left out here by the same conditions: days of the
years 1 to 9999, timestamps that every engine holds, texts that an answer can hold. A text with a NUL character is left
out as well: Pinot cuts it there, and two elements of a member would become one that counts twice.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb

from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.pairs_manifest import OWN_COLUMNS, PERIOD_COLUMN, LeftOut
from dp_service.queries.structured import INT64_MINIMUM, MAXIMUM_TEXT_LENGTH
from dp_service.queries.times import start_of_day
from gris_data.bound.local_times import duckdb_local_time
from gris_data.bound.source import (
    ELEMENT_TYPES,
    NANOSECONDS,
    TIMESTAMP_TYPES,
    Columns,
    in_microseconds,
    open_rows,
    without_breakable,
)
from gris_data.errors import InputError
from pinot_connector.engines.bounded_copy import states_bound
from pinot_connector.engines.parquet import ROW_NUMBER, literal, quoted

FRESH = "fresh"
"""The table of the input's pairs, with the number of the first row of each."""
PRESENT = "present"
"""The view of the rows that a copy has already."""
FIRST_TIME = "first_time"
"""When a member was first seen with an element and attributes, in `FRESH`, if first attributes are kept."""
_BOUNDED = (
    "it is a bounded copy, as gris bound --out makes it, and may lack rows of its table: expected the table itself, "
    "for which the pairs copy will answer"
)
# What the tool's own tables call their columns.
RESERVED = (
    *OWN_COLUMNS,
    FIRST_TIME,
    "first_row",
    "last_period",
    "digest",
    "first_number",
    "second_number",
    "is_new",
)

_TEXT = "VARCHAR"
_NULL_TEXT = "null"
_DAYS = "DATE '0001-01-01' AND DATE '9999-12-31'"


@dataclass(frozen=True)
class PairsCopyRequest:
    """What is to be made.

    Attributes:
        table: The name in the policy of the table that is copied.
        columns: Who is a member, what is an element, and by which column and calendar rows are put into periods.
        attributes: The columns of which every member has one value.
        null_member: What stands for no member, besides NULL; None: the default of the member column's type.
        until: The first day that is not copied yet: the beginning of a period.
        memory: How much memory DuckDB may use, as it writes sizes: 2GB.
        first_attributes: Members whose attribute changed keep the first value; else such an input is refused.
        new_only: Rows of periods that the copy holds are not read, so those that came late are not noticed.
    """

    table: str
    columns: Columns
    attributes: tuple[str, ...]
    null_member: str | None
    until: datetime.date
    memory: str = "2GB"
    first_attributes: bool = False
    new_only: bool = False


@dataclass(frozen=True)
class Opened:
    """What is known of the input, and the statement that makes the table of its pairs."""

    statement: str
    types: dict[str, str]
    null_member: str | int | None
    rows: int
    left_out: LeftOut
    rows_of_open_periods: int


@dataclass(frozen=True)
class _Conditions:
    member: str
    time: str
    element: str
    closed: str


def quoted_list(names: Iterable[str]) -> str:
    """Return names as SQL lists them."""
    return ", ".join(map(quoted, names))


def open_pairs(
    connection: duckdb.DuckDBPyConnection,
    source: Path,
    asked: PairsCopyRequest,
    held_before: datetime.date | None,
) -> Opened:
    """Check the input, count what lacks something, and return the statement for its pairs.

    Args:
        connection: Where the statement will run.
        source: The input.
        asked: What is to be made.
        held_before: The first day after what the copy holds, None: there is none yet.

    Raises:
        InputError: See `open_rows`; or an attribute cannot be one, or the input is not Parquet, or is a bounded copy.
    """
    if source.suffix.lower() != ".parquet":
        raise InputError("expected a Parquet file: the days of a CSV file are texts")
    columns, attributes, until = asked.columns, asked.attributes, asked.until
    since = held_before if asked.new_only else None
    types = open_rows(connection, source, columns, lambda types: _since(types, columns, since))
    require_unbounded(source)
    check_columns(types, columns, attributes)
    require_plain_midnights(columns, until)
    missing = null_member(types[columns.member], asked.null_member)
    conditions = _conditions(types, columns, missing, until)
    read = f"read_parquet({literal(escape(str(source)))}, hive_partitioning = false, file_row_number = true)"
    chosen = f"SELECT {_columns(types, columns)} FROM {read} AS rows"  # noqa: S608 - names are quoted
    rows = f"({chosen} WHERE {_since(types, columns, since)})"
    counts = connection.execute(
        f"SELECT count(*), {_left_out(conditions)} FROM {rows} AS given"  # noqa: S608 - names are quoted
    ).fetchone()
    if counts is None:
        raise InputError("expected a file that can be read to its end")
    held = quoted_list((columns.member, *columns.elements, *attributes))
    period = f"({_first_day(columns)} - DATE '1970-01-01')::INTEGER AS {PERIOD_COLUMN}"
    whole = f"{conditions.member} AND {conditions.time} AND {conditions.element} AND {conditions.closed}"
    first = f", min({quoted(columns.period)}) AS {FIRST_TIME}" if asked.first_attributes else ""
    statement = (
        f"CREATE TEMP TABLE {FRESH} AS SELECT {held}, {period}, min({ROW_NUMBER}) AS first_row{first} "  # noqa: S608
        f"FROM {rows} AS given WHERE {whole} GROUP BY ALL"
    )
    number, *missing_counts, still_open = counts
    return Opened(statement, types, missing, number, LeftOut(*missing_counts), still_open)


def require_unbounded(source: Path) -> None:
    """Raise InputError if files of this machine say that they are a bounded copy; others are not looked at."""
    with suppress(duckdb.Error), duckdb.connect() as connection:
        # What cannot be read is refused by who reads it.
        if source.exists() and states_bound(connection, source):
            raise InputError(_BOUNDED)


def _columns(types: dict[str, str], columns: Columns) -> str:
    """Write all columns of `rows` that can be read, with times in microseconds.

    A question compares nanoseconds as they are, and a cast would round them up, into the next period.
    """
    read = f"rows.* {without_breakable(types)}"
    if types[columns.period] != NANOSECONDS:
        return read
    time = quoted(columns.period)
    return f"{read} REPLACE ({in_microseconds(f'rows.{time}')} AS {time})"


def _since(types: dict[str, str], columns: Columns, since: datetime.date | None) -> str:
    """Write the condition that a row is not before a day, as it can be compared with what a file says of its parts.

    Rows without a time meet it: they are of no period, so every run counts them.
    """
    time, kind = f"rows.{quoted(columns.period)}", types.get(columns.period)
    if since is None or (kind != "DATE" and kind not in TIMESTAMP_TYPES):
        # What is of another type is refused before a row is read.
        return "true"
    if kind == "DATE":
        start = f"DATE '{since.isoformat()}'"
    else:
        midnight = start_of_day(since, columns.zone or "UTC").astimezone(datetime.UTC)
        start = f"TIMESTAMP '{midnight.replace(tzinfo=None).isoformat()}'"
        if kind == "TIMESTAMP WITH TIME ZONE":
            start = f"TIMESTAMPTZ '{midnight.isoformat()}'"
    return f"({time} >= {start} OR {time} IS NULL)"


def check_columns(
    types: Mapping[str, str],
    columns: Columns,
    attributes: tuple[str, ...],
    accepted: frozenset[str] = ELEMENT_TYPES,
) -> None:
    """Raise InputError if a column is two things, is called as one of the tool's own, or cannot be an attribute.

    `accepted` are the types of attributes, by the names of the engine that `types` are of.
    """
    named = (*columns.needed, *attributes)
    if len({name.casefold() for name in named}) < len(named):
        raise InputError("member, elements, period and attributes must be different columns")
    for name in named:
        if name.casefold() in RESERVED:
            raise InputError(f"a column must not be called {name}: rename it")
    for name in attributes:
        if name not in types:
            raise InputError(f"there is no column {name}")
        if types[name] not in accepted:
            raise InputError(f"column {name}: expected texts, integers, truth values or days")


def null_member(kind: str, stated: str | None) -> str | int | None:
    """Return what stands for no member: what Pinot stores there, unless something else is stated.

    Raises:
        InputError: What is stated is no value of that type, which is called by DuckDB's name.
    """
    if kind == _TEXT:
        return _NULL_TEXT if stated is None else stated
    if kind in ("DATE", "UUID", "BOOLEAN"):
        if stated is not None:
            raise InputError(f"--null-member: expected none for a member column of type {kind}")
        return None
    try:
        return INT64_MINIMUM if stated is None else int(stated)
    except ValueError:
        raise InputError("--null-member: expected an integer, as the members are") from None


def _conditions(
    types: dict[str, str], columns: Columns, null_member: str | int | None, until: datetime.date
) -> _Conditions:
    member, time = f"given.{quoted(columns.member)}", f"given.{quoted(columns.period)}"
    is_member = [f"{member} IS NOT NULL"]
    if null_member is not None:
        value = literal(null_member) if isinstance(null_member, str) else f"{null_member}::HUGEINT"
        is_member.append(f"{member} <> {value}")
    if types[columns.period] == "DATE":
        is_time = f"coalesce({time} BETWEEN {_DAYS}, false)"
    else:
        first, end = (f"TIMESTAMPTZ '{each.isoformat()}'" for each in (FIRST_TIMESTAMP, END_OF_TIMESTAMPS))
        is_time = f"coalesce({time} >= {first} AND {time} < {end}, false)"
    parts = [part for name in columns.elements for part in _of_element(f"given.{quoted(name)}", types[name])]
    return _Conditions(
        member=f"({' AND '.join(is_member)})",
        time=is_time,
        element=f"({' AND '.join(parts)})",
        closed=f"{_first_day(columns)} < DATE '{until.isoformat()}'",
    )


def _of_element(name: str, kind: str) -> Iterable[str]:
    yield f"{name} IS NOT NULL"
    if kind == _TEXT:
        yield f"(length({name}) <= {MAXIMUM_TEXT_LENGTH // 2} OR {_java_length(name)} <= {MAXIMUM_TEXT_LENGTH})"
        yield f"NOT contains({name}, chr(0))"


def _java_length(name: str) -> str:
    """Write the length of a text as Pinot measures it: what lies beyond 16 bits counts twice."""
    return f"length({name}) + length(regexp_replace({name}, '[^\\x{{10000}}-\\x{{10FFFF}}]', '', 'g'))"


def _left_out(conditions: _Conditions) -> str:
    """Write the counts of rows that lack something, each row in one of them, and of rows that are not closed yet."""
    member, time, element = conditions.member, conditions.time, conditions.element
    whole = f"{member} AND {time} AND {element}"
    return ", ".join(
        f"count(*) FILTER (WHERE coalesce({each}, false))"
        for each in (
            f"NOT {member} OR {member} IS NULL",
            f"{member} AND NOT {time}",
            f"{member} AND {time} AND ({element} IS NOT TRUE)",
            # Only what has a time has a period: others could be beyond what the calendar knows.
            f"CASE WHEN {whole} THEN NOT {conditions.closed} ELSE false END",
        )
    )


def _first_day(columns: Columns) -> str:
    """Write the first day of a row's period."""
    column = f"given.{quoted(columns.period)}"
    if columns.zone:
        column = duckdb_local_time(column, columns.zone)
    return f"date_trunc({literal(columns.calendar)}, {column})::DATE"


def require_plain_midnights(columns: Columns, until: datetime.date) -> None:
    """Raise InputError if a zone set its clocks back over a midnight since 1970: that hour belongs to two days."""
    if not columns.zone:
        return
    zone = ZoneInfo(columns.zone)
    for number in range((until - datetime.date(1970, 1, 1)).days + 1):
        midnight = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=number)
        first, second = (midnight.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
        if first is not None and second is not None and first > second:
            raise InputError(
                f"--zone: on {midnight.date()} clocks of {columns.zone} were set back over midnight: it came twice"
            )
