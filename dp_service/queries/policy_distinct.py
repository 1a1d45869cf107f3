"""The key `measures.distinct` of a table: whose distinct values may be counted, and how many of a member count."""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.policy_faults import Fault
from dp_service.queries.tables import Policy, Table
from dp_service.terms import BoundedBy, ColumnType
from gris_serving.yaml_texts import KeyPath

_TYPES = (ColumnType.STRING, ColumnType.INT64, ColumnType.DATE)


def check_distinct(policy: Policy, fault: Fault) -> None:
    """Report what the keys have wrong, in all tables."""
    for table in policy.tables:
        for name in table.measures.distinct:
            path: KeyPath = ("tables", table.name, "measures", "distinct", name)
            for message in _faults(name, table):
                fault(path, message)


def _faults(name: str, table: Table) -> Iterator[str]:
    column = next((each for each in table.own_columns if each.name == name), None)
    if name == table.member:
        yield "expected another column than the member column: distinct_members counts members"
    elif column is None:
        yield "expected a column of the table that the policy lists, and that is not looked up"
    elif column.type not in _TYPES:
        yield f"expected a column of type {', '.join(_TYPES)}"
    stated = table.contributions
    if stated is None or stated.bounded_by is not BoundedBy.IN_QUERY:
        yield (
            "expected contributions with bound: in_query, whose query bounds in how many elements a member counts, and "
            "with how many values in each"
        )
