"""The composition bounds, against closed forms, published numbers and each other."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from dp_service.accounting.bounds import Portion, dong_durfee_rogers, durfee_rogers, rho_of
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
@settings(deadline=None, derandomize=True)
def test_the_drift_is_at_most_an_eighth_of_the_square(epsilon_per: Fraction) -> None:
    """Hoeffding's lemma; and for small e it is hardly less, on either side of where the code changes its formula."""
    ratio = drift_of(epsilon_per) / (float(epsilon_per) ** 2 / 8)
    assert ratio <= 1 + 1e-9
    # x - 1 - ln x = e^2/8 - e^4/576 + ..., the alternating series of its derivative.
    assert ratio >= 1 - float(epsilon_per) ** 2 / 72 - 1e-9


@pytest.mark.slow
@given(EPSILONS, st.integers(1, 10**6), st.fractions(Fraction(1, 10**20), Fraction(9, 10)))
@settings(deadline=None, derandomize=True)
def test_the_newer_bound_is_never_larger_than_lemma_4_4_without_adding_up(
    epsilon_per: Fraction, information: int, slack: Fraction
) -> None:
    """Only the drifts differ, and e tanh(e/2) is the larger one."""
    portion = Portion(epsilon_per, information)
    older, newer = durfee_rogers([portion], slack), rounded_up(dong_durfee_rogers(portion, slack))
    adding = float(information * epsilon_per)
    assert newer <= older * (1 + 1e-9) or math.isclose(adding, older)


@pytest.mark.slow
@given(
    st.lists(st.tuples(EPSILONS, st.integers(0, 10)), max_size=4), st.sampled_from(["1e-2", "1e-6", "1e-12"])
)
@settings(deadline=None, derandomize=True)
def test_lemma_4_4_agrees_with_its_printed_sum_for_unequal_epsilons(
    units: list[tuple[Fraction, int]], slack: str
) -> None:
    """The three expressions of the lemma, mechanism by mechanism, with ordinary high-precision numbers."""
    found = durfee_rogers([Portion(*each) for each in units], Fraction(slack))
    each_one = [mp.mpf(e.numerator) / e.denominator for e, count in units for _ in range(count)]
    with mp.workdps(40):
        deviation = mp.sqrt(mp.fsum(e**2 for e in each_one) / 2 * mp.log(1 / mp.mpf(slack)))
        expected = min(
            mp.fsum(each_one),
            mp.fsum(e**2 / 2 for e in each_one) + deviation,
            mp.fsum(e * mp.tanh(e / 2) for e in each_one) + deviation,
        )
    assert math.isclose(float(expected), found, rel_tol=1e-12)


def test_how_units_are_portioned_does_not_matter() -> None:
    """Ten mechanisms are ten mechanisms, named together or apart."""
    e, slack = Fraction("0.1"), Fraction("1e-6")
    assert durfee_rogers([Portion(e, 1)] * 1000, slack) == durfee_rogers([Portion(e, 1000)], slack)


def test_rho_is_exact() -> None:
    """3000 units of 0.15 have rho 8.4375."""
    assert Fraction("8.4375") == rho_of(Portion(Fraction("0.15"), 3000))


def test_slack_is_checked() -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match=r"^slack must be"):
        durfee_rogers([], Fraction(1))
