"""Weighted members: promises hold for every small data set and for members of any size; each wrong form breaks one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_service.bounding.weights import MAX_SQUARED_DISTANCE, least_kept
from dp_service.mechanisms.bounded import BoundGauss
from dp_service.mechanisms.bounded.threshold import _Hiding, hiding_threshold
from dp_service.queries.domains import MAXIMUM_ELEMENTS
from dp_service.queries.policy_types import MAXIMUM_ROWS_OF_MEMBER
from dp_service.terms import GRID
from tests.support.bounding import weight, weighted

from .weighted import RULE, Broken, Cells, Profile, Rule, compared, look, members, neighbours, tail

SIZES = [*range(1, 130), 199, 200, 255, 256, 400, 625, 1000, 2047, 4095, 4096, 6400, 9999, 10_000]
"""How many elements members have, up to 10,000."""


def up(distance: int, square: int) -> int:
    """Round a weight up."""
    return min(GRID, math.isqrt(distance // square) + 1)


def ceiling(distance: int, square: int) -> int:
    """Round a weight up where it is no whole number."""
    return min(GRID, math.ceil(math.sqrt(distance / square)))


def rounded(distance: int, square: int) -> int:
    """Round a weight to the nearest."""
    return min(GRID, round(math.sqrt(distance / square)))


def of_a_quotient(distance: int, square: int) -> int:
    """Compute G sqrt(Delta / n)."""
    return min(GRID, math.floor(GRID * math.sqrt(distance / GRID**2 / square)))


def around(asked: BoundGauss, elements: int) -> list[Cells]:
    """Return counts of others that one member may lift over m, and counts far above it."""
    limit = GRID * (asked.min_count or 1)
    edges = (0, limit - GRID, limit - 50, limit - 1, limit, 90 * GRID)
    return list(product(edges, repeat=elements))


LOOKS = [
    (look(1, None), 3, 1),
    (look(2, None), 3, 1),
    (look(1, None, tau=3), 3, 4),
    (look(2, None, tau=2), 3, 3),
    (look(1, None, periods=2), 2, 1),
    (look(1, None, tau=2, periods=2), 2, 3),
    (look(1, None, tau=2, periods=3), 2, 2),
]
UNKNOWN = [
    (look(1, 1), 2, 1),
    (look(1, 3), 3, 1),
    (look(2, 2), 3, 1),
    (look(1, 1, tau=3), 2, 4),
    (look(2, 4, tau=2), 2, 3),
    (look(1, 2, periods=2), 2, 1),
    (look(1, 2, tau=2, periods=2), 2, 2),
    (look(1, 1, delta=Fraction(1, 10**10), units=Fraction(5)), 2, 1),
]


@pytest.mark.parametrize(("asked", "elements", "most_rows"), LOOKS)
def test_a_known_domain_is_within_rho(asked: BoundGauss, elements: int, most_rows: int) -> None:
    """For every data set and one member more, the counts are within D."""
    worst = Broken.worst(neighbours(asked, elements, most_rows=most_rows))
    assert worst.is_kept(asked)
    assert worst.relative_distance > Fraction(1, 2)


@pytest.mark.parametrize(("asked", "elements", "most_rows"), UNKNOWN)
def test_an_unknown_domain_is_within_rho_but_for_delta(
    asked: BoundGauss, elements: int, most_rows: int
) -> None:
    """Whatever others add: elements that a member lifts over m are hidden, the others are within D."""
    worst = Broken.worst(neighbours(asked, elements, most_rows=most_rows, base=around(asked, elements)))
    assert worst.is_kept(asked)
    assert worst.shown > 0


@pytest.mark.parametrize(("asked", "elements", "most_rows"), LOOKS)
def test_a_second_look_is_within_rho_for_all_names(asked: BoundGauss, elements: int, most_rows: int) -> None:
    """Members are weighted within the names, and what they add to these is within D."""
    every = range(elements)
    for names in chain.from_iterable(combinations(every, size) for size in range(1, elements + 1)):
        assert Broken.worst(neighbours(asked, elements, most_rows=most_rows, within=names)).is_kept(asked)


def profiles(tau: int) -> Iterator[Profile]:
    """Yield members of up to 10,000 elements, of one row or of several in each, and of some of both."""
    for size in SIZES:
        for rows in {1, 2, tau}:
            yield Profile({rows: size})
        for few in (1, 2, 7):
            if tau > 1:
                yield Profile({1: size, tau: few})


@pytest.mark.parametrize(
    "asked",
    [
        look(1, 1),
        look(4, 1),
        look(49, 1),
        look(32, 20, delta=Fraction(1, 10**10), units=Fraction(1, 8)),
        look(2, 3, tau=8),
        look(16, 1, tau=200, delta=Fraction(1, 10**10), units=Fraction(1, 8)),
    ],
    ids=str,
)
def test_members_of_any_size_are_within_rho_and_delta(asked: BoundGauss) -> None:
    """Of 1 to 10,000 elements, each of which only this member lifts over m, or none of which it does."""
    limit = GRID * (asked.min_count or 1)
    for profile in profiles(asked.bound.tau):
        for before in (limit - 1, limit - 13, limit):
            assert profile.compared(asked, RULE, before).is_kept(asked), (profile, before)


@given(st.integers(1, 10**6), st.integers(1, 1000), st.integers(1, 2**40))
def test_a_weight_is_the_largest_that_the_bound_allows(delta: int, tau: int, square: int) -> None:
    """W^2 Q is within D, and W + 1 is not, but for W = G."""
    distance = delta * tau**2 * GRID**2
    found = weight(distance, square)
    assert found**2 * square <= distance or (found == GRID and square <= delta * tau**2)
    assert found == GRID or (found + 1) ** 2 * square > distance


@given(st.integers(1, MAX_SQUARED_DISTANCE - 1), st.integers(1, MAX_SQUARED_DISTANCE))
def test_floats_give_the_same_weight(distance: int, square: int) -> None:
    """FLOOR(SQRT(FLOOR(D / Q))) as an engine computes it."""
    assert math.floor(math.sqrt(math.floor(distance / square))) == math.isqrt(distance // square)


def test_no_policy_states_so_many_rows_or_elements_that_floats_would_not_do() -> None:
    """Of Delta * (rows / Delta)^2 the largest is at one of the ends; a sum counts in up to 1024 steps."""
    most = max(MAXIMUM_ROWS_OF_MEMBER**2, MAXIMUM_ELEMENTS * 1024**2)
    assert most * GRID**2 < MAX_SQUARED_DISTANCE


@given(st.integers(1, 2**26 - 1), st.integers(1, 2**26), st.integers(-1, 1))
def test_floats_give_the_same_weight_where_the_quotient_is_nearly_a_square(
    root: int, square: int, off: int
) -> None:
    """Just below, at and above the square of a whole number."""
    distance = root * root * square + off
    if 0 < distance < MAX_SQUARED_DISTANCE:
        assert math.floor(math.sqrt(math.floor(distance / square))) == math.isqrt(distance // square)


def test_the_reference_for_engines_weights_all_cells_alike() -> None:
    """And leaves out what is below the least contribution."""
    assert weighted([1, 1, 1], GRID**2) == [57, 57, 57]
    assert weighted([1, 4], 16 * GRID**2, least=least_kept(GRID)) == [97, 388]
    assert weighted([1, 9], 81 * GRID**2 // 81, least=least_kept(GRID)) == [0, 99]
    assert weighted([], GRID**2) == []


class TestWrongForms:
    """Each breaks a promise, or gives other numbers than the rule."""

    def test_members_without_weights(self) -> None:
        """A member's second element is noise for one only."""
        asked = look(1, None)
        wrong = Broken.worst(neighbours(asked, 2, rule=Rule(weigh=None)))
        assert wrong.relative_distance == 2

    @pytest.mark.parametrize("wrong", [up, ceiling, rounded])
    def test_weights_that_are_rounded_up(self, wrong: object) -> None:
        """Three elements of a bound of 1 count with 58 of 100 each."""
        found = Broken.worst(neighbours(look(1, None), 3, rule=Rule(weigh=wrong)))  # type: ignore[arg-type]
        assert found.relative_distance > 1

    def test_weights_of_a_quotient(self) -> None:
        """G sqrt(Delta / n) in floats is one too small at (49, 625): no engine's number is to depend on that."""
        assert (weight(49 * GRID**2, 625), of_a_quotient(49 * GRID**2, 625)) == (28, 27)

    def test_weights_from_before_the_filters(self) -> None:
        """A member loses what it has in elements that are not asked for."""
        asked, wrong = look(1, None), Rule(seen=lambda every, left: every)
        assert RULE.added(((1, 1),), asked.bound, within=[0], cuts=False) == (GRID, 0)
        assert wrong.added(((1, 1),), asked.bound, within=[0], cuts=False) == (70, 0)

    def test_a_second_look_with_the_squares_of_the_first(self) -> None:
        """If the first look counted elements, rows in the names would be weighted as if each were one."""
        asked = look(1, None, tau=3)
        wrong = Rule(seen=lambda every, left: tuple(min(cell, 1) for cell in every))
        found = Broken.worst(neighbours(asked, 2, rule=wrong, most_rows=3, within=[0]))
        assert found.is_kept(asked)
        found = Broken.worst(neighbours(asked, 2, rule=wrong, most_rows=3))
        assert found.relative_distance > 1

    @pytest.mark.parametrize("periods", [2, 3])
    def test_periods_whose_weights_are_added_up(self, periods: int) -> None:
        """P Delta is for the largest weight of a member: SUM(weight) of a copy is at P^2 Delta, which it reaches."""
        asked = look(1, None, periods=periods)
        found = Broken.worst(neighbours(asked, 2, rule=Rule(adds_up=True)))
        assert found.relative_distance == periods

    def test_a_threshold_of_equal_weights_over_all_periods(self) -> None:
        """T for members of t elements with W(t) of P Delta forgets those who hold one element in every period."""
        asked = look(1, 2, tau=2, periods=2, units=Fraction(40))
        threshold = of_equal_weights(asked)
        worst = Broken.worst(neighbours(asked, 2, most_rows=2, base=around(asked, 2), threshold=threshold))
        assert worst.shown > 1.2 * asked.currency.delta

    def test_small_contributions_that_are_kept(self) -> None:
        """A member of 10,000 elements brings each of them with a small chance, and some of them surely."""
        asked = look(1, 1)
        wrong = Profile({1: 10_000}).compared(asked, Rule(least=1), GRID - 1)
        assert wrong.shown > 1

    @pytest.mark.parametrize("min_count", [1, 3])
    def test_a_threshold_that_forgets_something(self, min_count: int) -> None:
        """What a member adds, m, or that small contributions are the rarer the more there are."""
        asked = look(1, min_count)
        assert asked.threshold is not None
        limit = GRID * min_count
        for wrong in (asked.threshold - GRID, asked.threshold - limit + 1):
            assert compared(asked, [limit - 1], [GRID], threshold=wrong).shown > asked.currency.delta
        of_ends = limit - 1 + GRID + math.ceil(1.645 * math.sqrt(asked.variance))
        many = Profile({1: 64}).compared(asked, RULE, limit - 1, threshold=of_ends)
        assert many.shown > asked.currency.delta


def of_equal_weights(asked: BoundGauss) -> int:
    """Return the smallest T that hides t elements of the weight that P Delta leaves each, for every t."""
    bound, delta = asked.bound, float(asked.currency.delta)
    hidden = GRID * (asked.min_count or 1) - 1
    threshold = hidden
    for t in range(1, 65 * bound.typical * bound.periods):
        y = bound.tau * weight(bound.periods * bound.typical * GRID**2, t)
        while t * tail(asked.variance, threshold - hidden - y) > delta:
            threshold += 1
    return threshold


@pytest.mark.parametrize(
    "asked",
    [
        look(1, 1),
        look(2, 2, tau=2, periods=2, units=Fraction(40)),
        look(1, 1, delta=Fraction(1, 2), units=Fraction(40)),
        look(1, 1, delta=Fraction(9, 10), units=Fraction(1, 100)),
    ],
    ids=str,
)
def test_the_threshold_is_the_smallest_that_suffices_for_every_contribution(asked: BoundGauss) -> None:
    """Compared with a search of contributions one by one: of many, of every seventh and the largest."""
    bound, delta = asked.bound, asked.currency.delta
    found = hiding_threshold(bound, asked.variance, delta, asked.min_count or 1)
    hiding = _Hiding(asked.variance, delta / bound.squared_distance)
    hidden = GRID * (asked.min_count or 1) - 1
    tried = bound.contributions if len(bound.contributions) < 100 else bound.contributions[::-7]
    assert found - hidden == max(map(hiding.needed, (*tried, bound.contributions[0])))


def test_every_member_is_tried() -> None:
    """Of two elements and up to two rows in each, in two periods: nine cells in each period."""
    assert len(members(2, periods=2, most_rows=2)) == 81
