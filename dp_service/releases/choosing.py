"""Which way of answering a question gets, where a policy lets the service choose.

The cheapest that is expected to find all k elements. That follows from the question, the policy, and the counts that
the policy's author expects: never from the data. So it is fixed before the price, the ids and any noise, and adds
nothing to what is released. If expectations are wrong, less is found.

An element is expected to be found if it is shown with a probability of at least 95 %; all k are if the one of rank k
is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.accuracy import GumbelThreshold, found_of_equals
from dp_service.mechanisms.bounded import BoundGauss, TwoLooks
from dp_service.mechanisms.bounded.gaussian_tails import log_tail
from dp_service.mechanisms.parameters import Cost
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.alternatives import alternatives, as_stated, choice_for, expected_counts
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.table_contributions import Choice, ExpectedCounts
from dp_service.releases.mechanism import mechanism_of
from dp_service.terms import Answering, MechanismName

_MOSTLY = Fraction(19, 20)


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
    """How a question is answered, and between what that was chosen; empty: the policy leaves no choice."""

    resolution: Resolution
    among: tuple[Alternative, ...] = ()


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
    choice = choice_for(query, policy)
    if choice is None:
        return Chosen(resolve(query, policy, now=now))
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
    worst = mechanism_of(stated.parameters).worst_case_cost()
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
            worst = mechanism_of(found).worst_case_cost()
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
    return _passes(parameters, k, expected, choice)


def _passes(parameters: ReleaseParameters, k: int, expected: ExpectedCounts, choice: Choice) -> bool | None:
    """Return whether the element of rank k is expected to pass the threshold of an unknown domain."""
    mechanism = mechanism_of(parameters)
    if isinstance(mechanism, TwoLooks):
        kept = choice.kept if choice.kept_names is None else choice.kept_names
        return _is_shown(mechanism.names_look, expected.at_least(k), kept)
    if isinstance(mechanism, BoundGauss):
        return _is_shown(mechanism, expected.at_least(k), choice.kept)
    if parameters.mechanism is MechanismName.UNK_GUMB and parameters.d_bar is not None:
        threshold = GumbelThreshold(
            parameters.epsilon_per, parameters.delta, parameters.tau, parameters.d_bar
        )
        return _is_found(threshold, k, parameters.d_bar, expected)
    return None


def _is_shown(look: BoundGauss, count: int, kept: Fraction) -> bool:
    """Return whether an element passes the threshold of a look with 95 %, of whose count a part is left."""
    left = math.floor(count * kept)
    if look.threshold is None or look.min_count is None:
        return True
    if left < look.min_count:
        return False
    return log_tail(float(look.variance), look.threshold + 1 - left) >= math.log(_MOSTLY)


def _is_found(threshold: GumbelThreshold, k: int, d_bar: int, expected: ExpectedCounts) -> bool:
    """Return whether UnkGumb finds 95 % of k elements, on average, that are as high as the one of rank k."""
    below = expected.at_most(d_bar + 1)
    if below is None:
        return False
    return found_of_equals(threshold, k, expected.at_least(k) - below).elements >= _MOSTLY * k
