"""What the ends beside a number say of the number in the table: by policy and question alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.contributions import BoundedContributions
from dp_service.parameters.expressions import Number, OverAll, Product, Quotient, Released, Sum
from dp_service.parameters.numbers import THE_COUNT, Average, Computed, Plain
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.kinds.coverage import (
    AtLeast,
    Coverage,
    NoiseAlone,
    TwoSided,
    of_counts,
    of_number,
)
from dp_service.terms import (
    AggregateFunction,
    BoundedBy,
    Bounding,
    Consistency,
    CountNoise,
    MechanismName,
)

EXACT = BoundedContributions(BoundedBy.IN_QUERY, 4, 1, False, 10, None, "")
PARAMETERS = ReleaseParameters(
    mechanism=MechanismName.BOUND_GAUSS,
    epsilon_per=Fraction(3, 20),
    delta=Fraction(1, 10**10),
    tau=1,
    delta_l0=4,
    d_bar=None,
    k=None,
    with_counts=True,
    count_noise=CountNoise.GAUSSIAN,
    consistency=Consistency.KEYED,
    domain=(("a",), ("b",)),
    contributions=EXACT,
)
WEIGHTED = replace(PARAMETERS, contributions=replace(EXACT, bounding=Bounding.WEIGHTS))
AMOUNT = SummedValue("amount", Fraction(1), 0, 100, Fraction(1, 4))
COLUMNS = (
    AMOUNT,
    replace(AMOUNT, low=-5, is_raised=True),
    replace(AMOUNT, low=0, is_raised=True),
    replace(AMOUNT, name="", function=AggregateFunction.MEMBERS, high=1),
    replace(AMOUNT, name="", function=AggregateFunction.ROWS),
)


@pytest.mark.parametrize(
    ("changed", "can_cut"),
    [
        (PARAMETERS, False),
        (WEIGHTED, True),
        (replace(PARAMETERS, contributions=replace(EXACT, bounding=Bounding.FIRST)), True),
        (replace(PARAMETERS, contributions=replace(EXACT, bounded_by=BoundedBy.PREPARED)), False),
        (replace(PARAMETERS, contributions=replace(EXACT, bounded_by=BoundedBy.ASSUMED)), False),
        (replace(PARAMETERS, contributions=replace(EXACT, values_of="city")), True),
        (replace(PARAMETERS, clips=True), True),
        (replace(PARAMETERS, contributions=None), False),
    ],
)
def test_counts_have_an_interval_only_where_nothing_can_be_cut(
    changed: ReleaseParameters, can_cut: bool
) -> None:
    """Weights, a hash order, rows and values of a member can cut; a promise cuts nothing."""
    assert of_counts(changed) == (AtLeast(None) if can_cut else TwoSided())


def test_a_bound_has_the_largest_cut_that_the_owner_states() -> None:
    """A combination of such numbers has none."""
    stated = replace(
        WEIGHTED, contributions=replace(EXACT, bounding=Bounding.WEIGHTS, largest_cut=Fraction(1, 16))
    )
    assert of_counts(stated) == of_number(Plain(0), COLUMNS, stated) == AtLeast(Fraction(1, 16))
    twice = Computed((Plain(0), Plain(3)), Sum((Released(0), Released(1))))
    assert of_number(twice, COLUMNS, stated) == AtLeast(None)


@pytest.mark.parametrize(
    ("place", "exact", "weighted"),
    [
        (THE_COUNT, TwoSided(), AtLeast(None)),
        (0, AtLeast(None), AtLeast(None)),
        (1, NoiseAlone(), NoiseAlone()),
        (2, NoiseAlone(), NoiseAlone()),
        (3, TwoSided(), AtLeast(None)),
        (4, AtLeast(None), AtLeast(None)),
    ],
)
def test_sums_are_bounds_where_their_values_begin_at_0(
    place: int, exact: Coverage, weighted: Coverage
) -> None:
    """Clamps of values, and the rows of a member, can cut whether or not members are weighted."""
    assert of_number(Plain(place), COLUMNS, PARAMETERS) == exact
    assert of_number(Plain(place), COLUMNS, WEIGHTED) == weighted


_TWICE = Product((Number(Fraction(2)), Released(0)))
_LESS = Sum((Released(0), Product((Number(Fraction(-1)), Released(1)))))


@pytest.mark.parametrize(
    ("form", "weighted"),
    [
        (Computed((Plain(THE_COUNT),), _TWICE), AtLeast(None)),
        (Computed((Plain(THE_COUNT), Plain(3)), Sum((Released(0), Released(1)))), AtLeast(None)),
        (Computed((Plain(THE_COUNT), Plain(3)), _LESS), NoiseAlone()),
        (Computed((Plain(THE_COUNT), Plain(3)), Quotient(Released(0), Released(1))), NoiseAlone()),
        (Computed((Plain(THE_COUNT),), Quotient(Released(0), OverAll(0))), NoiseAlone()),
    ],
)
def test_what_is_computed_of_cut_numbers_is_at_best_a_lower_bound(
    form: Computed[int], weighted: Coverage
) -> None:
    """Of numbers that nothing can cut, it has an interval."""
    assert of_number(form, COLUMNS, PARAMETERS) == TwoSided()
    assert of_number(form, COLUMNS, WEIGHTED) == weighted


def test_an_average_is_of_what_counts() -> None:
    """Clamps cut what is far above and far below."""
    assert of_number(Average(0), COLUMNS, PARAMETERS) == NoiseAlone()
