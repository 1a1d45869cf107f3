"""What the ends beside a number say of the number in the table.

Noise covers what counts. Bounds of the policy (weights, the rows of a member, a hash order, clamps of values) can cut
that, and then no interval of noise is one of the number in the table. Whether they can follows from policy and question
alone: if it depended on data, an answer would tell whether some member exceeds a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.numbers import THE_COUNT, Average, Computed, Form, Plain
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.kinds.linear import Ratio, ratio_of
from dp_service.releases.statements import Statement, percent
from dp_service.terms import AggregateFunction


@dataclass(frozen=True)
class TwoSided:
    """Both ends hold the number in the table: nothing that a member has can be cut."""


@dataclass(frozen=True)
class AtLeast:
    """The lower end is at most the number in the table.

    Attributes:
        largest_cut: The largest part of the number that is cut, as the owner states it: then the number in the table is
            at most the upper end divided by what is left; None: the owner states nothing.
    """

    largest_cut: Fraction | None


@dataclass(frozen=True)
class NoiseAlone:
    """The number in the table can differ from what counts to either side."""


Coverage: TypeAlias = TwoSided | AtLeast | NoiseAlone


def of_counts(parameters: ReleaseParameters) -> Coverage:
    """Return what the ends beside counts say."""
    return AtLeast(parameters.largest_cut) if parameters.can_cut else TwoSided()


def of_number(form: Form[int], columns: Sequence[SummedValue], parameters: ReleaseParameters) -> Coverage:
    """Return what the ends beside a number say that is shown beside the counts.

    Args:
        form: What it is of which columns.
        columns: What the release adds up.
        parameters: The parameters of the release.
    """
    match form:
        case Plain(place):
            return of_counts(parameters) if place == THE_COUNT else _of_sum(columns[place], parameters)
        case Average():
            # Clamps of values cut what is above and what is below, and weights whom they are of.
            return NoiseAlone()
        case Computed(numbers, expression):
            return _of_arithmetic(
                [of_number(each, columns, parameters) for each in numbers], ratio_of(expression)
            )


def said(coverage: Coverage) -> dict[str, dict[str, Fraction | None]]:
    """Return what a message says of it."""
    match coverage:
        case TwoSided():
            return {"two_sided": {}}
        case AtLeast(largest_cut):
            return {"at_least": {"largest_cut": largest_cut}}
        case NoiseAlone():
            return {"noise_alone": {}}


def in_words(found: Sequence[Coverage], confidence: float) -> Iterator[Statement]:
    """Yield what the ends beside an answer's numbers say, where that is not the number in the table.

    Args:
        found: That of each number.
        confidence: Of what noise leaves possible.
    """
    bounds = [each for each in found if isinstance(each, AtLeast)]
    cut = next((each.largest_cut for each in bounds if each.largest_cut is not None), None)
    # Each end by itself misses with half of the probability.
    often = percent(1 - (1 - Fraction(str(confidence))) / 2)
    if bounds:
        above = (
            "How much is cut is not known, so nothing is said above it."
            if cut is None
            else f"If at most {cut} of a number is cut, that in the table is no more than the upper one, with {often} "
            "too."
        )
        yield Statement(
            "intervals.at_least",
            "Bounds on members can cut counts and sums, so these have a lower bound in place of an interval: the "
            f"number in the table is no less, with {often}. That of a sum is of values from 0 on, in steps of the "
            f"column. {above}",
            values=(often,),
        )
    if NoiseAlone() in found:
        yield Statement(
            "intervals.noise",
            "Ends that are headed as noise are of the rows that count: bounds on members can cut others, so the number "
            "in the table can lie outside of these ends.",
        )


def _of_sum(column: SummedValue, parameters: ReleaseParameters) -> Coverage:
    if column.function is AggregateFunction.MEMBERS:
        return of_counts(parameters)
    # At most tau rows of a member count, whatever they are. Where rows below 0 count, a total is raised to its bound,
    # and rows without a value are raised to what they count with. Nothing says by how much a sum is too large then.
    return NoiseAlone() if column.is_raised else AtLeast(parameters.largest_cut)


def _of_arithmetic(parts: Sequence[Coverage], ratio: Ratio | None) -> Coverage:
    linear = None if ratio is None else ratio.linear
    if all(isinstance(each, TwoSided) for each in parts):
        return TwoSided()
    adds = linear is not None and all(weight > 0 for weight in linear.weights.values())
    return NoiseAlone() if NoiseAlone() in parts or not adds else AtLeast(None)
