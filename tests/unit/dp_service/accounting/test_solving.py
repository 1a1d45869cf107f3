"""Solving for parameters: each answer is within the target, and the next larger one is not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dp_service.accounting.composition import PublishedDomain, guarantee
from dp_service.accounting.solving import (
    Split,
    Target,
    UnreachableError,
    best_epsilon_per,
    calls_for,
    epsilon_per_for,
    information_for,
    papers_split,
    split_of,
)
from tests.support.examples import examples

PAPER = Target(Fraction("34.9"), Fraction("7e-9"))
DOMAIN = PublishedDomain(Fraction("0.1"), Fraction("1e-9"))


def worth(target: Target, split: Split, epsilon_per: Fraction, *, information: int, calls: int) -> Any:
    """Return the guarantee of a solution, by the function that everyone else uses."""
    return guarantee(
        epsilon_per,
        split.delta,
        information=information,
        calls=calls,
        slack=split.slack,
        gaussian=target.gaussian,
        domains=target.domains,
    )


def test_the_papers_split_spends_exactly_delta() -> None:
    """delta* / (4 calls) for each call, delta* / 2 as slack."""
    split = papers_split(Target(Fraction(1), Fraction("1.2e-8")), 30)
    assert Split(Fraction("1e-10"), Fraction("6e-9")) == split


@given(
    st.fractions(Fraction(1, 100), 100),
    st.sampled_from(["7e-9", "1e-6", "0.3"]),
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.booleans(),
)
@settings(max_examples=examples(10), deadline=None)
def test_epsilon_per_is_the_largest_within_the_target(
    epsilon: Fraction, delta: str, information: int, calls: int, gaussian: bool
) -> None:
    """One unit more of its last digit would be too much."""
    target = Target(epsilon, Fraction(delta), gaussian=gaussian)
    split = papers_split(target, calls)
    # What calls add to epsilon can be all of it.
    assume(2 * information * split.delta < epsilon)
    found = epsilon_per_for(target, split, information=information)
    reached = worth(target, split, found, information=information, calls=calls)
    assert reached.epsilon <= epsilon
    # The float of a delta is rounded up, so it may be one float above.
    assert reached.delta <= math.nextafter(float(target.delta), 1)
    if found < 10:
        digit = Fraction(10) ** (math.floor(math.log10(found)) - 5)
        larger = min(Fraction(10), found + digit)
        assert worth(target, split, larger, information=information, calls=calls).epsilon > epsilon


def test_the_papers_budget_leaves_room_for_a_larger_epsilon_per() -> None:
    """For (34.9, 7e-9), 3000 units and 30 calls the tight accounting allows 0.157 in place of 0.15."""
    found = epsilon_per_for(PAPER, papers_split(PAPER, 30), information=3000)
    assert 0.157 == pytest.approx(float(found), abs=5e-4)


def test_gaussian_noise_is_solved_for_by_zcdp() -> None:
    """For a single unit adding up allows all of epsilon but what a call adds, and does not cover Gaussian noise."""
    laplace, gaussian = (Target(Fraction(1), Fraction("1e-6"), gaussian=each) for each in (False, True))
    split = papers_split(laplace, 1)
    assert Fraction("0.999999") == epsilon_per_for(laplace, split, information=1)
    assert epsilon_per_for(gaussian, split, information=1) < Fraction("0.5")


def test_information_is_the_largest_within_the_target() -> None:
    """One unit more would be too much; at the paper's own split of (34.9, 7e-9) there are over 3000."""
    split, e = Split(Fraction("1e-10"), Fraction("1e-9")), Fraction("0.15")
    found = information_for(PAPER, split, epsilon_per=e)
    assert worth(PAPER, split, e, information=found, calls=30).epsilon <= 34.9
    assert worth(PAPER, split, e, information=found + 1, calls=30).epsilon > 34.9
    assert found > 3000


@pytest.mark.parametrize(("epsilon", "units"), [("1", 1), ("1.000001", 2)])
def test_what_calls_add_to_epsilon_counts(epsilon: str, units: int) -> None:
    """Two mechanisms of half an epsilon each are worth one, and a call that may be among them 5e-7 more."""
    target = Target(Fraction(epsilon), Fraction("1e-6"))
    assert units == information_for(target, papers_split(target, 1), epsilon_per=Fraction(1, 2))


def test_calls_fill_what_slack_leaves() -> None:
    """The paper's numbers: 7e-9 less a slack of 1e-9 pays for 30 calls of 1e-10, and 29 if a little is missing."""
    split = Split(Fraction("1e-10"), Fraction("1e-9"))
    assert 30 == calls_for(PAPER, split)
    assert 29 == calls_for(Target(Fraction(1), Fraction("6.99e-9")), split)


def test_domains_take_their_part_first() -> None:
    """Of epsilon, of delta and so of everything that is solved for."""
    with_domain = Target(PAPER.epsilon, PAPER.delta, domains=(DOMAIN,))
    split = Split(Fraction("1e-10"), Fraction("1e-9"))
    assert 25 == calls_for(with_domain, split)
    without = information_for(Target(PAPER.epsilon, PAPER.delta), split, epsilon_per=Fraction("0.15"))
    assert information_for(with_domain, split, epsilon_per=Fraction("0.15")) < without
    assert Fraction("6e-9") == with_domain.delta_left


def test_the_best_split_has_the_lowest_threshold() -> None:
    """No share on a grid gives a lower one; the paper's half is within one percent of it."""
    found = best_epsilon_per(PAPER, information=3000, calls=30, d_bar=1000)

    def height(split: Split, epsilon_per: Fraction) -> float:
        return math.log(1000 / split.delta) / float(epsilon_per)

    best = height(found.split, found.epsilon_per)
    for percent in (5, 30, 50, 65, 80, 95):
        split = split_of(PAPER, 30, share=Fraction(percent, 100))
        other = height(split, epsilon_per_for(PAPER, split, information=3000))
        assert best <= other * (1 + 1e-5)
        if percent == 50:
            assert other < best * 1.01
    assert worth(PAPER, found.split, found.epsilon_per, information=3000, calls=30).epsilon <= 34.9


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Target(Fraction(0), Fraction(1, 2)), "epsilon"),
        (lambda: Target(Fraction(1), Fraction(1)), "delta"),
        (lambda: Target(Fraction(1), Fraction("1e-9"), domains=(DOMAIN,)), "delta"),
        (lambda: papers_split(PAPER, 0), "calls"),
        (lambda: split_of(PAPER, 1, share=Fraction(1)), "share"),
        (lambda: epsilon_per_for(PAPER, papers_split(PAPER, 1), information=0), "information"),
        (lambda: information_for(PAPER, papers_split(PAPER, 1), epsilon_per=Fraction(11)), "epsilon_per"),
        (lambda: best_epsilon_per(PAPER, information=1, calls=1, d_bar=0), "d_bar"),
        (lambda: calls_for(PAPER, Split(Fraction("1e-10"), Fraction("1e-8"))), "slack"),
    ],
)
def test_arguments_are_named(call: Any, named: str) -> None:
    """What is out of range is refused by name."""
    with pytest.raises(ValueError, match=rf"^{named} must be"):
        call()


def test_what_no_parameter_reaches_is_said() -> None:
    """A domain alone may be worth more than the target."""
    target = Target(Fraction("0.01"), Fraction("1e-6"), domains=(DOMAIN,))
    split = Split(Fraction("1e-10"), Fraction("1e-9"))
    with pytest.raises(UnreachableError, match="epsilon must be"):
        epsilon_per_for(target, split, information=1)
    with pytest.raises(UnreachableError, match="epsilon must be"):
        information_for(target, split, epsilon_per=Fraction("0.15"))
