"""Questions for the columns of a table alone, as tools ask before anything else: SELECT * FROM t LIMIT 0.

They have no rows, so nothing is read, drawn or paid. What is named follows from the policy: the columns of which it
offers groups or conditions, and the member column, which counts name.
"""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.errors import RefusedByPolicyError, Rule
from dp_service.queries.filters import Filter
from dp_service.queries.sql import tree
from dp_service.queries.sql.places import placed, refuse
from dp_service.queries.sql.scope import Scope, alias_name
from dp_service.queries.structured import MAXIMUM_K, Free, HistogramQuery
from dp_service.queries.tables import Table
from dp_service.terms import ColumnType

_Probed = tuple[str, ColumnType]


def is_probe(select: tree.Select) -> bool:
    """Return whether a statement without rows asks for columns of the table, and for no groups and no numbers."""
    of_table = all(
        isinstance(each.value, tree.Star | tree.Name | tree.Truth | tree.Number) for each in select.items
    )
    return of_table and not (select.group or select.having or select.order)


def probe_of(select: tree.Select, scope: Scope, filters: tuple[Filter, ...]) -> HistogramQuery:
    """Return the question for the columns of a statement that has no rows.

    It groups by any column, so that it is one that has an answer; what it shows are the columns of the text.

    Raises:
        QuestionError: A column is selected twice.
        RefusedByPolicyError: The policy lists no such column, or offers nothing of it.
    """
    found: dict[str, ColumnType] = {}
    for item in select.items:
        for name, kind in _columns_of(item, scope):
            if name in found:
                refuse(item.value, "a column that is selected twice is not accepted")
            found[name] = kind
    groups = (each.name for each in scope.table.own_columns if each.group_by)
    return HistogramQuery(
        table=scope.table.name,
        dimensions=tuple(groups)[:1],
        measure=scope.table.measures.offered[0].measure,
        filters=filters,
        k=MAXIMUM_K,
        free=Free.COLUMNS,
        probed=tuple(found.items()),
        in_sql=True,
    )


def _columns_of(item: tree.Item, scope: Scope) -> Iterator[_Probed]:
    alias = None if item.alias is None else alias_name(item.alias)
    match item.value:
        case tree.Star(first=first, last=last):
            if first is not last and first.value != scope.qualifier:
                refuse(first, "expected the table's name or its alias before *, or nothing")
            yield from usable_columns(scope.table)
        case tree.Truth(value=value):
            yield alias or str(value).lower(), ColumnType.BOOL
        case tree.Number(text=text):
            yield alias or text, ColumnType.INT64
        case _:
            yield _named(item.value, alias, scope)


def _named(node: tree.Expression, alias: str | None, scope: Scope) -> _Probed:
    name, usable = scope.column_name(node), dict(usable_columns(scope.table))
    if name not in usable:
        column = scope.column(node)
        with placed(node):
            raise RefusedByPolicyError(
                Rule.COLUMN, f"{column.name}: the policy offers neither groups nor conditions of this column"
            )
    return alias or name, usable[name]


def usable_columns(table: Table) -> tuple[_Probed, ...]:
    """Return the names and types of the member column and of those that questions group by or filter on."""
    member = table.member_column()
    of_member = table.member, ColumnType.STRING if member is None else member.type
    usable = [(each.name, each.type) for each in table.usable_columns if each.name != table.member]
    return (of_member, *usable)
