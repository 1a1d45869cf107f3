"""Functions of all of a member's rows: a subquery with one row for each member in each element of the other columns.

    SELECT country, member, SUM(CASE WHEN step 1 ..), .. FROM table WHERE .. GROUP BY country, member

Everything else is counted of its rows, as if it were the table: counts, bounds and their order are written as they are
for columns. Why one member changes only its own elements: each row of the subquery is of one member, so the rows of
another one neither change it nor add one. Nothing is joined, so a member's rows are not multiplied either. (Steps
counted over all rows of a group, or the first time of a group, would be of no member.)

- A **funnel** counts for each step the member's rows that meet its condition, 0 of none. The deepest step is the last
  one before a number of 0.
- **First times** are the least number of the buckets of the member's rows. A row has the number of the bucket that it
  is in, or -1 before the question's range: a comparison with numbers in the query, which no value makes an error, and
  which needs no calendar of an engine. NULL meets no comparison, but rows without a time are in no such question.
- **Later** rows are one for each bucket that a member is active in, beside its least one by a window over these rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.canonical_columns import (
    Condition,
    QueryCohorts,
    QueryColumn,
    QueryFirst,
    QueryFunnel,
    QueryLater,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.render.conditions import column_of_times, value_of_number, written_condition
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.render.expressions import grouping_key
from dp_service.terms import ColumnType

_FIRST, _NUMBER = "gris_first_number", "gris_number"


def is_of_members(query: CanonicalQuery) -> bool:
    """Return whether a question groups by a function of a member's rows."""
    return any(each.is_of_member for each in query.dimensions)


def has_window(query: CanonicalQuery) -> bool:
    """Return whether its subquery has a window."""
    return any(isinstance(each.source, QueryLater) for each in query.dimensions)


def rows_of_members(query: CanonicalQuery, rows: str, dialect: Dialect) -> str:
    """Write the rows of members that count, as what stands behind FROM.

    Args:
        query: The question.
        rows: The table and its conditions, as they stand behind FROM.
        dialect: The engine's SQL.
    """
    member, others = (
        identifier(query.member, dialect),
        [each for each in query.dimensions if not each.is_of_member],
    )
    names = [identifier(each.name, dialect) for each in others]
    keys = [grouping_key(each, query, dialect, is_nested=True) for each in others]
    selected = [key if key == name else f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
    since = _cohorts(query)
    number = "" if since is None else _number(since, dialect)
    grouped = [*keys, member]
    measured = list(_steps(query, dialect))
    if has_window(query):
        measured.append(f"{number} AS {identifier(_NUMBER, dialect)}")
        grouped.append(number)
    elif number:
        measured.append(f"CAST(MIN({number}) AS BIGINT) AS {identifier(_FIRST, dialect)}")
    clauses = [
        f"SELECT {', '.join([*selected, member, *measured])}",
        f"FROM {rows}",
        f"GROUP BY {', '.join(grouped)}",
    ]
    found = " ".join(clauses)
    if has_window(query):
        found = _with_first(found, [*names, member], dialect)
    return f"({found}) AS {identifier('gris_of_members', dialect)} WHERE {' AND '.join(_counting(query, dialect))}"


def key_of_members(dimension: QueryColumn, dialect: Dialect) -> str:
    """Write one dimension of a row of a member."""
    match dimension.source:
        case QueryFunnel(steps=steps):
            cases = " ".join(
                f"WHEN {identifier(_met(place), dialect)} = 0 THEN CAST({place} AS BIGINT)"
                for place in range(1, len(steps))
            )
            return f"CASE {cases} ELSE CAST({len(steps)} AS BIGINT) END"
        case QueryFirst(cohorts=cohorts):
            first = identifier(_FIRST, dialect)
            days = [literal(day, dialect) for day in cohorts.first_days]
            # Where days are numbers, they are of 64 bits, as those of every bucket.
            days = [f"CAST({day} AS BIGINT)" if day.lstrip("-").isdigit() else day for day in days]
            cases = " ".join(f"WHEN {first} = {place} THEN {day}" for place, day in enumerate(days))
            return f"CASE {cases} ELSE {days[-1]} END"
        case QueryLater():
            return f"CAST({identifier(_NUMBER, dialect)} - {identifier(_FIRST, dialect)} AS BIGINT)"
        case _:
            return identifier(dimension.name, dialect)


def _cohorts(query: CanonicalQuery) -> QueryCohorts | None:
    """Return the buckets of first times, if the question is of some."""
    for each in query.dimensions:
        match each.source:
            case QueryFirst(cohorts=found) | QueryLater(since=found):
                return found
    return None


def _steps(query: CanonicalQuery, dialect: Dialect) -> Iterator[str]:
    """Write how many of a member's rows meet each condition of a funnel."""
    for each in query.dimensions:
        if isinstance(each.source, QueryFunnel):
            for place, condition in enumerate(each.source.steps):
                yield f"SUM({_is_met(condition, dialect)}) AS {identifier(_met(place), dialect)}"


def _is_met(condition: Condition, dialect: Dialect) -> str:
    """Write 1 or 0; the cast keeps Pinot's planner from a filter in its place (`sums.at_most`)."""
    return (
        f"CAST(CASE WHEN {written_condition(condition, dialect, is_nested=True)} THEN 1 ELSE 0 END AS BIGINT)"
    )


def _met(place: int) -> str:
    return f"gris_met_{place + 1}"


def _number(cohorts: QueryCohorts, dialect: Dialect) -> str:
    """Write the number of the bucket that a row is in, from 0; -1: it is before the first one."""
    column = cohorts.of.column
    key = column_of_times(column, dialect, is_nested=True)
    kind = ColumnType.INT64 if column.stored is not None else column.type
    cases = " ".join(
        f"WHEN {key} < {literal(value_of_number(start, kind), dialect)} THEN {place - 1}"
        for place, start in enumerate(cohorts.starts)
    )
    return f"CAST(CASE {cases} ELSE {len(cohorts.starts) - 1} END AS BIGINT)"


def _with_first(rows: str, keys: list[str], dialect: Dialect) -> str:
    """Write the buckets that each member is active in, beside its first one."""
    first, number = identifier(_FIRST, dialect), identifier(_NUMBER, dialect)
    window = f"CAST(MIN({number}) OVER (PARTITION BY {', '.join(keys)}) AS BIGINT) AS {first}"
    clauses = [
        f"SELECT {', '.join([*keys, number, window])}",
        f"FROM ({rows}) AS {identifier('gris_active', dialect)}",
    ]
    return " ".join(clauses)


def _counting(query: CanonicalQuery, dialect: Dialect) -> Iterator[str]:
    """Write which members count: who reaches a first step, and whose first time is in the question's range."""
    if any(isinstance(each.source, QueryFunnel) for each in query.dimensions):
        yield f"{identifier(_met(0), dialect)} > 0"
    if _cohorts(query) is not None:
        yield f"{identifier(_FIRST, dialect)} >= 0"
