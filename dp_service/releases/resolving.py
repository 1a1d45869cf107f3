"""How a question is answered: as the policy states it, or for the price that its `max_error` asks for."""

from __future__ import annotations

from dataclasses import replace

from dp_service.queries.max_error import MaxError
from dp_service.queries.policy import Policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.exactness import exact_enough


def resolve_question(query: HistogramQuery, policy: Policy, *, now: int) -> Resolution:
    """Return how a question is answered.

    Args:
        query: The question.
        policy: The policy.
        now: Seconds since 1970 (UTC); decides which periods are closed.

    Raises:
        RefusedByPolicyError: The policy does not allow the question.
        QuestionError: No policy could answer the question; `field` names what is wrong.
        UnusableParametersError: No noise can be drawn for it.
    """
    # Before anything follows from the question: what holds of an audience's rows is a part of what it asks.
    query = replace(query, filters=(*query.filters, *policy.table(query.table).forced))
    if (wanted := MaxError.of(query.max_error)) is not None:
        return exact_enough(query, policy, wanted, now=now)
    return resolve(query, policy, now=now)
