"""Which way of answering a question gets, where a policy lets the service choose.

The cheapest that is expected to find all k elements. That follows from the question, the policy, and the counts that
the policy's author expects: never from the data. So it is fixed before the price, the ids and any noise, and adds
nothing to what is released. If expectations are wrong, less is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.alternatives import alternatives, as_stated, choice_for, expected_counts
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.max_error import MaxError
from dp_service.queries.policy import Policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.table_contributions import Choice
from dp_service.releases.exactness import exact_enough
from dp_service.releases.kinds import kind_of
from dp_service.terms import Answering


@dataclass(frozen=True)
class Alternative:
    """A way of answering a question.

    Attributes:
        answering: Which one; None: as the policy states it, where it is none of those that can be chosen.
        resolution: The question, answered so.
        worst: The most that it costs.
        finds_all: Whether it is expected to find all k elements; None: nothing is expected of the counts.
    """

    answering: Answering | None
    resolution: Resolution
    worst: Cost
    finds_all: bool | None


@dataclass(frozen=True)
class Chosen:
    """How a question is answered, and between what that was chosen; empty: the policy leaves no choice.

    `allowed` are the units that it may cost by what it says of how exact it has to be; empty: it has no such price.
    """

    resolution: Resolution
    among: tuple[Alternative, ...] = ()
    allowed: Sequence[int] = ()


def chosen(query: HistogramQuery, policy: Policy, *, now: int) -> Chosen:
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
    table = policy.table(query.table)
    # Before anything follows from the question: what holds of an audience's rows is a part of what it asks.
    query = replace(query, filters=(*query.filters, *table.forced))
    block = table.contributions
    allowed = () if block is None else block.allowed_units
    if (wanted := MaxError.of(query.max_error)) is not None:
        return Chosen(exact_enough(query, policy, wanted, now=now), allowed=allowed)
    choice = choice_for(query, policy)
    if choice is None:
        return Chosen(resolve(query, policy, now=now), allowed=allowed)
    # What is wrong with the question is said of this one: others may lack what the policy does not ask for.
    stated = resolve(query, as_stated(policy, query.table), now=now)
    found = tuple(_alternatives(query, policy, choice, now))
    finding = [each for each in found if each.finds_all]
    if not finding:
        return Chosen(stated, _with_stated(found, stated))
    cheapest = min(finding, key=lambda each: (each.worst.information, each.worst.calls))
    return Chosen(cheapest.resolution, found)


def _with_stated(found: tuple[Alternative, ...], stated: Resolution) -> tuple[Alternative, ...]:
    if any(each.resolution.parameters == stated.parameters for each in found):
        return found
    worst = kind_of(stated.parameters).mechanism.worst_case_cost()
    return (*found, Alternative(None, stated, worst, None))


def _alternatives(query: HistogramQuery, policy: Policy, choice: Choice, now: int) -> Iterator[Alternative]:
    """Yield each way that can answer the question; over a known domain two looks are one, and come once."""
    seen = set()
    for answering, each in alternatives(policy, query.table):
        with suppress(QuestionError, RefusedByPolicyError):
            resolution = resolve(query, each, now=now)
            if (found := resolution.parameters) in seen:
                continue
            seen.add(found)
            worst = kind_of(found).mechanism.worst_case_cost()
            yield Alternative(answering, resolution, worst, _finds_all(resolution, query, choice))


def _finds_all(resolution: Resolution, query: HistogramQuery, choice: Choice) -> bool | None:
    """Return whether all elements that are asked for are expected to be found; None: nothing is expected."""
    parameters = resolution.parameters
    if resolution.requested_k is not None:
        return False
    if parameters.domain is not None:
        # Elements of a known domain are shown whatever their counts.
        return True
    expected, k = expected_counts(query, choice), parameters.k
    if expected is None or k is None:
        return None
    return kind_of(parameters).finds(k, expected, choice)
