"""The rows of members as `gris check --data` counts them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from dp_service.queries.columns import Column, Lookup
from dp_service.queries.filters import Value
from dp_service.queries.tables import Table
from gris_cli.data.errors import InputError
from pinot_connector.engines.parquet import quoted


@contextmanager
def reading_column(name: str) -> Iterator[None]:
    """Say of which column values could not be read, and nothing that DuckDB says, which may quote them.

    Raises:
        InputError: They could not.
    """
    try:
        yield
        return
    except duckdb.Error:
        failure = InputError(
            f"expected values of the column {name} that can be read and compared with the policy"
        )
    raise failure


@dataclass(frozen=True)
class MemberRows:
    """Each row that has a member and an element, as SQL.

    Attributes:
        member: The member.
        element: The element, one value.
        condition: Which rows have both.
        table: The table, quoted, with what is joined to it.
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
    source, element = quoted(table.name), []
    for i, column in enumerate(columns):
        of_table = column if column.lookup is None else column.lookup.key
        value, held = value_of(of_table, f"$null_{i}")
        if of_table.null_value is not None:
            values[f"null_{i}"] = parameter_of(of_table.null_value)
        if column.lookup is not None:
            source += f" LEFT JOIN {_entries(i)} ON {value} = key_{i}"
            value, held = _looked_up(column, held, i)
            values |= _parameters(column, column.lookup, i)
        element.append(value)
        conditions.append(held)
    return MemberRows(member, f"({', '.join(element) or 0})", " AND ".join(conditions), source, values)


def parameter_of(value: Value) -> Value:
    """Return a value of a policy as a parameter of DuckDB's."""
    # The connection's zone is UTC, and only a timestamp without a zone is compared with every type of them.
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


def _entries(place: int) -> str:
    """Return SQL for the keys of a lookup and their texts, from its parameters."""
    return f"(SELECT unnest($keys_{place}) AS key_{place}, unnest($texts_{place}) AS text_{place})"


def _looked_up(column: Column, held: str, place: int) -> tuple[str, str]:
    """Return SQL for what is looked up, and for which rows have it, given which have a key."""
    if column.value_for_null is None:
        return f"text_{place}", f"{held} AND text_{place} IS NOT NULL"
    return f"coalesce(text_{place}, $missing_{place})", held


def _parameters(column: Column, lookup: Lookup, place: int) -> dict[str, Any]:
    missing = column.value_for_null
    return {
        f"keys_{place}": [parameter_of(key) for key, _ in lookup.entries],
        f"texts_{place}": [text for _, text in lookup.entries],
        **({} if missing is None else {f"missing_{place}": missing}),
    }


def value_of(column: Column, null: str) -> tuple[str, str]:
    """Return SQL for a column's value, with the parameter that stands for NULL, and for which rows have one."""
    name = quoted(column.name)
    if column.value_for_null is not None:
        return f"coalesce({name}, {null})", "TRUE"
    return name, f"{name} IS NOT NULL" + ("" if column.null_value is None else f" AND {name} <> {null}")
