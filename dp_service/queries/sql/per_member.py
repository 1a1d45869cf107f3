"""Numbers of one value for each member: a statement around one that groups by the member.

    SELECT country, AVG(total), MEDIAN(total) FROM (
        SELECT member, country, SUM(value) AS total FROM t WHERE .. GROUP BY member, country
    ) GROUP BY country

The inner statement has a number of each member: SUM, AVG or MAX of a column, or COUNT(*). Sums and averages around it
are of sums and counts, quantiles of sums, averages and largest values, and a count is of members.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dp_service.queries.sql import tree
from dp_service.queries.sql.numbers import is_number
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.scope import whole_number

_GROUPED = (
    "expected GROUP BY around a statement that groups by the member with its other columns, each of them, so that a "
    "row is one member"
)


def member_of(inner: tree.Select, select: tree.Select, members: Collection[str]) -> tree.Name | None:
    """Return the member column that a statement groups by, where the one around it computes numbers of its rows.

    Args:
        inner: The statement.
        select: The one around it.
        members: The names of the member columns of all tables.
    """
    if not any(is_number(each.value) for each in select.items):
        return None
    keys = (each for each in _keys(inner) if isinstance(each, tree.Name))
    return next((each for each in keys if each.parts[-1].value in members), None)


def values_of_members(inner: tree.Select, member: tree.Name) -> tree.Select:
    """Return the rows of a statement that groups by the member, whose numbers are values of each member."""
    if inner.having is not None or inner.limit is not None:
        refuse(
            inner.having or inner.limit or inner,
            "HAVING and LIMIT are not accepted in a statement that groups by the member",
        )
    items = tuple(
        replace(each, value=tree.OfMember(each.value.first, each.value.last, each.value, member))
        if isinstance(each.value, tree.Call) and is_number(each.value)
        else each
        for each in inner.items
    )
    return replace(inner, items=items, group=None, order=())


def check_groups(select: tree.Select, inner: tree.Select, member: tree.Name) -> None:
    """Refuse groups of a statement around one that groups by the member, in which a row would not be one member.

    Args:
        select: The statement around it, with the columns of the inner one.
        inner: The statement that groups by the member.
        member: The member column.
    """
    own = tree.without_places(member)
    wanted = {tree.without_places(each) for each in _keys(inner)} - {own}
    found = {tree.without_places(each) for each in _keys(select)}
    if select.group is not None and select.group.all_selected:
        found = {tree.without_places(each.value) for each in select.items if not is_number(each.value)}
    if found != wanted:
        refuse(select.group or select.items[0].value, _GROUPED)


def meant(select: tree.Select, node: tree.Expression) -> tree.Expression:
    """Return what an alias or a position of a statement stands for; anything else as it is."""
    place = whole_number(node)
    if place is not None and 1 <= place <= len(select.items):
        return select.items[place - 1].value
    named = {each.alias.value: each.value for each in select.items if each.alias is not None}
    return (
        named.get(node.parts[0].value, node) if isinstance(node, tree.Name) and len(node.parts) == 1 else node
    )


def _keys(select: tree.Select) -> list[tree.Expression]:
    """Return what a statement groups by, without aliases and positions."""
    return [] if select.group is None else [meant(select, each) for each in select.group.keys]
