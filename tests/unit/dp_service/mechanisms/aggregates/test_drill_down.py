"""Totals are paid for by what a member can move them, and other is what the shown rows leave of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import pytest

from dp_service.mechanisms import Cost, Currency
from dp_service.mechanisms.aggregates import BoundMoments, DrillDown, SumShare, named_totals, total_bound
from dp_service.mechanisms.aggregates.drill_down import Released
from dp_service.mechanisms.bounded import ContributionBound, Counted
from dp_service.values.bounds import Clamp
from tests.unit.dp_service.mechanisms.bounded.laws import Grid, worst_rho

CURRENCY = Currency(Fraction(2), Fraction(1, 20))
HALF = Fraction(1, 2)
CLAMP = Clamp(-1, 2)
PAIRS = tuple(product(range(2), range(3)))

# The rows of a member, at most tau for each pair (a, b): its values, within the clamp.
Member = dict[tuple[int, int], tuple[int, ...]]


def drill_down(bound: ContributionBound, *, has_one_value: bool = False) -> DrillDown:
    """Return rows and totals of one column, with two and one units."""
    rows = BoundMoments(CURRENCY, Fraction(2), bound, 1, HALF, (SumShare(CLAMP, HALF),))
    of_total = total_bound(bound, has_one_value=has_one_value)
    totals = replace(rows, units=Fraction(1), bound=of_total, min_count=None)
    return DrillDown(rows, totals, has_one_value)


def members(bound: ContributionBound) -> Iterator[Member]:
    """Yield every member with at most Delta pairs and tau rows of an end of the clamp in each."""
    of_pair = [rows for size in range(1, bound.tau + 1) for rows in product((-1, 2), repeat=size)]
    for size in range(1, bound.typical + 1):
        for pairs in combinations(PAIRS, size):
            for rows in product(of_pair, repeat=size):
                yield dict(zip(pairs, rows, strict=True))


def moved(member: Member) -> list[tuple[int, int]]:
    """Return by how much a member moves n and B of the total of each a."""
    values = [[value for (a, _), rows in member.items() if a == each for value in rows] for each in range(2)]
    return [(len(of_a), sum(2 * value - CLAMP.centre for value in of_a)) for of_a in values]


def relative_rho(totals: Released, moves: list[tuple[int, int]]) -> float:
    """Return the Renyi divergence of all totals over its order, relative to what is promised."""
    assert isinstance(totals, BoundMoments)
    found = []
    for by, variance in [
        (move[place], variance)
        for move in moves
        for place, variance in enumerate((totals.count_variance, totals.sum_variance(0)))
    ]:
        grid = Grid.of(variance, min(0, by), max(0, by))
        found.append((grid.law(variance, 0), grid.law(variance, by)))
    return worst_rho([law for law, _ in found], [law for _, law in found]) / float(totals.rho)


@pytest.mark.parametrize("bound", [ContributionBound(2), ContributionBound(2, 2, 1, Counted.EVENTS)], ids=str)
def test_no_member_moves_the_totals_by_more_than_was_paid_for(bound: ContributionBound) -> None:
    """And one that has all its contributions in one total does by exactly that; priced as rows they are too cheap."""
    asked = drill_down(bound)
    moves = {tuple(moved(member)) for member in members(bound)}
    worst = max(relative_rho(asked.totals, list(each)) for each in moves)
    assert worst == pytest.approx(1, abs=0.013)
    as_rows = replace(asked.totals, bound=bound)
    assert max(relative_rho(as_rows, list(each)) for each in moves) == pytest.approx(2, abs=0.03)


def test_members_are_counted_where_each_has_one_value() -> None:
    """Then a member is in each total once, and totals cost what rows do."""
    asked = drill_down(ContributionBound(2), has_one_value=True)
    moves = [[(1, 3), (1, -3)], [(1, 3), (0, 0)]]
    assert max(relative_rho(asked.totals, each) for each in moves) == pytest.approx(1, abs=0.013)


def test_both_are_paid_for() -> None:
    """The units of both, and one call."""
    asked = drill_down(ContributionBound(3))
    assert asked.worst_case_cost() == Cost(3, 1)
    assert asked.rho == Fraction(3, 2)


def test_totals_over_an_unknown_domain_are_those_that_a_shown_row_names() -> None:
    """No other one, however large it is."""
    assert named_totals([4, 1, 4, 2]) == [1, 2, 4]
    assert named_totals([]) == []


BOUND = ContributionBound(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda good: replace(good, totals=replace(good.totals, min_count=1)), "threshold"),
        (lambda good: replace(good, totals=replace(good.totals, bound=BOUND)), "total_bound"),
        (lambda good: replace(good, has_one_value=True), "total_bound"),
        (
            lambda good: replace(
                good, totals=replace(good.totals, currency=Currency(Fraction(1), Fraction(1, 20)))
            ),
            "currency",
        ),
        (
            lambda good: replace(good, totals=replace(good.totals, columns=(SumShare(Clamp(0, 1), HALF),))),
            "clamps",
        ),
    ],
)
def test_totals_that_do_not_fit_their_rows_are_refused(
    make: Callable[[DrillDown], object], message: str
) -> None:
    """The message says why."""
    with pytest.raises(ValueError, match=message):
        make(drill_down(BOUND))
