"""Statements that a refusal tells to ask instead: the policy's names alone, and no text of the asker."""

from __future__ import annotations

from collections.abc import Sequence

from dp_service.queries.suggestions import asking
from dp_service.queries.tables import Table


def per_member(table: Table, number: str, of: str, by: Sequence[str] = ()) -> str:
    """Return the statement for a number of one value for each member, such as AVG(value) of SUM(amount), by columns."""
    keys = [table.member, *by]
    return asking(number, f"({asking(f'{of} AS value', table.name, keys)})", by)


def average_of_each(table: Table) -> str:
    """Return what to ask for in place of another number that each member has; it ends in a statement."""
    if table.measures.counts_rows:
        of = "COUNT(*)"
    elif table.values:
        of = f"SUM({table.values[0].name})"
    else:
        return (
            f"Ask how many members there are instead: {asking(f'COUNT(DISTINCT {table.member})', table.name)}"
        )
    return f"Ask for the average over members instead, with any WHERE inside: {per_member(table, 'AVG(value)', of)}"


def median(table: Table, column: str, by: Sequence[str] = ()) -> str:
    """Return the statement for the median of a column, by those columns whose values the policy lists.

    It is of members' largest values where rows are not counted.
    """
    domains = {each.name: each.domain for each in table.columns}
    known = [] if table.contributions is None else [each for each in by if domains[each] is not None]
    if table.measures.counts_rows:
        return asking(f"PERCENTILE({column}, 50)", table.name, known)
    return per_member(table, "PERCENTILE(value, 50)", f"MAX({column})", known)
