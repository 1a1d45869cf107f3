"""The key `audiences` of a policy: what each is offered, and what is wrong with that."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from dp_service.queries.audience_terms import Audience, Named, OfferedTable
from dp_service.queries.columns import Column, Operator
from dp_service.queries.filters import Value
from dp_service.queries.policy_columns import value_of
from dp_service.queries.policy_faults import Faults
from dp_service.queries.policy_schema import AudienceSchema, OfferedTableSchema, PolicySchema
from dp_service.queries.suggestions import listed
from dp_service.queries.tables import Table
from dp_service.terms import ColumnType
from gris_serving.yaml_texts import KeyPath

MAXIMUM_AUDIENCES = 1000
MAXIMUM_ROW_VALUES = 1000
"""How many values an audience's rows may have in one column: every query of it names them all."""

_NAME = re.compile(r"\$([a-z][a-z0-9_]{0,63})")
_TYPES = (ColumnType.STRING, ColumnType.INT64, ColumnType.BOOL)
_NAMED_TYPES = (ColumnType.STRING, ColumnType.INT64)


def audiences_of(schema: PolicySchema, tables: Sequence[Table], fault: Faults) -> Mapping[str, Audience]:
    """Return what each audience is offered, and report what is wrong with it."""
    stated = schema.audiences
    if len(stated) > MAXIMUM_AUDIENCES:
        fault(("audiences",), f"expected at most {MAXIMUM_AUDIENCES} audiences")
    by_name = {table.name: table for table in tables}
    return {name: _audience(each, by_name, ("audiences", name), fault) for name, each in stated.items()}


def _audience(schema: AudienceSchema, tables: Mapping[str, Table], path: KeyPath, fault: Faults) -> Audience:
    if not schema.tables:
        return Audience()
    offered = {}
    for name, each in schema.tables.items():
        if name not in tables:
            fault((*path, "tables", name), f"expected a table of the policy, one of {listed(sorted(tables))}")
            continue
        offered[name] = _offered(each, tables[name], (*path, "tables", name), fault)
    return Audience(offered)


def _offered(schema: OfferedTableSchema, table: Table, path: KeyPath, fault: Faults) -> OfferedTable:
    known = {each.name for columns in (table.columns, table.values, table.quantiles) for each in columns}
    columns = frozenset(schema.columns) if "columns" in schema.model_fields_set else None
    for index, name in enumerate(schema.columns):
        if name not in known | {table.member}:
            fault((*path, "columns", index), f"expected a column that the policy lists for {table.name}")
    if columns is not None:
        for message in _unsaid(columns | schema.where.keys(), table):
            fault((*path, "columns"), message)
    rows = []
    for name, raw in schema.where.items():
        column = next((each for each in table.columns if each.name == name), None)
        if (problem := _problem(column, table)) is not None or column is None:
            fault((*path, "where", name), problem or "")
            continue
        rows.append((name, tuple(_values(raw, column, (*path, "where", name), fault))))
    return OfferedTable(columns, tuple(sorted(rows)))


def _unsaid(offered: Collection[str], table: Table) -> Iterator[str]:
    """Yield which columns are missing that prices and answers name beside those that are offered."""
    for column in table.columns:
        lookup = column.lookup
        if lookup is not None and column.name in offered and lookup.key.name not in offered:
            yield f"expected {lookup.key.name} too: answers say that {column.name} is looked up by it"
    if table.block is not None and table.block not in offered:
        yield f"expected {table.block} too: answers say that it divides members into blocks"


def _problem(column: Column | None, table: Table) -> str | None:
    if column is None or column.name == table.member:
        return f"expected a column that the policy lists for {table.name}, and not that of the members"
    if column.type not in _TYPES:
        return f"expected a column of type {', '.join(_TYPES)}"
    if Operator.IN not in column.operators:
        return "expected a column whose filter has in: what is forced is a condition like others"
    return None


def _values(raw: object, column: Column, path: KeyPath, fault: Faults) -> Iterator[Value | Named]:
    stated = raw if isinstance(raw, list) else [raw]
    if not 1 <= len(stated) <= MAXIMUM_ROW_VALUES:
        fault(path, f"expected 1 to {MAXIMUM_ROW_VALUES} values")
    for index, each in enumerate(stated):
        place = (*path, index) if isinstance(raw, list) else path
        if isinstance(each, str) and each.startswith("$") and not each.startswith("$$"):
            yield from _named(each, column, place, fault)
            continue
        # Two stand for one, where a value begins so.
        text = each[1:] if isinstance(each, str) and each.startswith("$$") else each
        value = value_of(text, column.type, place, fault)
        if (
            value is not None
            and column.publication is None
            and value not in (*(column.domain or (value,)), column.value_for_null)
        ):
            fault(place, "expected a value of the column's domain")
        elif value is not None:
            yield value


def _named(text: str, column: Column, path: KeyPath, fault: Faults) -> Iterator[Named]:
    match = _NAME.fullmatch(text)
    if match is None:
        fault(
            path, "expected $ and a name of small letters, digits and _, or $$ for a value that begins with $"
        )
    elif column.type not in _NAMED_TYPES:
        fault(
            path,
            f"expected a value: names stand for those of columns of type {', '.join(_NAMED_TYPES)} alone",
        )
    else:
        yield Named(match[1])
