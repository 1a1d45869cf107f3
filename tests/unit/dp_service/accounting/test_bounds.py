"""The composition bounds, against closed forms, published numbers and each other."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dp_service.accounting.bounds import Portion, dong_durfee_rogers, rho_of
from dp_service.accounting.rounding import rounded_up

NEARLY_CERTAIN = 1 - Fraction(1, 10**30)
"""With it as slack, and very many mechanisms, the deviation vanishes beside the drift."""

EPSILONS = st.fractions(Fraction(1, 10**12), 10)


def drift_of(epsilon_per: Fraction) -> float:
    """Return the expected privacy loss that Dong, Durfee and Rogers charge for one mechanism."""
    return rounded_up(dong_durfee_rogers(Portion(epsilon_per, 2**53), NEARLY_CERTAIN)) / 2**53


def test_the_drift_is_the_exponential_mechanisms_renyi_divergence_of_order_one() -> None:
    """Google's accountant is tested with 0.123301561 for e = 1."""
    assert math.isclose(0.123301561, drift_of(Fraction(1)), rel_tol=1e-7)


@given(EPSILONS)
def test_the_drift_is_at_most_an_eighth_of_the_square(epsilon_per: Fraction) -> None:
    """Hoeffding's lemma; and for small e it is hardly less, on either side of where the code changes its formula."""
    ratio = drift_of(epsilon_per) / (float(epsilon_per) ** 2 / 8)
    assert ratio <= 1 + 1e-9
    # x - 1 - ln x = e^2/8 - e^4/576 + ..., the alternating series of its derivative.
    assert ratio >= 1 - float(epsilon_per) ** 2 / 72 - 1e-9


def test_rho_is_exact() -> None:
    """3000 units of 0.15 have rho 8.4375."""
    assert Fraction("8.4375") == rho_of(Portion(Fraction("0.15"), 3000))
