"""The ways of answering between which a policy lets the service choose: each as a policy of its own.

Which of them answers is decided from the policy and the question alone, before anything is priced or named
(`dp_service.releases.choosing`). So each question has one mechanism, one price and one id, whatever the data are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dp_service.queries.asked_numbers import DistinctValues, Measure
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.table_contributions import Choice, ExpectedCounts
from dp_service.queries.tables import Policy, Table
from dp_service.terms import Answering


def choice_for(query: HistogramQuery, policy: Policy) -> Choice | None:
    """Return between what the service chooses for a question; None: the policy says how it is answered.

    Nothing is chosen for questions that sum: what is expected of counts says nothing of how good their sums are, and
    sums of members without a bound cannot be private. The same holds for quantiles. Nor for buckets of time and other
    functions: the cheapest way over a known domain would bound nobody, and have noise for a member in every value. Nor
    for totals, which take a part of the units that the policy states. Nor for distinct values, which are of bounded
    members alone.

    Raises:
        RefusedByPolicyError: The policy lists no such table.
    """
    choice = policy.table(query.table).choice
    has_functions = not all(isinstance(each, str) for each in query.dimensions)
    is_stated = query.aggregates or query.quantiles or has_functions or query.totals_by is not None
    is_stated = is_stated or isinstance(query.measure, DistinctValues)
    return None if is_stated else choice


def as_stated(policy: Policy, table_name: str, *, units: int | None = None) -> Policy:
    """Return the policy in which the table is answered as its block says, and nothing is chosen.

    Args:
        policy: The policy.
        table_name: The table.
        units: What questions cost instead of what the block says; None: as it says.
    """
    return _with_table(policy, _bounded(policy.table(table_name), names=True, units=units))


def alternatives(policy: Policy, table_name: str) -> Iterator[tuple[Answering, Policy]]:
    """Yield each way of answering with the policy that knows no other; bounded ones from the cheapest on."""
    table = policy.table(table_name)
    if (choice := table.choice) is None:
        return
    for answering in choice.among:
        if answering is Answering.UNBOUNDED:
            yield answering, _with_table(policy, without_bound(table))
            continue
        for units in choice.units:
            bounded = _bounded(table, names=answering is Answering.TWO_LOOKS, units=units)
            yield answering, _with_table(policy, bounded)


def expected_counts(query: HistogramQuery, choice: Choice) -> ExpectedCounts | None:
    """Return what is expected of the counts of a question; None: nothing.

    Conditions lower counts, and events are not members: of such questions nothing is expected.
    """
    if len(query.dimensions) != 1 or query.filters or query.time_range is not None:
        return None
    if query.measure is not Measure.DISTINCT_MEMBERS:
        return None
    (dimension,) = query.dimensions
    return choice.expected.get(dimension) if isinstance(dimension, str) else None


def without_bound(table: Table) -> Table:
    """Return the table as questions see it that are answered without a bound."""
    return table.model_copy(update={"contributions": None})


def _bounded(table: Table, *, names: bool, units: int | None = None) -> Table:
    stated = table.contributions
    if stated is None:
        return table
    kept = stated.names if names else None
    block = stated.model_copy(update={"names": kept, "units": units or stated.units, "choice": None})
    return table.model_copy(update={"contributions": block})


def _with_table(policy: Policy, table: Table) -> Policy:
    others = tuple(each for each in policy.tables if each.name != table.name)
    return replace(policy, tables=(*others, table))
