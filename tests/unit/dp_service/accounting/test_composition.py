"""What a budget is worth: the published numbers, which bounds may be used, and rounding that never promises more."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from dp_service.accounting.composition import Guarantee, PublishedDomain, guarantee, guarantee_of_the_theorem

DEFAULTS: dict[str, Any] = {
    "epsilon_per": Fraction("0.15"),
    "delta": Fraction("1e-10"),
    "information": 3000,
    "calls": 30,
    "slack": Fraction("1e-9"),
}
DOMAIN = PublishedDomain(rho=Fraction("0.1"), delta=Fraction("1e-9"))


def of(**changes: Any) -> Guarantee:
    """Return the guarantee of the default budget with some parameters changed."""
    values = DEFAULTS | changes
    return guarantee(values.pop("epsilon_per"), values.pop("delta"), **values)


def test_the_papers_bound_gives_the_papers_number() -> None:
    """(34.9, 7e-9), from theorem 2 with the sign that its lemma has."""
    values = dict(DEFAULTS)
    found = guarantee_of_the_theorem(values.pop("epsilon_per"), values.pop("delta"), **values)
    assert 34.9 == round(found.epsilon, 1)
    assert 34.88 == round(found.epsilon, 2)
    assert math.isclose(7e-9, found.delta, rel_tol=1e-12)


def test_the_default_budget_is_worth_33_78_by_zcdp() -> None:
    """It is smaller than the sum for the defaults, so it is the guarantee."""
    found = of()
    assert 33.78 == round(found.epsilon, 2)
    assert math.isclose(7e-9, found.delta, rel_tol=1e-12)


@pytest.mark.parametrize(("count", "expected"), [(100, 2.42), (1000, 8.85)])
def test_published_values_come_out(count: int, expected: float) -> None:
    """The known values at e = 0.1 and slack 1e-6."""
    found = of(epsilon_per=Fraction("0.1"), information=count, slack=Fraction("1e-6"))
    assert expected == round(found.epsilon, 2)


def test_a_small_budget_composes_best_by_adding_up() -> None:
    """Where sums are smaller, they are the guarantee."""
    found = of(information=1, calls=0)
    assert math.isclose(0.15, found.epsilon, rel_tol=1e-12)


@pytest.mark.parametrize("changes", [{"gaussian": True}, {"domains": [DOMAIN]}])
@pytest.mark.parametrize("information", [1, 3000])
def test_gaussian_noise_and_domains_leave_zcdp_alone(changes: dict[str, Any], information: int) -> None:
    """Sums do not cover Gaussian noise, however small their number."""
    found = of(information=information, **changes).epsilon
    # One unit alone: adding up would have promised 0.15.
    assert (found > of(information=information).epsilon) == (information == 1 or "domains" in changes)


def test_domains_add_their_rho_and_their_delta() -> None:
    """Two domains of rho 0.1 weigh as much as the 0.2 / (e^2 / 8) units that have the same rho."""
    units = Fraction("0.2") / (DEFAULTS["epsilon_per"] ** 2 / 8)
    with_domains = of(domains=[DOMAIN, DOMAIN])
    bracket = [of(gaussian=True, information=3000 + math.floor(units) + more).epsilon for more in (0, 1)]
    assert bracket[0] <= with_domains.epsilon <= bracket[1]
    assert math.isclose(9e-9, with_domains.delta, rel_tol=1e-12)


def test_a_domain_costs_even_without_a_budget() -> None:
    """Who may ask nothing still sees the domain; rho + 2 sqrt(rho ln(1/delta)) is the well-known looser conversion."""
    found = of(information=0, calls=0, domains=[DOMAIN])
    looser = 0.1 + 2 * math.sqrt(0.1 * math.log(1e9))
    assert 0.8 * looser < found.epsilon < looser


def test_guarantees_are_rounded_up() -> None:
    """A float below the true epsilon would promise too much."""
    assert Fraction(of(information=1).epsilon) > Fraction("0.15")
    assert Fraction(of().delta) >= Fraction("7e-9")


def test_an_empty_budget_is_worth_nothing_but_the_slack() -> None:
    """Without units there is no epsilon."""
    found = of(information=0, calls=0)
    assert 0.0 == found.epsilon
    assert math.isclose(1e-9, found.delta, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("epsilon_per", Fraction(0)),
        ("epsilon_per", Fraction(101, 10)),
        ("epsilon_per", 0.15),
        ("delta", Fraction(0)),
        ("delta", Fraction(1)),
        ("delta", 1e-10),
        ("information", -1),
        ("information", 2**53 + 1),
        ("information", True),
        ("information", 1.0),
        ("calls", -1),
        ("slack", Fraction(0)),
        ("slack", Fraction(1)),
    ],
)
def test_values_out_of_range_are_named(argument: str, value: Any) -> None:
    """Each argument is checked at the boundary, and a float is never taken for a decimal number."""
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        of(**{argument: value})


@pytest.mark.parametrize(("argument", "value"), [("rho", Fraction(0)), ("delta", Fraction(1)), ("delta", 0)])
def test_a_domains_price_is_checked(argument: str, value: Any) -> None:
    """A domain that costs nothing does not exist."""
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        PublishedDomain(**({"rho": Fraction(1), "delta": Fraction("1e-9")} | {argument: value}))
