"""Variances, thresholds and prices against their formulas and against numbers computed in another way."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from dp_service.mechanisms import Cost, Currency
from dp_service.mechanisms.bounded import (
    BoundGauss,
    ContributionBound,
    Counted,
    Shift,
    TwoLooks,
)
from dp_service.noise.gaussian_price import DISCRETENESS, variance_for

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))


def look(typical: int, units: int, min_count: int | None = 1, **bound: object) -> BoundGauss:
    """Return a look in the default currency."""
    return BoundGauss(CURRENCY, Fraction(units), ContributionBound(typical, **bound), min_count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mechanism", "variance"),
    [
        (look(32, 20), DISCRETENESS + 32 / (2 * 20 * Fraction("0.15") ** 2 / 8)),
        (look(32, 20, periods=3), DISCRETENESS + 3 * 32 / (2 * 20 * Fraction("0.15") ** 2 / 8)),
        (
            look(32, 20, periods=3, tau=5, counted=Counted.EVENTS),
            DISCRETENESS + 9 * 25 * 32 / (2 * 20 * Fraction("0.15") ** 2 / 8),
        ),
    ],
)
def test_the_variance_is_exactly_that_of_the_units(mechanism: BoundGauss, variance: Fraction) -> None:
    """sigma^2 = D / (2 rho) + 1/11, as a rational number."""
    assert mechanism.variance == variance
    assert mechanism.bound.squared_distance / (2 * (variance - DISCRETENESS)) == mechanism.rho


def tail(variance: Fraction, n: int) -> mpmath.mpf:
    """Return Pr[N >= n] by summing 16 sigma of masses, all but 10^-57, at 50 digits."""
    with mpmath.workdps(50):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        reach = math.ceil(16 * math.sqrt(variance))
        masses = [mpmath.exp(-mpmath.mpf(z * z) / (2 * v)) for z in range(reach + 1)]
        total = 2 * mpmath.fsum(masses) - 1
        return mpmath.fsum(masses[n:]) / total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typical", "units", "min_count"),
    [(32, 71, 1), (32, 20, 1), (8, 5, 4), (1, 3, 1), (256, 20, 25), (8, 2, 1)],
)
def test_the_threshold_is_the_smallest_that_hides_newcomers(typical: int, units: int, min_count: int) -> None:
    """Pr[N > T - m] is at most delta / Delta, and that at T - 1 is not; sigma from 5 to 76, on both sides of 32."""
    mechanism = look(typical, units, min_count)
    assert mechanism.threshold is not None
    excess = mechanism.threshold - min_count
    allowed = CURRENCY.delta / typical
    assert tail(mechanism.variance, excess + 1) <= allowed < tail(mechanism.variance, excess)


@pytest.mark.slow
def test_the_threshold_of_wide_noise_is_the_smallest_too() -> None:
    """At sigma = 843 masses are no longer added up in the code; here they are."""
    mechanism = look(1000, 1, tau=2, counted=Counted.EVENTS)
    assert mechanism.threshold is not None
    assert math.sqrt(mechanism.variance) == pytest.approx(843.3, abs=0.1)
    excess = mechanism.threshold - 2
    allowed = CURRENCY.delta / 1000
    assert tail(mechanism.variance, excess + 1) <= allowed < tail(mechanism.variance, excess)


def test_distinct_members_over_periods_share_delta_among_all_their_elements() -> None:
    """Over P periods a member brings P Delta elements, each held by one member."""
    several = look(16, 20, 3, periods=12)
    at_once = BoundGauss(CURRENCY, Fraction(20), ContributionBound(16 * 12), 3)
    assert several.threshold == at_once.threshold


@pytest.mark.slow
def test_events_over_periods_are_hidden_for_every_number_of_periods() -> None:
    """Few elements with many events each, and many with few: T is enough for all, and for one no more than needed."""
    mechanism = look(4, 20, 2, periods=5, tau=3, counted=Counted.EVENTS)
    assert mechanism.threshold is not None
    delta, variance, distance = CURRENCY.delta, mechanism.variance, mechanism.bound.squared_distance
    needed = [
        all(
            threshold >= 1 + more and tail(variance, threshold - 1 - more + 1) <= delta * more**2 / distance
            for more in range(3, 16)
        )
        for threshold in (mechanism.threshold - 1, mechanism.threshold)
    ]
    assert needed == [False, True]


def test_one_look_costs_its_units_whatever_it_shows() -> None:
    """And a call if the domain is unknown."""
    assert look(32, 20).worst_case_cost() == Cost(20, 1) == look(32, 20).cost(50, ended_in_bottom=False)
    assert look(32, 20, None).worst_case_cost() == Cost(20, 0)
    with pytest.raises(ValueError, match="ended_in_bottom"):
        look(32, 20).cost(50, ended_in_bottom=True)


def test_two_looks_share_their_units_exactly() -> None:
    """u_1 + u_2 = u."""
    looks = TwoLooks(CURRENCY, 71, Fraction(35 * 71, 100), ContributionBound(4), ContributionBound(16), 1, 50)
    assert looks.names_look.units + looks.counts_look.units == 71
    assert looks.names_look.rho + looks.counts_look.rho == 71 * CURRENCY.epsilon_per**2 / 8
    assert looks.worst_case_cost() == Cost(71, 1)


@pytest.mark.parametrize(("domain_size", "ratio"), [(4, 0.75), (10, 0.658), (50, 0.571)])
def test_the_shift_has_less_noise(domain_size: int, ratio: float) -> None:
    """(sqrt d + 1) / 2 in place of sqrt d, where a member may have all d elements."""
    found = Shift(CURRENCY, Fraction(20), ContributionBound(domain_size), domain_size)
    plain = look(domain_size, 20, None)
    assert math.sqrt(found.error_variance / plain.variance) == pytest.approx(ratio, abs=5e-4)
    assert found.error_variance < variance_for(found.bound.squared_distance, found.rho)
    assert found.worst_case_cost() == Cost(20, 0)


@pytest.mark.parametrize(("domain_size", "tau"), [(4, 1), (40, 1), (1, 1), (7, 3)])
def test_the_shift_never_exceeds_its_rho(domain_size: int, tau: int) -> None:
    """The shares of counts and total are rational and add up to all of rho."""
    counted = Counted.MEMBERS if tau == 1 else Counted.EVENTS
    found = Shift(CURRENCY, Fraction(20), ContributionBound(domain_size, tau, 1, counted), domain_size)
    factors = found.factors
    assert factors == (tau, 2)
    of_counts, of_total = found.count_variance - DISCRETENESS, found.total_variance - DISCRETENESS
    spent = found.squared_distance / (2 * of_counts) + 1 / (2 * of_total)
    assert spent == found.rho
    best = (math.sqrt(found.squared_distance) + factors[0]) ** 2 / (2 * float(found.rho) * factors[1] ** 2)
    assert float(found.error_variance) == pytest.approx(best, rel=6e-3)
