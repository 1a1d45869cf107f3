"""Whom "show only groups of at least k members" reveals: members singled out by two questions that it allows.

The attack is differencing. The first question counts or sums the members of a group, such as those of one cohort. The
second asks the same without one value of a further column, such as one day. Both groups have at least k members, so
both answers are shown. Where only one member has rows in that group with that value, the answers differ by exactly
what this member did there: by their rows, their purchases, their votes.
"""

# ruff: noqa: S608  (names are quoted)
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import duckdb

from gris_data.errors import InputError
from gris_data.reading import TABLE, reading
from pinot_connector.engines.parquet import quoted

MOST_COLUMNS = 4
_ROWS, _SINGLED = "gris_rows", "gris_singled"


@dataclass(frozen=True)
class PairOfQuestions:
    """Two questions about each group of the columns `groups` (none: everybody), the second without one value.

    `cells` and `members` are how many groups with a value, and how many members, they single out.
    """

    groups: tuple[str, ...]
    without: str
    cells: int
    members: int


@dataclass(frozen=True)
class SingledOut:
    """How many of the `members` of a table are singled out.

    `by_pair` is for the threshold that was asked about, and `by_threshold` by any of the pairs, for each threshold.
    """

    members: int
    by_pair: tuple[PairOfQuestions, ...]
    by_threshold: dict[int, int]


def singled_out(
    path: Path, member: str, columns: Sequence[str], k: int, thresholds: Sequence[int]
) -> SingledOut:
    """Return how many members thresholds single out; true counts, for the owner of the data.

    Rows without a member, or without a value in one of the columns, are left out.

    Args:
        path: The file.
        member: The column of members.
        columns: The columns that groups are made of and conditions are about.
        k: The fewest members of a group that is shown.
        thresholds: Other such numbers.

    Raises:
        InputError: The file cannot be read, has no members, lacks a column, or there are too many.
    """
    if not 1 <= len(set(columns)) == len(columns) <= MOST_COLUMNS or member in columns:
        raise InputError(f"expected 1 to {MOST_COLUMNS} different columns, and not that of members", "by")
    with reading(path, {member: "member", **dict.fromkeys(columns, "by")}) as connection:
        _make_rows(connection, member, columns)
        members = _number(connection, f"SELECT count(DISTINCT member) FROM {_ROWS}")
        if not members:
            raise InputError(
                f"{path}: expected rows with a value in each of {', '.join((member, *columns))}", "data"
            )
        connection.execute(f"CREATE TEMP TABLE {_SINGLED} (pair INTEGER, member BIGINT, smallest BIGINT)")
        pairs = list(_pairs(columns))
        for number, (groups, without) in enumerate(pairs):
            connection.execute(f"INSERT INTO {_SINGLED} {_alone(number, groups, without)}")
        counts = _counts(connection, k)
        return SingledOut(
            members,
            tuple(
                PairOfQuestions(groups, without, *counts.get(number, (0, 0)))
                for number, (groups, without) in enumerate(pairs)
            ),
            {
                each: _number(
                    connection, f"SELECT count(DISTINCT member) FROM {_SINGLED} WHERE smallest >= {each:d}"
                )
                for each in sorted({k, *thresholds})
            },
        )


def _make_rows(connection: duckdb.DuckDBPyConnection, member: str, columns: Sequence[str]) -> None:
    """Make a table of the different rows of members, who have numbers there."""
    names = [quoted(each) for each in (member, *columns)]
    listed = ", ".join(names[1:])
    connection.execute(
        f"CREATE TEMP TABLE {_ROWS} AS SELECT DISTINCT dense_rank() OVER (ORDER BY {names[0]}) AS member, {listed} "
        f"FROM {TABLE} WHERE {' AND '.join(f'{each} IS NOT NULL' for each in names)}"
    )


def _pairs(columns: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    for size in range(len(columns)):
        for groups in combinations(columns, size):
            yield from ((groups, each) for each in columns if each not in groups)


def _alone(number: int, groups: Sequence[str], without: str) -> str:
    """Write the query for members who are alone in a group with a value, and how small the smaller question is.

    That is the second one: it leaves the member out, unless they have rows in the group with other values.
    """
    by = "".join(f"{quoted(each)}, " for each in groups)
    using = (
        ""
        if not groups
        else f" AND {' AND '.join(f'alone.{each} = held.{each}' for each in map(quoted, groups))}"
    )
    same = " AND ".join(f"alone.{each} = whole.{each}" for each in map(quoted, groups)) or "true"
    return (
        f"WITH held AS (SELECT {by}member, count(*) AS had FROM {_ROWS} GROUP BY {by}member), "
        f"whole AS (SELECT {by}count(*) AS members FROM held{_grouped(by)}), "
        f"alone AS (SELECT {by}{quoted(without)}, min(member) AS member, count(*) AS had FROM {_ROWS} "
        f"GROUP BY {by}{quoted(without)} HAVING min(member) = max(member)) "
        f"SELECT {number:d}, alone.member, whole.members - CAST(alone.had = held.had AS INTEGER) "
        f"FROM alone JOIN held ON alone.member = held.member{using} JOIN whole ON {same}"
    )


def _grouped(by: str) -> str:
    return f" GROUP BY {by.removesuffix(', ')}" if by else ""


def _counts(connection: duckdb.DuckDBPyConnection, k: int) -> dict[int, tuple[int, int]]:
    rows = connection.execute(
        f"SELECT pair, count(*), count(DISTINCT member) FROM {_SINGLED} WHERE smallest >= {k:d} GROUP BY pair"
    ).fetchall()
    return {pair: (cells, members) for pair, cells, members in rows}


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    ((found,),) = connection.execute(query).fetchall()
    return int(found)
