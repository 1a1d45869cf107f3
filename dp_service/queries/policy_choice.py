"""The block `choose` of bounded contributions: what its keys mean together, and with the rest of the table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dp_service.queries.policy_schema import ChooseSchema, ContributionsSchema, ExpectedCountSchema
from dp_service.queries.table_contributions import Choice, ExpectedCounts
from dp_service.queries.tables import Table
from dp_service.terms import Answering, BoundedBy

_Found = Iterator[tuple[str, str]]


def choice_of(schema: ChooseSchema | None, units: int) -> Choice | None:
    """Return the content of the block, None where there is none.

    Args:
        schema: The block.
        units: Those that the block above it states; they are always among those that may be chosen.
    """
    if schema is None:
        return None
    return Choice(
        among=tuple(schema.among),
        units=tuple(sorted({units, *(schema.units or ())})),
        kept=schema.kept,
        kept_names=schema.kept_names,
        expected=tuple(
            ExpectedCounts(column, tuple((each.rank, each.count) for each in stated))
            for column, stated in sorted(schema.expected.items())
        ),
    )


def faults_of_choice(table: Table, block: ContributionsSchema) -> _Found:
    """Yield the keys below `contributions` that are wrong, and what is wrong with them."""
    choose = block.choose
    if choose is None:
        return
    if len(set(choose.among)) < len(choose.among):
        yield "choose.among", "expected each of them once"
    if Answering.UNBOUNDED in choose.among and block.bound is not BoundedBy.IN_QUERY:
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
    for units in choose.units or ():
        if units > block.units:
            yield (
                "choose.units",
                f"expected at most {block.units}, the units of questions that nothing is expected of",
            )
    grouped = {column.name for column in table.columns if column.group_by}
    for column, stated in choose.expected.items():
        if column not in grouped:
            yield "choose.expected", f"{column}: expected a column that questions may group by"
        if not _falls(stated):
            yield "choose.expected", f"{column}: expected ascending ranks, with counts that do not rise"


def _falls(stated: list[ExpectedCountSchema]) -> bool:
    return all(one.rank < other.rank and one.count >= other.count for one, other in pairwise(stated))
