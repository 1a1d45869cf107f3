"""The rows of members as `gris policy check --data` counts them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dp_service.queries.structured import Value
from dp_service.queries.tables import Column, Table
from pinot_connector.engines.parquet import quoted


@dataclass(frozen=True)
class MemberRows:
    """Each row that has a member and an element, as SQL.

    Attributes:
        member: The member.
        element: The element, one value.
        condition: Which rows have both.
        table: The table, quoted.
        values: The parameters of all that.
    """

    member: str
    element: str
    condition: str
    table: str
    values: dict[str, Any]

    @property
    def sql(self) -> str:
        """The query for `member` and `element` of each row."""
        selected = f"{self.member} AS member, {self.element} AS element"
        return f"SELECT {selected} FROM {self.table} WHERE {self.condition}"  # noqa: S608 - the policy's


def rows_of_members(table: Table, columns: Sequence[Column]) -> MemberRows:
    """Return the rows that have a member and a value in each column; without columns they are of one total."""
    listed = table.member_column()
    missing = None if listed is None else listed.null_value
    member = quoted(table.member)
    conditions = [f"{member} IS NOT NULL"] + ([] if missing is None else [f"{member} <> $missing"])
    values = {} if missing is None else {"missing": parameter_of(missing)}
    element = []
    for i, column in enumerate(columns):
        value, held = _value(column, f"$null_{i}")
        element.append(value)
        conditions.append(held)
        if column.null_value is not None:
            values[f"null_{i}"] = parameter_of(column.null_value)
    return MemberRows(
        member, f"({', '.join(element) or 0})", " AND ".join(conditions), quoted(table.name), values
    )


def parameter_of(value: Value) -> Value:
    """Return a value of a policy as a parameter of DuckDB's."""
    # The connection's zone is UTC, and only a timestamp without a zone is compared with every type of them.
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


def _value(column: Column, null: str) -> tuple[str, str]:
    """Return SQL for a column's value, with the parameter that stands for NULL, and for which rows have one."""
    name = quoted(column.name)
    if column.value_for_null is not None:
        return f"coalesce({name}, {null})", "TRUE"
    return name, f"{name} IS NOT NULL" + ("" if column.null_value is None else f" AND {name} <> {null}")
