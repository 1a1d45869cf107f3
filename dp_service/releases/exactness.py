"""The price of a question that says how exact its counts have to be: the fewest units that are expected to do.

The expected error of a count follows from the mechanism and the question's public parameters (`ExpectedAccuracy`), and
falls with units. The policy bounds them. No data, and nothing of what was released, have a part in it: so units are
fixed before price, ids and noise, and a question that comes to the same units by another error is the same question.

An error that is a part is of the smallest count that the answer is about, of the largest of these public numbers: what
HAVING asks of its counts; the count that the policy's author expects at rank k; the count that passes a fixed threshold
with 50 %, where the question costs the units of every other one.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError
from dp_service.queries.max_error import MAX_ERROR, MaxError
from dp_service.queries.policy import Policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.table_contributions import Contributions, ExpectedCounts
from dp_service.releases.kinds import UnusableParametersError, kind_of
from dp_service.releases.kinds.views import ExpectedAccuracy
from dp_service.releases.statements import Statement
from dp_service.terms import Comparison


@dataclass(frozen=True)
class Priced:
    """How exact a question is expected to be at another price."""

    units: int
    accuracy: ExpectedAccuracy


def at_units(parameters: ReleaseParameters, units: int) -> ReleaseParameters:
    """Return the parameters of the same release for other units, which its looks share as they did."""
    stated = parameters.contributions
    if stated is None:
        return parameters
    names = stated.names
    if names is not None:
        names = replace(names, units=names.units * units / stated.units)
    return replace(parameters, contributions=replace(stated, units=units, names=names))


def exact_enough(query: HistogramQuery, policy: Policy, wanted: MaxError, *, now: int) -> Resolution:
    """Return a question answered for the fewest units that are expected to be as exact as it wants.

    Args:
        query: The question.
        policy: The policy, whose bounds units keep.
        wanted: How exact its counts have to be.
        now: Seconds since 1970 (UTC); decides which periods are closed.

    Raises:
        QuestionError: No price that the policy allows is expected to do, or the question shows no counts.
        RefusedByPolicyError: The policy does not allow the question.
        UnusableParametersError: No noise can be drawn for it.
    """
    stated = policy.table(query.table).contributions
    most = _for_units(query, policy, None if stated is None else stated.allowed_units[-1], now=now)
    parameters = most.parameters
    usual = parameters if stated is None else at_units(parameters, stated.units)
    limit = _in_counts(wanted, query, policy, kind_of(usual).accuracy())
    if not _is_within(parameters, limit):
        raise QuestionError(MAX_ERROR, _too_exact(parameters, limit, wanted))
    if stated is None:
        return most
    allowed = stated.allowed_units
    fewest = bisect_left(allowed, True, key=lambda units: _is_within(at_units(parameters, units), limit))
    return _for_units(query, policy, allowed[fewest], now=now)


def _for_units(query: HistogramQuery, policy: Policy, units: int | None, *, now: int) -> Resolution:
    """Return a question answered for so many units instead of what its table's block says; None: it has no block."""
    table = policy.table(query.table)
    if units is None or table.contributions is None:
        return resolve(query, policy, now=now)
    block = table.contributions.model_copy(update={"units": units})
    others = (each for each in policy.tables if each.name != table.name)
    priced = table.model_copy(update={"contributions": block})
    return resolve(query, replace(policy, tables=(*others, priced)), now=now)


def _is_within(parameters: ReleaseParameters, limit: Fraction) -> bool:
    """Return whether counts are expected to be off by no more; not where no noise can be drawn."""
    try:
        error = kind_of(parameters).accuracy().mean_error
    except UnusableParametersError:
        return False
    # As it is stated, in thousandths.
    return error is not None and Fraction(str(error)) <= limit


def _in_counts(wanted: MaxError, query: HistogramQuery, policy: Policy, usual: ExpectedAccuracy) -> Fraction:
    if usual.mean_error is None:
        raise QuestionError(MAX_ERROR, "expected none: the question shows no counts")
    if not wanted.is_part:
        return wanted.number
    smallest = max(_smallest_counts(query, policy, usual), default=Fraction(0))
    if smallest <= 0:
        raise QuestionError(
            MAX_ERROR,
            "expected a number of counts such as 16: nothing public says what the smallest count is that the answer is "
            "about, which HAVING on the count would",
        )
    return wanted.number * smallest


def _smallest_counts(query: HistogramQuery, policy: Policy, usual: ExpectedAccuracy) -> Iterator[Fraction]:
    """Yield the public numbers that say how large counts are that the answer is about."""
    for each in query.having:
        if each.aggregate is None and each.comparison in _FROM_BELOW:
            yield each.bound
    expected = _expected_counts(query, policy.table(query.table).contributions)
    if expected is not None and query.k is not None:
        yield Fraction(expected.at_least(query.k))
    if usual.is_fixed and usual.found_half is not None:
        yield Fraction(usual.found_half)


def _expected_counts(query: HistogramQuery, block: Contributions | None) -> ExpectedCounts | None:
    """Return what is expected of the counts of a question; None: nothing.

    Conditions lower counts, and events are not members: of such questions nothing is expected.
    """
    if block is None or len(query.dimensions) != 1 or query.filters or query.time_range is not None:
        return None
    (dimension,) = query.dimensions
    if query.measure is not Measure.DISTINCT_MEMBERS or not isinstance(dimension, str):
        return None
    return block.expected.get(dimension)


_FROM_BELOW = (Comparison.GREATER, Comparison.AT_LEAST, Comparison.EQUAL)


def _too_exact(parameters: ReleaseParameters, limit: Fraction, wanted: MaxError) -> str:
    kind = kind_of(parameters)
    cost = kind.mechanism.worst_case_cost().information
    part = (
        f" ({float(limit):.4g} are wanted, {float(100 * wanted.number):g} % of {float(limit / wanted.number):.4g})"
        if wanted.is_part
        else ""
    )
    return (
        f"expected at least {kind.accuracy().mean_error} counts{part}: so far is a count off on average at the highest "
        f"price that the policy allows, {cost} information"
    )


def at_other_prices(parameters: ReleaseParameters) -> Iterator[Priced]:
    """Yield what a question would be for half its units, and for twice as many, where its counts have such prices."""
    stated = parameters.contributions
    if stated is None or kind_of(parameters).accuracy().mean_error is None:
        return
    for units in filter(None, (stated.units // 2, 2 * stated.units)):
        other = at_units(parameters, units)
        with suppress(UnusableParametersError):
            yield Priced(units, kind_of(other).accuracy())


def of_other_prices(priced: Sequence[Priced], allowed: Sequence[int]) -> Iterator[Statement]:
    """Yield how exact counts would be for half and for twice the price, and between which prices there is a choice."""
    if not priced:
        return
    numbers = [(str(each.units), f"{each.accuracy.mean_error:.3g}") for each in priced]
    said = " and ".join(f"for {units} units by {error}" for units, error in numbers)
    how = ""
    if len(allowed) > 1:
        how = (
            f" A question with max_error costs the fewest of {allowed[0]} to {allowed[-1]} units with which counts are "
            "expected to be so exact."
        )
    text = f"A count would be off on average {said}.{how}"
    yield Statement("accuracy.other_prices", text, values=tuple(itertools.chain.from_iterable(numbers)))
