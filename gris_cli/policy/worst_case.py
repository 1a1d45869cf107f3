"""The questions of a table whose counts have the largest noise: what they cost at most, and how far counts are off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from dp_service.queries.asked_numbers import Counted
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import MAXIMUM_DIMENSIONS, HistogramQuery
from dp_service.queries.tables import Table
from dp_service.releases.kinds import UnusableParametersError, kind_of


@dataclass(frozen=True)
class WorstCase:
    """A question by some columns: the information it costs at most, and how far a count is off on average."""

    measure: str
    columns: tuple[str, ...]
    information: int
    mean_error: float


def worst_cases(table: Table, policy: Policy) -> Iterator[WorstCase]:
    """Yield for each measure the question with the largest noise: a total, or by the columns of most values."""
    grouped = sorted(
        (each for each in table.columns if each.group_by),
        key=lambda each: (each.of_member_within is None, each.of_member_within or 0),
        reverse=True,
    )
    keys = [tuple(each.name for each in grouped[:most]) for most in range(MAXIMUM_DIMENSIONS + 1)]
    for offered in table.measures.offered:
        cases = [case for key in dict.fromkeys(keys) for case in _asked(table, policy, offered.measure, key)]
        if cases:
            yield max(cases, key=lambda each: each.mean_error)


def _asked(table: Table, policy: Policy, measure: Counted, columns: tuple[str, ...]) -> Iterator[WorstCase]:
    """Yield what a question comes to, if the policy and the question's size allow it."""
    with suppress(QuestionError, RefusedByPolicyError, UnusableParametersError):
        query = HistogramQuery(table.name, columns, measure, k=table.max_k if columns else None)
        kind = kind_of(resolve(query, policy, now=0).parameters)
        cost, error = kind.mechanism.worst_case_cost(), kind.accuracy().mean_error
        if error is not None:
            yield WorstCase(measure.value, columns, cost.information, error)
