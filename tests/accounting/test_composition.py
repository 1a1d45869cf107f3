"""What a budget is worth: the paper's number for the default parameters, and no other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp

from dp_service.accounting.composition import Guarantee, bounded_range_epsilon, guarantee

DEFAULTS: dict[str, Any] = {
    "epsilon_per": Fraction("0.15"),
    "delta": Fraction("1e-10"),
    "information": 3000,
    "calls": 30,
    "slack": Fraction("1e-9"),
}


def of(**changes: Any) -> Guarantee:
    """Return the guarantee of the default budget with some parameters changed."""
    values = DEFAULTS | changes
    return guarantee(values.pop("epsilon_per"), values.pop("delta"), **values)


def test_the_default_budget_is_worth_what_the_paper_says() -> None:
    """(34.9, 7e-9), from theorem 2 with the sign that its lemma has."""
    found = of()
    assert 34.9 == round(found.epsilon, 1)
    assert 34.88 == round(found.epsilon, 2)
    assert math.isclose(7e-9, found.delta, rel_tol=1e-12)


def test_the_sign_that_the_paper_prints_gives_no_number() -> None:
    """With exp(+e) the logarithm of theorem 2 would be that of a negative number."""
    e = 0.15
    with pytest.raises(ValueError, match="math domain error"):
        math.log(e / (1 - math.exp(e)))


def test_the_sign_decides_the_drift() -> None:
    """x - 1 - ln x with x = e / (1 - exp(-e)) is close to e^2 / 8; a wrong sign anywhere in it is not."""
    with mp.workdps(50):
        e = mp.mpf("0.01")
        drift = bounded_range_epsilon(e, 1, mp.mpf(1))
    assert math.isclose(float(e) ** 2 / 8, float(drift), rel_tol=0.02)


@pytest.mark.parametrize(("count", "expected"), [(100, 2.753), (1000, 9.561)])
def test_published_values_come_out(count: int, expected: float) -> None:
    """At e = 0.1 and slack 1e-6 bounded-range composition gives 2.753 for 100 units and 9.561 for 1000."""
    found = of(epsilon_per=Fraction("0.1"), information=count, slack=Fraction("1e-6"))
    assert expected == round(found.epsilon, 3)


def test_a_small_budget_composes_best_by_adding_up() -> None:
    """Where sums are smaller, they are the guarantee."""
    assert math.isclose(0.15, of(information=1).epsilon, rel_tol=1e-12)


def test_guarantees_are_rounded_up() -> None:
    """A float below the true epsilon would promise too much."""
    assert Fraction(of(information=1).epsilon) > Fraction("0.15")
    assert Fraction(of().delta) > Fraction("7e-9")


def test_an_empty_budget_is_worth_nothing_but_the_slack() -> None:
    """Without units there is no epsilon."""
    assert 0 == of(information=0, calls=0).epsilon


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("epsilon_per", Fraction(0)),
        ("delta", Fraction(0)),
        ("delta", Fraction(1)),
        ("information", -1),
        ("calls", -1),
        ("slack", Fraction(0)),
        ("slack", Fraction(1)),
    ],
)
def test_values_out_of_range_are_named(argument: str, value: Any) -> None:
    """Each argument is checked at the boundary."""
    with pytest.raises(ValueError, match=argument):
        of(**{argument: value})
