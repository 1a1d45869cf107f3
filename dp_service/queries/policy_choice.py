"""The block `choose` of bounded contributions: what its keys mean together, and with the rest of the table."""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.table_contributions import Contributions
from dp_service.queries.tables import Table
from dp_service.terms import Answering, BoundedBy

_Found = Iterator[tuple[str, str]]


def faults_of_choice(table: Table, block: Contributions) -> _Found:
    """Yield the keys below `contributions` that are wrong, and what is wrong with them."""
    choose = block.choice
    if choose is None:
        return
    if len(set(choose.among)) < len(choose.among):
        yield "choose.among", "expected each of them once"
    if Answering.UNBOUNDED in choose.among and block.bounded_by is not BoundedBy.IN_QUERY:
        yield (
            "choose.among",
            "unbounded: expected only with bound: in_query; otherwise the table itself is bounded, or said to be",
        )
    takes_two = Answering.TWO_LOOKS in choose.among
    if takes_two and block.names is None:
        yield "choose.among", "two_looks: expected names as well, which state the first look"
    if takes_two is (choose.kept_names is None):
        yield (
            "choose.kept_names",
            "expected exactly with two_looks: what the first look's bound leaves of a count",
        )
    for units in choose.units:
        if units > block.units:
            yield (
                "choose.units",
                f"expected at most {block.units}, the units of questions that nothing is expected of",
            )
    grouped = {column.name for column in table.columns if column.group_by}
    for column, stated in choose.expected.items():
        if column not in grouped:
            yield "choose.expected", f"{column}: expected a column that questions may group by"
        if not stated.falls:
            yield "choose.expected", f"{column}: expected ascending ranks, with counts that do not rise"
