"""First times: of each member, the least number of the buckets of its rows.

A row has the number of the bucket that it is in, or -1 before the question's range: a comparison with numbers in the
query, which no value makes an error, and which needs no calendar of an engine. NULL meets no comparison, but rows
without a time are in no such question.

Later rows are one for each bucket that a member is active in, beside its least one by a window over these rows.
"""

from __future__ import annotations

from dp_service.queries.functions.first_times import QueryCohorts, QueryFirst, QueryLater
from dp_service.queries.render.conditions import column_of_times, value_of_number
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.render.expressions import MemberFunction, member_key
from dp_service.terms import ColumnType

_FIRST, _NUMBER = "gris_first_number", "gris_number"


def written_first(source: QueryFirst, dialect: Dialect) -> MemberFunction:
    """Write what first times take of a member's rows."""
    first = identifier(_FIRST, dialect)
    of_member = f"CAST(MIN({_number(source.cohorts, dialect)}) AS BIGINT) AS {first}"
    return MemberFunction((of_member,), counting=f"{first} >= 0")


def written_later(source: QueryLater, dialect: Dialect) -> MemberFunction:
    """Write the buckets that each member is active in, beside its first one."""
    first, name = identifier(_FIRST, dialect), identifier(_NUMBER, dialect)
    number = _number(source.since, dialect)

    def window(members: str) -> tuple[str, ...]:
        return name, f"CAST(MIN({name}) OVER (PARTITION BY {members}) AS BIGINT) AS {first}"

    return MemberFunction((f"{number} AS {name}",), f"{first} >= 0", (number,), window=(window,))


@member_key.register
def _first(source: QueryFirst, dialect: Dialect) -> str:
    first = identifier(_FIRST, dialect)
    days = [literal(day, dialect) for day in source.cohorts.first_days]
    # Where days are numbers, they are of 64 bits, as those of every bucket.
    days = [f"CAST({day} AS BIGINT)" if day.lstrip("-").isdigit() else day for day in days]
    cases = " ".join(f"WHEN {first} = {place} THEN {day}" for place, day in enumerate(days))
    return f"CASE {cases} ELSE {days[-1]} END"


@member_key.register
def _later(source: QueryLater, dialect: Dialect) -> str:
    del source
    return f"CAST({identifier(_NUMBER, dialect)} - {identifier(_FIRST, dialect)} AS BIGINT)"


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
