"""From zCDP to DP: published tables, other people's test vectors, and Google's accountant."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from dp_service.accounting.zcdp import epsilon_of_zcdp
from tests.support.zcdp import delta_of_zcdp

# rho, epsilon, the DP-SIPS paper's delta (its own delta included), its alpha: tables 4 and 5.
PUBLISHED = [
    ("0.001", "1e-5", "0.14", "5.00e-5", 77.033),
    ("0.005", "1e-5", "0.338", "5.08e-5", 37.037),
    ("0.01", "1e-5", "0.495", "4.99e-5", 27.128),
    ("0.05", "1e-5", "1.2", "4.99e-5", 13.283),
    ("0.1", "1e-5", "1.765", "4.96e-5", 9.86),
    ("0.5", "1e-5", "4.41", "4.90e-5", 5.127),
    ("0.005", "1e-9", "0.62", "1.04e-9", 64.073),
    ("0.0055", "1e-8", "0.62", "1.02e-8", 58.443),
    ("0.006", "1e-7", "0.62", "1.01e-7", 53.732),
    ("0.007", "1e-6", "0.62", "1.01e-6", 46.334),
    ("0.0083", "1e-5", "0.62", "1.01e-5", 39.398),
    ("0.01", "1e-4", "0.62", "1.01e-4", 33.037),
    ("0.013", "1e-3", "0.62", "1.01e-3", 25.863),
]
# rho, epsilon, delta of OpenDP's tests.
OPENDP = [
    ("0.05", 0.25, 0.0817727531036957),
    ("5e-30", 1e-13, 2.619676329730346e-234),
    ("0.5", 0.0, 0.5588356393474351),
    ("0.03125", 0.6880024554878086, 0.001),
    ("0.03125", 0.0, 0.1508457845622862),
    ("0.005", 0.42994146883694934, 1e-06),
]
RHOS = st.fractions(Fraction(1, 10**9), 100)
DELTAS = st.fractions(Fraction(1, 10**30), Fraction(1, 2))


@pytest.mark.parametrize(("rho", "own_delta", "epsilon", "delta", "alpha"), PUBLISHED)
def test_the_conversions_of_the_dp_sips_paper_come_out(
    rho: str, own_delta: str, epsilon: str, delta: str, alpha: float
) -> None:
    """Corollary 9: delta + (1 - delta) delta', and the best alpha; the tables round some last digits and cut others."""
    found = delta_of_zcdp(Fraction(rho), Fraction(epsilon))
    total = float(own_delta) + (1 - float(own_delta)) * found.value
    last_digit = 0.01 * 10.0 ** int(delta.partition("e")[2])
    assert float(delta) == pytest.approx(total, abs=last_digit)
    assert alpha == pytest.approx(found.alpha, abs=0.011)


@pytest.mark.parametrize(("rho", "epsilon", "delta"), OPENDP)
def test_opendps_vectors_come_out(rho: str, epsilon: float, delta: float) -> None:
    """Delta from epsilon, also 234 orders of magnitude below one."""
    # OpenDP searches alpha in floats; its 5e-30 is right to thirteen digits.
    assert math.isclose(delta, delta_of_zcdp(Fraction(rho), Fraction(epsilon)).value, rel_tol=1e-9)


@pytest.mark.parametrize(("rho", "epsilon", "delta"), [each for each in OPENDP if each[1] > 0])
def test_opendps_vectors_come_out_backwards(rho: str, epsilon: float, delta: float) -> None:
    """Epsilon from delta is the inverse."""
    assert math.isclose(epsilon, epsilon_of_zcdp(Fraction(rho), Fraction(delta)).value, rel_tol=1e-9)


def test_googles_gaussian_has_epsilon_one() -> None:
    """Sigma 4.530877117 at delta 1e-6 is epsilon 1 by Renyi accounting, of which zCDP is a special case."""
    found = epsilon_of_zcdp(1 / (2 * Fraction("4.530877117") ** 2), Fraction("1e-6"))
    assert 1.0 == pytest.approx(found.value, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.001, 0.1, 8.4375])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_googles_accountant_agrees(rho: float, delta: float) -> None:
    """Its Renyi conversion on a fine grid of orders never finds a smaller epsilon, and one hardly larger."""
    # Here alone: it takes two seconds to import, which every worker of a run would spend.
    from dp_accounting import rdp  # noqa: PLC0415

    orders = 1 + np.geomspace(1e-3, 1e4, 20_000)
    theirs, _ = rdp.compute_epsilon(orders, rho * orders, delta)
    ours = epsilon_of_zcdp(Fraction(rho), Fraction(delta)).value
    assert ours <= theirs <= ours * (1 + 1e-5)


@given(RHOS, DELTAS)
def test_no_other_alpha_is_better(rho: Fraction, delta: Fraction) -> None:
    """Epsilon is the smallest over alpha: a coarse grid around it finds nothing below."""
    found = epsilon_of_zcdp(rho, delta)
    for factor in ("0.5", "0.9", "0.999", "1.001", "1.1", "2"):
        over = (mp.mpf(found.alpha) - 1) * mp.mpf(factor)
        if over > 0:
            log_rest = (over + 1) * mp.log(over / (over + 1)) - mp.log(over) - mp.log(mp.mpf(delta))
            assert found.value <= max(0, (over + 1) * mp.mpf(rho) + log_rest / over) * (1 + 1e-12)


@pytest.mark.slow
@given(RHOS, DELTAS)
def test_the_two_directions_are_inverse(rho: Fraction, delta: Fraction) -> None:
    """The delta of the epsilon of a delta is that delta, rounded up twice."""
    epsilon = epsilon_of_zcdp(rho, delta).value
    back = delta_of_zcdp(rho, Fraction(epsilon)).value
    assert back <= float(delta) * (1 + 1e-9)
    if epsilon > 0:
        assert math.isclose(float(delta), back, rel_tol=1e-6)


@given(RHOS, st.fractions(Fraction(1, 100), 20))
def test_gaussian_noise_keeps_the_delta(rho: Fraction, epsilon: Fraction) -> None:
    """A rho-zCDP mechanism's true delta, that of the Gaussian by its closed form, is below; often only just."""
    with mp.workdps(60):
        mu = mp.sqrt(2 * mp.mpf(rho.numerator) / rho.denominator)
        e = mp.mpf(epsilon.numerator) / epsilon.denominator
        true = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
    assert true <= delta_of_zcdp(rho, epsilon).value


@pytest.mark.parametrize(
    ("rho", "delta", "named"),
    [
        (Fraction(0), Fraction(1, 2), "rho"),
        (Fraction(1), Fraction(0), "delta"),
        (Fraction(1), Fraction(1), "delta"),
    ],
)
def test_arguments_are_named(rho: Fraction, delta: Fraction, named: str) -> None:
    """What cannot be converted is refused by name."""
    with pytest.raises(ValueError, match=f"^{named} must be"):
        epsilon_of_zcdp(rho, delta)


def test_a_negative_epsilon_is_refused() -> None:
    """Zero is an epsilon, less is none."""
    assert 0 < delta_of_zcdp(Fraction(1), Fraction(0)).value < 1
    with pytest.raises(ValueError, match=r"^epsilon must be"):
        delta_of_zcdp(Fraction(1), Fraction(-1))
