"""Lemma 4.4, against its printed sum and the newer bound."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from dp_service.accounting.bounds import Portion, dong_durfee_rogers
from dp_service.accounting.rounding import rounded_up
from research.accounting.durfee_rogers import durfee_rogers

EPSILONS = st.fractions(Fraction(1, 10**12), 10)


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


def test_slack_is_checked() -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match=r"^slack must be"):
        durfee_rogers([], Fraction(1))
