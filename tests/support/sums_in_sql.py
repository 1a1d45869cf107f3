"""Questions in SQL for sums and averages beside a count, of rows or of members' totals."""

from __future__ import annotations

from collections.abc import Sequence


def summed(
    table: str,
    by: str,
    *,
    of_rows: bool = False,
    sums: Sequence[str] = (),
    averages: Sequence[str] = (),
    order: str = "",
    k: int | None = None,
    where: str = "",
) -> str:
    """Return the SQL of a list.

    Args:
        table: The table, whose members are in the column `member`.
        by: What to group by.
        of_rows: Whether rows are counted and summed; otherwise members, and their totals.
        sums: The columns whose sums to show.
        averages: The columns whose averages to show, behind the sums.
        order: What the list is in descending order of; empty: its counts.
        k: The most elements to show.
        where: A condition on rows.
    """
    numbers = ", ".join((*(f"SUM({each})" for each in sums), *(f"AVG({each})" for each in averages)))
    rows = f"{table} WHERE {where}" if where else table
    columns = ", ".join(f"SUM({each}) AS {each}" for each in dict.fromkeys((*sums, *averages)))
    members = f"(SELECT member, {by}, {columns} FROM {rows} GROUP BY member, {by})"  # noqa: S608
    selected = f"SELECT {by}, COUNT(*), {numbers} FROM {rows if of_rows else members} GROUP BY {by}"  # noqa: S608
    limit = "" if k is None else f" LIMIT {k}"
    return f"{selected} ORDER BY {order or 'COUNT(*)'} DESC{limit}"
