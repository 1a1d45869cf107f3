"""What the rows say of each column, for a draft: who holds its values, whether they are members, what they look like.

It reads raw data, for the owner alone. Nothing of it leaves but shares and counts, which a draft rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from dp_service.queries.times import TimeUnit
from dp_service.terms import ColumnType
from gris_cli.data.errors import InputError
from gris_cli.data.policy.column_types import CLOCK_UNITS, is_of_this_time
from gris_cli.data.policy.draft_names import Finding, Kind, is_amount, is_clock, is_key, words_of
from gris_cli.data.table_schema import TableColumn, TableSchema
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.parquet import quoted
from pinot_connector.errors import EngineError

ENOUGH_ROWS = 100
"""Fewer rows with a value say nothing of a column."""

MANY = 10
"""A value that so many members hold is not one member's."""

# The names of temporary tables have a space, so that they hide no table that a policy can name.
_MEMBERS, _VALUES, _COMPARED = '"all members"', '"values of a column"', '"values and members"'

# From this share of rows on, values that one member alone has make a column an identifier or free text.
_ALONE = 0.5
_YEAR = 31_556_952_000_000
# From this share on, values that are members too make a column one of other people.
_OF_MEMBERS = 0.8
# Beyond this share of the texts looked at, what they look like is what the column holds.
_LIKE = 0.8
# This share of the rows, or of different values among them, stands for all.
_NEARLY_ALL = 0.9
# Values that are members by chance reach less of the members than this share.
_REACHED = 0.85
# From so many values on that would fall between members by chance, their absence is no chance.
_MANY_GAPS = 20
# Sentences that members share are free text only if there are more different ones than this.
_MANY_TEXTS = 1000
# The names of columns whose long texts are names of things, not free text.
_TITLES = frozenset(("title", "name", "titel", "agent"))
_SOME = f"SELECT value FROM {_VALUES} ORDER BY hash(value) LIMIT 2000"  # noqa: S608 - no names of the owner's
# No more different values than this can be a public list that everybody shares.
_FEW = 50
_TITLED = "a person with a title"
_LOOKS = {
    "an address of mail": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "an IP address": re.compile(r"(\d{1,3}\.){3}\d{1,3}|(?=.*:.*:)[0-9a-fA-F:]{3,39}"),
    "a telephone number": re.compile(r"(?!\d{4}-\d\d-\d\d)(\+|\(0|0|00)[0-9][0-9 ()/.-]{6,}"),
    _TITLED: re.compile(r"(Dr|Mr|Mrs|Ms|Prof|Herr|Frau|Mme|Sr|Sra)\.? [A-Z].*"),
    "an IBAN": re.compile(r"[A-Z]{2}\d{2}[A-Z0-9 ]{11,36}"),
}


@dataclass(frozen=True)
class ColumnContents:
    """What a column holds, of the rows that have a member and a value.

    Attributes:
        rows: How many rows there are.
        values: How many different values.
        alone: The share of rows whose value one member alone has.
        shared: The share of rows whose value at least `MANY` members have.
        members: The share of values that are members too, where that is no chance; else 0.
        looks: What most values look like, such as an address of mail; empty: nothing known.
        words: How many words a text has on average.
        length: How many characters.
        clock_unit: What integers count since 1970: by their middle, if their name says that they do, or if hardly two
            members share one and nearly all are of the years 2000 to 2039.
    """

    rows: int
    values: int
    alone: float
    shared: float
    members: float = 0.0
    looks: str = ""
    words: float = 0.0
    length: float = 0.0
    clock_unit: str = ""

    @property
    def says_enough(self) -> bool:
        """Whether there are enough rows to judge a column by."""
        return self.rows >= ENOUGH_ROWS

    @property
    def is_everybodys(self) -> bool:
        """Whether a few values are each of many members: no identifier, and no text that somebody wrote."""
        return self.says_enough and self.values <= _FEW and self.shared >= _NEARLY_ALL


@contextmanager
def reading(schema: TableSchema) -> Iterator[duckdb.DuckDBPyConnection]:
    """Let the rows of a file be read as questions would read them, by the table's name.

    Raises:
        InputError: They cannot be read.
    """
    failure = InputError("expected data that can be read to their end")
    try:
        with (
            closing(DuckDBEngine({schema.name: Path(schema.location)})) as engine,
            engine.reading(
                schema.name, {each.name.casefold(): each.held for each in schema.columns}
            ) as connection,
        ):
            yield connection
            return
    except InputError:
        raise
    except EngineError as error:
        failure = InputError(str(error))
    except duckdb.Error:
        # What DuckDB says may quote the data.
        pass
    raise failure


def has_rows(connection: duckdb.DuckDBPyConnection, schema: TableSchema, member: TableColumn) -> bool:
    """Return whether a table has a row with a member."""
    sql = f"SELECT 1 FROM {quoted(schema.name)} WHERE {quoted(member.name)} IS NOT NULL LIMIT 1"  # noqa: S608
    return connection.execute(sql).fetchone() is not None


def contents_of(
    connection: duckdb.DuckDBPyConnection, schema: TableSchema, member: TableColumn
) -> dict[str, ColumnContents]:
    """Return what texts, numbers and days hold, by their columns' names; others are not looked at."""
    looked_at = (ColumnType.STRING, ColumnType.INT64, ColumnType.DATE)
    columns = [
        each
        for each in schema.columns
        if each.name != member.name and (each.type in looked_at or each.has_fractions)
    ]
    who = quoted(member.name)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_MEMBERS} AS SELECT DISTINCT {who}::VARCHAR AS text, "  # noqa: S608
        f"try_cast({who}::VARCHAR AS HUGEINT) AS number FROM {quoted(schema.name)} WHERE {who} IS NOT NULL"
    )
    return {each.name: _contents(connection, schema, member, each) for each in columns}


def finding_of_contents(column: TableColumn, held: ColumnContents | None) -> Finding | None:
    """Return why a column should be left out by what it holds, None if it says nothing of the kind."""
    if held is None or not held.says_enough:
        return None
    if held.members >= _OF_MEMBERS:
        return Finding(
            Kind.OTHER_PEOPLE, "nearly all of its values are members too: other people, or the same one again"
        )
    return None if column.has_fractions else _finding_of_values(column, held)


def _finding_of_values(column: TableColumn, held: ColumnContents) -> Finding | None:
    """Return why a column should be left out that is not of other members."""
    if held.looks:
        kind = Kind.OTHER_PEOPLE if held.looks == _TITLED else Kind.IDENTIFIER
        return Finding(kind, f"most of its values look like {held.looks}")
    if _is_written(column, held):
        return Finding(Kind.FREE_TEXT, "it has many different texts of several words, as people write them")
    if column.type is ColumnType.DATE or held.alone <= _ALONE:
        return None
    return _finding_of_few(column, held)


def _is_written(column: TableColumn, held: ColumnContents) -> bool:
    """Return whether texts are sentences, though some are repeated; titles of things are none."""
    is_many = held.words >= 3 and held.values > _MANY_TEXTS and held.alone <= _ALONE
    return column.type is ColumnType.STRING and is_many and _TITLES.isdisjoint(words_of(column.name))


def _finding_of_few(column: TableColumn, held: ColumnContents) -> Finding | None:
    """Return what values are of which one member alone has most."""
    if column.type is ColumnType.INT64:
        is_of_row = held.values > _NEARLY_ALL * held.rows or is_key(column.name)
        return Finding(Kind.IDENTIFIER, _OF_ONE) if is_of_row else None
    if held.words >= 3 or held.length > 60:
        return Finding(
            Kind.FREE_TEXT,
            "most of its texts are sentences that one member alone has: nothing of it could be shown",
        )
    return Finding(Kind.IDENTIFIER, _OF_ONE)


_OF_ONE = "one member alone has most of its values: nothing could be shown, and every question costs"


def is_measured(column: TableColumn, held: ColumnContents | None) -> bool:
    """Return whether integers are so many different ones that they are asked about by sums and ranges alone."""
    return (
        column.type is ColumnType.INT64
        and held is not None
        and held.says_enough
        and not is_key(column.name)
        and held.alone > _ALONE / 10
    )


def _contents(
    connection: duckdb.DuckDBPyConnection,
    schema: TableSchema,
    member: TableColumn,
    column: TableColumn,
) -> ColumnContents:
    name, who, table = quoted(column.name), quoted(member.name), quoted(schema.name)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_VALUES} AS "  # noqa: S608
        f"SELECT value, sum(n)::BIGINT AS n, count(*) AS members FROM ("
        f"SELECT {name} AS value, {who} AS who, count(*) AS n FROM {table} WHERE {name} IS NOT NULL "
        f"AND {who} IS NOT NULL GROUP BY ALL) GROUP BY value"
    )
    rows, values, alone, shared = _row(
        connection,
        "SELECT coalesce(sum(n), 0)::BIGINT, count(*), "  # noqa: S608 - no names
        "coalesce(sum(n) FILTER (members = 1), 0)::BIGINT, "
        f"coalesce(sum(n) FILTER (members >= {MANY}), 0)::BIGINT FROM {_VALUES}",
    )
    if rows < ENOUGH_ROWS:
        return ColumnContents(rows, values, 0.0, 0.0)
    looks, words, length = _texts(connection) if column.type is ColumnType.STRING else ("", 0.0, 0.0)
    members = 0.0 if column.type is ColumnType.DATE else _of_members(connection, column)
    is_possible = is_clock(column.name) or (alone > _ALONE * rows and not is_key(column.name))
    is_clocks = column.type is ColumnType.INT64 and is_possible
    unit = _clock_unit(connection, column.name) if is_clocks else ""
    return ColumnContents(rows, values, alone / rows, shared / rows, members, looks, words, length, unit)


def _clock_unit(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """Return the unit in which numbers are times: the middle one, or by another name nearly all and of these years."""
    shares, of_time = ("[0.5]", is_of_this_time) if is_clock(name) else ("[0.01, 0.99]", _is_recent)
    (found,) = _row(connection, f"SELECT quantile_disc(value, {shares}) FROM {_VALUES}")  # noqa: S608
    fits = (unit for unit in CLOCK_UNITS if all(of_time(each, unit) for each in found))
    return next((unit.name.lower() for unit in fits), "")


def _is_recent(value: int, unit: TimeUnit) -> bool:
    """Return whether a number of units since 1970 falls into the years 2000 to 2039, as few other numbers do."""
    return 30 <= value * unit.value / _YEAR < 70


def _of_members(connection: duckdb.DuckDBPyConnection, column: TableColumn) -> float:
    """Return the share of values that are members too, 0 where that may be chance; a few values say nothing."""
    # Where some are missing, pandas makes fractions of whole numbers.
    whole = "CASE WHEN value = trunc(value) THEN try_cast(value AS HUGEINT) END"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_COMPARED} AS SELECT text IN (SELECT text FROM {_MEMBERS}) AS is_member, "  # noqa: S608
        "try_cast(text AS HUGEINT) AS number FROM "
        f"(SELECT ({whole if column.has_fractions else 'value'})::VARCHAR AS text FROM {_VALUES})"
    )
    values, members = _row(connection, f"SELECT count(*), count(*) FILTER (is_member) FROM {_COMPARED}")  # noqa: S608
    if values <= MANY or members < _OF_MEMBERS * values:
        return 0.0
    return 0.0 if _is_chance(connection, column, values, members) else members / values


def _is_chance(connection: duckdb.DuckDBPyConnection, column: TableColumn, values: int, members: int) -> bool:
    """Return whether values are members only because members are numbers with few gaps, as counts and articles are.

    Where members have gaps, other people's numbers have the same ones. Where they have none, other people's numbers
    reach as far as those of members, which hardly anything does that is no amount.
    """
    low, high, people, within, width = _row(
        connection,
        "WITH ends AS (SELECT quantile_disc(number, 0.02) AS low, quantile_disc(number, 0.98) AS high "  # noqa: S608
        f"FROM {_COMPARED} WHERE is_member) SELECT any_value(low), any_value(high), count(number), "
        "count(*) FILTER (number BETWEEN low AND high), any_value(high) - any_value(low) + 1 "
        f"FROM {_MEMBERS}, ends",
    )
    if low is None or high is None:
        return False
    gaps = (1 - within / width) * values
    if gaps >= min(_MANY_GAPS, values / 2) and values - members <= gaps / 2:
        return False
    return within < _REACHED * people or is_amount(column.name)


def _row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    return connection.execute(sql).fetchone() or ()


def _texts(connection: duckdb.DuckDBPyConnection) -> tuple[str, float, float]:
    """Return what texts look like, how many words they have, and how many characters: of some values."""
    texts = [text for (text,) in connection.execute(_SOME).fetchall()]
    looks = (
        name
        for name, look in _LOOKS.items()
        if sum(look.fullmatch(text) is not None for text in texts) > _LIKE * len(texts)
    )
    words = sum(len(text.split()) for text in texts) / len(texts)
    return next(looks, ""), words, sum(map(len, texts)) / len(texts)
