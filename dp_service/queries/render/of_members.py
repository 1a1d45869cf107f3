"""Functions of all of a member's rows: a subquery with one row for each member in each element of the other columns.

    SELECT country, member, SUM(CASE WHEN step 1 ..), .. FROM table WHERE .. GROUP BY country, member

Everything else is counted of its rows, as if it were the table: counts, bounds and their order are written as they are
for columns. Why one member changes only its own elements: each row of the subquery is of one member, so the rows of
another one neither change it nor add one. Nothing is joined, so a member's rows are not multiplied either. (Steps
counted over all rows of a group, or the first time of a group, would be of no member.)

What each function takes of a member's rows stands in its module: `funnels`, `first_times`.
"""

from __future__ import annotations

from dp_service.queries.canonical_columns import QueryColumn
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.functions.first_times import QueryFirst, QueryLater
from dp_service.queries.functions.funnels import QueryFunnel
from dp_service.queries.functions.ordered_funnels import QueryOrderedFunnel
from dp_service.queries.render.dialects import Dialect, identifier
from dp_service.queries.render.expressions import MemberFunction, Place, grouping_key, member_key
from dp_service.queries.render.first_times import written_first, written_later
from dp_service.queries.render.funnels import written_funnel, written_in_order


def is_of_members(query: CanonicalQuery) -> bool:
    """Return whether a question groups by a function of a member's rows."""
    return any(each.is_of_member for each in query.dimensions)


def has_window(query: CanonicalQuery, dialect: Dialect) -> bool:
    """Return whether its subquery has a window."""
    return any(each.window or each.nested for each in _functions(query, dialect))


def _functions(query: CanonicalQuery, dialect: Dialect) -> list[MemberFunction]:
    """Return what functions take of a member's rows. What is later comes with its first times."""
    sources = [each.source for each in query.dimensions]
    found = [written_funnel(each, dialect) for each in sources if isinstance(each, QueryFunnel)]
    found += [written_in_order(each, dialect) for each in sources if isinstance(each, QueryOrderedFunnel)]
    laters = [written_later(each, dialect) for each in sources if isinstance(each, QueryLater)]
    firsts = [written_first(each, dialect) for each in sources if isinstance(each, QueryFirst)]
    return [*found, *(laters or firsts)]


def rows_of_members(query: CanonicalQuery, rows: str, dialect: Dialect) -> str:
    """Write the rows of members that count, as what stands behind FROM.

    Args:
        query: The question.
        rows: The table and its conditions, as they stand behind FROM.
        dialect: The engine's SQL.
    """
    functions = _functions(query, dialect)
    member, place = identifier(query.member, dialect), Place(query, dialect, is_nested=True)
    others = [each for each in query.dimensions if not each.is_of_member]
    names = [identifier(each.name, dialect) for each in others]
    keys = [grouping_key(each, place) for each in others]
    selected = [key if key == name else f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
    for nested in (nested for each in functions for nested in each.nested):
        rows = nested(rows, [*selected, member], [*names, member])
        selected = keys = names
    measured = [each for one in functions for each in one.measured]
    clauses = [
        f"SELECT {', '.join([*selected, member, *measured])}",
        f"FROM {rows}",
        f"GROUP BY {', '.join([*keys, member, *(each for one in functions for each in one.grouped)])}",
    ]
    found = " ".join(clauses)
    for window in (window for each in functions for window in each.window):
        columns = [*names, member, *window(", ".join([*names, member]))]
        source = f"({found}) AS {identifier('gris_active', dialect)}"
        found = " ".join([f"SELECT {', '.join(columns)}", f"FROM {source}"])
    counting = " AND ".join(each.counting for each in functions)
    return f"({found}) AS {identifier('gris_of_members', dialect)} WHERE {counting}"


def key_of_members(dimension: QueryColumn, dialect: Dialect) -> str:
    """Write one dimension of a row of a member."""
    if dimension.source is None or not dimension.is_of_member:
        return identifier(dimension.name, dialect)
    return member_key(dimension.source, dialect)
