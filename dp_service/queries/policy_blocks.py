"""The key `blocks` of a policy, and `block` of its tables: what is wrong with them, and what they promise."""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.blocks import Blocks, folded
from dp_service.queries.columns import Operator
from dp_service.queries.policy_faults import Fault
from dp_service.queries.tables import Policy, Table
from dp_service.terms import ColumnType


def check_blocks(policy: Policy, fault: Fault) -> None:
    """Report what the keys have wrong."""
    blocks = policy.currency.blocks
    if blocks is not None:
        for message in blocks.faults():
            fault(("blocks", "values"), message)
        if not policy.is_divided:
            fault(
                ("blocks",), "expected a table whose key block names the column that members are divided by"
            )
    for table in policy.tables:
        if table.block is not None:
            for message in _faults(table, blocks):
                fault(("tables", table.name, "block"), message)


def _faults(table: Table, blocks: Blocks | None) -> Iterator[str]:
    column = next((each for each in table.own_columns if each.name == table.block), None)
    if blocks is None:
        yield "expected the key blocks of the policy, which says what members are divided by"
    elif column is None or column.name == table.member:
        yield "expected a column of the table that the policy lists, neither looked up nor the member column"
    elif column.type is not (wanted := _type_of(blocks)):
        yield f"expected a column of type {wanted}, as the values of blocks are"
    elif Operator.IN not in column.operators:
        yield "expected a column whose filter has in, by which questions name blocks"
    elif column.null_value is not None and folded(column.null_value) in map(folded, blocks.values):
        yield (
            f"expected a column whose null_value has no block of its own, got {column.null_value!r}: rows without a "
            "value are of the block of all others"
        )


def _type_of(blocks: Blocks) -> ColumnType:
    return ColumnType.STRING if isinstance(blocks.values[0], str) else ColumnType.INT64
