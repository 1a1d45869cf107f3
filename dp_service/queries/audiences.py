"""What an audience is offered: some tables and columns of a policy, and of each table only rows with certain values.

An audience's policy is made of the whole one before a question is read. It lacks what the audience is not offered, so
that this is refused in the words of what does not exist, and lists of a column with such values those values alone.
Who asks is not known here: what serves callers names the audience, and the values that stand for names in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dp_service.queries.audience_terms import AskedAs, Named, OfferedTable
from dp_service.queries.columns import Column
from dp_service.queries.errors import RefusedByPolicyError, Rule
from dp_service.queries.filters import In, Value, fault_of
from dp_service.queries.tables import Policy, Table
from dp_service.terms import ColumnType

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def seen_by(policy: Policy, asked: AskedAs | None) -> Policy:
    """Return a policy as an audience sees it.

    Raises:
        RefusedByPolicyError: The policy states audiences and `asked` is none of them, or lacks one of its values or has
            another one; or it states none, and `asked` names one. The message is the same for all of these: it reaches
            those who ask.
    """
    if asked is None and not policy.audiences:
        return policy
    audience = None if asked is None else policy.audiences.get(asked.audience)
    if asked is None or audience is None or [name for name, _ in asked.values] != sorted(audience.names):
        raise RefusedByPolicyError(
            Rule.AUDIENCE,
            "the policy answers audiences alone, and the one that asks is of none that it knows",
        )
    tables = (
        policy.tables if audience.tables is None else _offered(policy, audience.tables, dict(asked.values))
    )
    return replace(policy, tables=tuple(tables), whole=policy, asked_as=asked)


def _offered(
    policy: Policy, offered: Mapping[str, OfferedTable], given: Mapping[str, str]
) -> Iterator[Table]:
    for table in policy.tables:
        if table.name not in offered:
            continue
        rows = tuple(_rows(table, offered[table.name], given))
        # Of a value that no row can have, or that cannot be one, there is no table.
        if all(each.values for each in rows):
            yield _narrowed(table, offered[table.name].columns, rows)


@dataclass(frozen=True)
class _Rows:
    column: str
    values: tuple[Value, ...]


def _rows(table: Table, offered: OfferedTable, given: Mapping[str, str]) -> Iterator[_Rows]:
    """Yield the values that rows must have, without those that the column's domain says that none has."""
    for name, stated in offered.rows:
        column = table.column(name)
        values = [_given(given[each.name], column) if isinstance(each, Named) else each for each in stated]
        listed = column.domain if column.publication is None else None
        possible = values if listed is None else [each for each in values if each in listed]
        yield _Rows(name, tuple(sorted({each for each in possible if each is not None})))


def _given(text: str, column: Column) -> Value | None:
    """Return a given value as one of the column's; None: it is none, or stands for rows that have none."""
    value: Value | None = text
    if column.type is ColumnType.INT64:
        value = int(text) if _INTEGER.fullmatch(text) else None
    return None if fault_of(value) is not None or value == column.null_value else value


def _narrowed(table: Table, names: frozenset[str] | None, rows: tuple[_Rows, ...]) -> Table:
    time = () if table.time is None else (table.time.name,)

    of = {each.column: each.values for each in rows}
    always = {table.member, *time, *of}

    def is_offered(name: str) -> bool:
        return names is None or name in names or name in always

    columns = [_of_rows(each, of.get(each.name)) for each in table.columns if is_offered(each.name)]
    distinct = {name: most for name, most in table.measures.distinct.items() if is_offered(name)}
    return table.model_copy(
        update={
            "columns": tuple(columns),
            "values": tuple(each for each in table.values if is_offered(each.name)),
            "quantiles": tuple(each for each in table.quantiles if is_offered(each.name)),
            "measures": table.measures.model_copy(update={"distinct": distinct}),
            "block": table.block if table.block is None or is_offered(table.block) else None,
            "forced": tuple(In(each.column, each.values) for each in rows),
        }
    )


def _of_rows(column: Column, values: tuple[Value, ...] | None) -> Column:
    """Return a column that lists no values but those of the rows that count."""
    if values is None or column.domain is None:
        return column
    return column.model_copy(update={"domain": values, "publication": None})
