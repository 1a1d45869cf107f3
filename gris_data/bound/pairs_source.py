"""The rows that a pairs copy is made of: those with a member, an element and a time.

What a row lacks decides whether raw questions count it, so it is left out here by the same conditions: days of the
years 1 to 9999, timestamps that every engine holds, texts that an answer can hold. A text with a NUL character is left
out as well: Pinot cuts it there, and two elements of a member would become one that counts twice.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb

from dp_service.queries.filters import INT64_MINIMUM, MAXIMUM_TEXT_LENGTH
from dp_service.queries.pairs_manifest import OWN_COLUMNS, LeftOut
from dp_service.queries.times import start_of_day
from dp_service.terms import ColumnType
from gris_data.bound.engine import CopyEngine
from gris_data.bound.local_times import first_day, is_asked
from gris_data.bound.source import Columns, require_no_odd_texts
from gris_data.dialects import DataDialect, is_day
from gris_data.errors import InputError
from gris_data.names import require_table_name
from pinot_connector.engines.bounded_copy import states_bound
from pinot_connector.engines.parquet import ROW_NUMBER

GIVEN = "gris_given"
"""The view of the input's rows, those of periods that are not read excepted."""
SEEN = "gris_seen"
"""The table of the input's pairs, if members' first attributes are to be found."""
FRESH = "gris_fresh"
"""The table of the input's pairs, each with the number of its first row; every member has one value of an attribute."""
PRESENT = "gris_present"
"""The view of the rows that a copy has already."""
FIRST_ROW = "first_row"
FIRST_TIME = "first_time"
"""When a member was first seen with an element and attributes, in `SEEN`."""
_BOUNDED = (
    "it is a bounded copy, as gris bound makes it, and may lack rows of its table: expected the table itself, "
    "for which the pairs copy will answer"
)
# What the tool's own tables call their columns.
RESERVED = (
    *OWN_COLUMNS,
    FIRST_ROW,
    FIRST_TIME,
    ROW_NUMBER,
    "last_period",
    "digest",
    "first_number",
    "second_number",
    "is_new",
)

_NULL_TEXT = "null"


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

    def __post_init__(self) -> None:
        """Raise InputError for a table that no policy can name."""
        require_table_name(self.table)


@dataclass(frozen=True)
class Conditions:
    """SQL of a row of `given`: whether it has a member, a time and an element, is of a closed period, and which one."""

    member: str
    time: str
    element: str
    closed: str
    first_day: str

    @property
    def whole(self) -> str:
        """The condition that a row lacks nothing."""
        return f"{self.member} AND {self.time} AND {self.element}"


@dataclass(frozen=True)
class Counts:
    """How many rows the input has, how many of them lack something, and how many are of periods that are not closed."""

    rows: int
    left_out: LeftOut
    of_open_periods: int


def require_unbounded(source: Path) -> None:
    """Raise InputError if files of this machine say that they are a bounded copy; others are not looked at."""
    with suppress(duckdb.Error), duckdb.connect() as connection:
        # What cannot be read is refused by who reads it.
        if source.exists() and states_bound(connection, source):
            raise InputError(_BOUNDED)


def since_day(
    dialect: DataDialect, types: Mapping[str, str], time: str, columns: Columns, since: datetime.date | None
) -> str:
    """Write the condition that a row is not before a day, as it can be compared with what a file says of its parts.

    Rows without a time meet it: they are of no period, so every run counts them.
    """
    kind = types.get(columns.period)
    if since is None or (kind != dialect.day and kind not in dialect.timestamps):
        # What is of another type is refused before a row is read.
        return "true"
    start = dialect.of_questions.day(since)
    if kind != dialect.day:
        midnight = start_of_day(since, columns.zone or "UTC").astimezone(datetime.UTC)
        start = f"CAST({dialect.of_questions.timestamp(midnight)} AS {kind})"
    return f"({time} >= {start} OR {time} IS NULL)"


def check_columns(
    dialect: DataDialect, types: Mapping[str, str], columns: Columns, attributes: tuple[str, ...]
) -> None:
    """Raise InputError if a column is two things, is called as one of the tool's own, or cannot be an attribute."""
    named = (*columns.needed, *attributes)
    if len({name.casefold() for name in named}) < len(named):
        raise InputError("member, elements, period and attributes must be different columns")
    for name in named:
        if name.casefold() in RESERVED:
            raise InputError(f"a column must not be called {name}: rename it")
    for name in attributes:
        if name not in types:
            raise InputError(f"there is no column {name}", "attributes")
        if types[name] not in dialect.elements:
            raise InputError(f"column {name}: expected texts, integers, truth values or days", "attributes")


def null_member(dialect: DataDialect, kind: str, stated: str | None) -> str | int | None:
    """Return what stands for no member: what Pinot stores there, unless something else is stated.

    Raises:
        InputError: What is stated is no value of that type.
    """
    if kind == dialect.text:
        return _NULL_TEXT if stated is None else stated
    if kind == dialect.uuid or dialect.elements.get(kind) in (ColumnType.DATE, ColumnType.BOOL):
        if stated is not None:
            raise InputError(f"expected none for a member column of type {kind}", "null_member")
        return None
    try:
        return INT64_MINIMUM if stated is None else int(stated)
    except ValueError:
        raise InputError("expected an integer, as the members are", "null_member") from None


def conditions_of(
    dialect: DataDialect, types: Mapping[str, str], asked: PairsCopyRequest, missing: str | int | None
) -> Conditions:
    """Return the conditions for rows of a table whose columns have these types; `missing` stands for no member."""
    columns = asked.columns
    member, time = f"given.{dialect.quoted(columns.member)}", f"given.{dialect.quoted(columns.period)}"
    is_member = f"{member} IS NOT NULL"
    if isinstance(missing, str):
        is_member += f" AND {member} <> {dialect.of_questions.text(missing)}"
    elif missing is not None and abs(missing) <= dialect.largest_integer:
        is_member += f" AND {member} <> {missing}"
    is_time = is_day(time) if types[columns.period] == dialect.day else is_asked(dialect, dialect.time(time))
    is_time = f"coalesce({is_time}, false)"
    first = first_day(dialect, columns)
    is_closed = f"{first} < {dialect.of_questions.day(asked.until)}"
    parts = [part for name in columns.elements for part in _of_element(dialect, name, types[name])]
    return Conditions(
        member=f"({is_member})",
        time=is_time,
        element=f"({' AND '.join(parts)})",
        # Only what has a time has a period: others could be beyond what the calendar knows.
        closed=f"(CASE WHEN {is_time} THEN {is_closed} ELSE false END)",
        first_day=first,
    )


def _of_element(dialect: DataDialect, column: str, kind: str) -> Iterable[str]:
    name = f"given.{dialect.quoted(column)}"
    yield f"{name} IS NOT NULL"
    if kind == dialect.text:
        length = dialect.java_length(name)
        yield f"(length({name}) <= {MAXIMUM_TEXT_LENGTH // 2} OR {length} <= {MAXIMUM_TEXT_LENGTH})"
        yield f"NOT contains({name}, chr(0))"


def counted(engine: CopyEngine, conditions: Conditions, odd: Mapping[str, str]) -> Counts:
    """Count the rows of `GIVEN` by what they lack first.

    Raises:
        InputError: A row meets one of the conditions that a column holds a text which is not UTF-8.
    """
    member, time, element = conditions.member, conditions.time, conditions.element
    lacking = (
        f"NOT {member}",
        f"{member} AND NOT {time}",
        f"{member} AND {time} AND NOT {element}",
        f"{conditions.whole} AND NOT {conditions.closed}",
        *odd.values(),
    )
    counts = ", ".join(f"count(*) FILTER (WHERE {each})" for each in lacking)
    query = f"SELECT count(*), {counts} FROM {GIVEN} AS given"  # noqa: S608 - names are quoted
    rows, members, times, elements, is_open, *rest = engine.row(query)
    require_no_odd_texts(dict(zip(odd, rest, strict=True)))
    return Counts(rows, LeftOut(members, times, elements), is_open)


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
                f"on {midnight.date()} clocks of {columns.zone} were set back over midnight: it came twice",
                "zone",
            )
