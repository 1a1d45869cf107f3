"""Prices, noise and errors are those of the published formulas."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dp_service.mechanisms import Cost, Currency
from dp_service.mechanisms.aggregates import BoundMoments, SumShare
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted
from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.values.bounds import Clamp

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))


def asked(
    clamp: Clamp, share: Fraction, bound: ContributionBound, min_count: int | None = None, units: int = 5
) -> BoundMoments:
    """Return a release of one column."""
    return BoundMoments(CURRENCY, Fraction(units), bound, min_count, share, (SumShare(clamp, 1 - share),))


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 3), Fraction(6, 7)])
def test_shares_of_the_price_add_up_exactly(share: Fraction) -> None:
    """D / (2 sigma_n^2) + W^2 D / (2 sigma_b^2), less the 1/11 of each, is rho, over members and rows."""
    for bound in (ContributionBound(7), ContributionBound(7, 3, 2, Counted.EVENTS)):
        mechanism = asked(Clamp(-5, 31), share, bound)
        distance = bound.squared_distance
        of_count, of_sum = mechanism.count_variance - DISCRETENESS, mechanism.sum_variance(0) - DISCRETENESS
        paid = distance / (2 * of_count) + 36**2 * distance / (2 * of_sum)
        assert paid == mechanism.rho == Fraction(5) * Fraction("0.15") ** 2 / 8


def test_all_coordinates_are_paid_for() -> None:
    """Two columns, one with a count of its own: five units in five parts."""
    fifth = Fraction(1, 5)
    columns = (SumShare(Clamp(0, 9), 2 * fifth), SumShare(Clamp(3, 4), fifth, fifth))
    mechanism = BoundMoments(CURRENCY, Fraction(5), ContributionBound(4), 1, fifth, columns)
    own = mechanism.own_count_variance(1)
    assert own is not None
    assert mechanism.own_count_variance(0) is None
    variances = [mechanism.count_variance, mechanism.sum_variance(0), mechanism.sum_variance(1), own]
    squares = [4, 4 * 81, 4, 4]
    assert (
        sum(square / (2 * (v - DISCRETENESS)) for square, v in zip(squares, variances, strict=True))
        == mechanism.rho
    )
    assert mechanism.worst_case_cost() == mechanism.cost(3, ended_in_bottom=False) == Cost(5, 1)


@pytest.mark.parametrize("clamp", [Clamp(0, 3000), Clamp(-3000, 0), Clamp(-10, 30), Clamp(20, 30)])
def test_a_sum_has_the_error_of_one_that_is_asked_alone(clamp: Clamp) -> None:
    """With its best share, of a SUM that moves by the larger end; another share is worse."""
    bound = ContributionBound(3)

    def error(share: Fraction) -> Fraction:
        mechanism = asked(clamp, share, bound)
        return (mechanism.sum_variance(0) + clamp.centre**2 * mechanism.count_variance) / 4

    best = clamp.count_share
    alone = max(abs(clamp.low), abs(clamp.high)) ** 2 * 3 / (2 * asked(clamp, best, bound).rho)
    assert error(best) == alone + DISCRETENESS * (1 + clamp.centre**2) / 4
    assert min(error(best * Fraction(9, 10)), error(best + (1 - best) / 10)) > error(best)


def test_a_sum_around_zero_still_has_a_count() -> None:
    """It needs none, and AVG does."""
    assert Clamp(-10, 10).count_share == Fraction(1, 16)


def test_the_threshold_is_that_of_the_counts_with_their_share() -> None:
    """No part of it comes from the sums."""
    mechanism = asked(Clamp(0, 3000), Fraction(1, 2), ContributionBound(4), min_count=3)
    counts = BoundGauss(CURRENCY, Fraction(5, 2), ContributionBound(4), 3)
    assert mechanism.threshold == counts.threshold
    assert mechanism.count_variance == counts.variance


def test_the_figures_of_online_retail() -> None:
    """The quantities of 4,372 customers, at most 3,000 each, for 5 units: alone, together, and with halves."""
    mechanism = asked(Clamp(0, 3000), Fraction(1, 2), ContributionBound(1))
    together = math.sqrt(mechanism.sum_variance(0) + 3000**2 * mechanism.count_variance) / 2
    assert together == pytest.approx(17_894, abs=1)
    split = math.sqrt(3000**2 / (2 * mechanism.rho / 2))
    assert split == pytest.approx(25_298, abs=1)
    r = 2 * 726.7 - 3000
    average = math.sqrt(mechanism.sum_variance(0) + r**2 * mechanism.count_variance) / 4372 / 2
    assert average == pytest.approx(3.24, abs=0.02)
    of_halves = math.hypot(split, 726.7 / math.sqrt(mechanism.rho)) / 4372
    assert of_halves == pytest.approx(6.0, abs=0.1)
