"""Counts and sums of weighted members, exactly: no member moves them together by more than is charged.

Draws of a discrete Gaussian law that move by c have a Renyi divergence of order a of at most a c^2 / (2 v), and are
independent, so a pair of neighbours is within rho if what a member adds to each coordinate is within its own part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import ceil, floor, isqrt

import pytest

from dp_service.mechanisms import Currency
from dp_service.mechanisms.aggregates import BoundMoments, SumShare
from dp_service.mechanisms.bounded import ContributionBound, Counted
from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.terms import GRID
from dp_service.values.bounds import Clamp
from tests.support.bounding import weight

CURRENCY = Currency(Fraction(2), Fraction(1, 20))
ELEMENTS = 4
FINE, FEW = Clamp(0, 1237), Clamp(-2, 5)

Cell = tuple[int, int]
"""How many rows a member has in an element, and how far their sum is from the middle, in parts of the width."""
Round = Callable[[Fraction], int]
Weigh = Callable[[int, int], int]


def asked(typical: int, tau: int) -> BoundMoments:
    """Return a release of counts, sums in their own steps, sums of few steps, and counts of their own."""
    counted = Counted.EVENTS if tau > 1 else Counted.MEMBERS
    quarter = Fraction(1, 4)
    columns = (SumShare(FINE, quarter), SumShare(FEW, quarter, Fraction(1, 8), GRID))
    bound = ContributionBound(typical, tau, 1, counted, GRID)
    return BoundMoments(CURRENCY, Fraction(1), bound, None, 1 - 2 * quarter - Fraction(1, 8), columns)


def members(tau: int) -> Iterator[tuple[Cell, ...]]:
    """Yield every member: no row in an element, or some, with the least, the middle or the largest sum."""
    cells = [(0, 0), *product(range(1, tau + 1), (-1, 0, 1))]
    yield from product(cells, repeat=ELEMENTS)


def losses(
    release: BoundMoments, weigh: Weigh, rounds: Round
) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Return the most that any member moves counts, both sums and own counts, each as a part of its share of rho."""
    bound, worst = release.bound, [Fraction(0)] * 4
    distance = bound.typical * bound.tau**2 * GRID**2
    variances = (
        (release.count_variance, release.share),
        (release.sum_variance(0), release.columns[0].share),
        (release.sum_variance(1), release.columns[1].share),
        (release.own_count_variance(1), release.columns[1].count_share),
    )
    for member in members(bound.tau):
        square = sum(rows**2 for rows, _ in member)
        if not square:
            continue
        by = weigh(distance, square)
        moved = (
            sum((by * rows) ** 2 for rows, _ in member),
            sum(rounds(Fraction(by * rows * part * FINE.width, GRID)) ** 2 for rows, part in member),
            sum((by * rows * part * FEW.width) ** 2 for rows, part in member),
            sum((by * rows) ** 2 for rows, _ in member),
        )
        for place, (change, (variance, share)) in enumerate(zip(moved, variances, strict=True)):
            assert variance is not None
            assert share is not None
            lost = change / (2 * (variance - DISCRETENESS)) / (release.rho * share)
            worst[place] = max(worst[place], lost)
    return worst[0], worst[1], worst[2], worst[3]


@pytest.mark.parametrize(("typical", "tau"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_no_member_moves_any_coordinate_by_more_than_its_share(typical: int, tau: int) -> None:
    """Of up to four elements, with sums at the ends and in the middle; the charge is nearly reached."""
    found = losses(asked(typical, tau), weight, int)
    assert max(found) <= 1
    assert min(found) > Fraction(99, 100)


def up(distance: int, square: int) -> int:
    """Round a weight up."""
    root = isqrt(distance // square)
    return min(GRID, root + (root**2 * square < distance))


@pytest.mark.parametrize(
    ("weigh", "rounds", "place"),
    [
        (lambda distance, square: GRID, int, 0),
        (lambda distance, square: GRID, int, 3),
        (up, int, 0),
        (up, int, 2),
        (weight, floor, 1),
        (weight, ceil, 1),
        (weight, lambda value: ceil(value * GRID), 1),
    ],
    ids=[
        "no weights",
        "own counts without weights",
        "weights rounded up",
        "sums of few steps with weights rounded up",
        "sums rounded down",
        "sums rounded up",
        "sums on the grid with the noise of their own steps",
    ],
)
def test_wrong_forms_are_found(weigh: Weigh, rounds: Round, place: int) -> None:
    """Each is worth more than is charged for some member."""
    assert losses(asked(1, 1), weigh, rounds)[place] > 1


# Of a column with a value in few rows: a total of at most 1238, and averages of 1 row, beside counts of 3 rows.
TOTAL, ROWS, ROWS_WITH_VALUE = Clamp(0, 1238, is_centred=False), 3, 1
STEP, FULL = TOTAL.cell_step, TOTAL.largest // TOTAL.cell_step
ROWS_AND_TOTALS = [(0, 0), (1, 0), (3, 1), (3, 700), (1, 1238), (3, 1238)]
"""How many rows a member has in an element, of which at most one has a value, and their total."""


def own_weights(typical: int, in_sums: int | None = None) -> BoundMoments:
    """Return a release of counts of rows, of a sum and of an average of a column, these of fewer elements."""
    quarter = Fraction(1, 4)
    columns = (
        SumShare(TOTAL, quarter, rows=1, typical=in_sums),
        SumShare(FINE, quarter, Fraction(1, 8), rows=ROWS_WITH_VALUE, typical=in_sums),
    )
    bound = ContributionBound(typical, ROWS, 1, Counted.EVENTS, GRID)
    return BoundMoments(CURRENCY, Fraction(1), bound, None, 1 - 2 * quarter - Fraction(1, 8), columns)


def own_losses(
    release: BoundMoments, cell: Callable[[int], int], *, own: bool = True, in_sums: int | None = None
) -> list[Fraction]:
    """Return the most that any member moves counts, the sum, the average's sum and its count, in parts of their rho.

    Args:
        release: The release.
        cell: The cell of a sum, of the total.
        own: Whether sum and average have weights of their own cells, and not those of the counts.
        in_sums: How many elements count in full by these weights; None: as many as in the counts.
    """
    typical, worst = release.bound.typical, [Fraction(0)] * 4
    in_sums = in_sums or typical
    variances = (
        (release.count_variance, release.share),
        (release.sum_variance(0), release.columns[0].share),
        (release.sum_variance(1), release.columns[1].share),
        (release.own_count_variance(1), release.columns[1].count_share),
    )
    for member in product(ROWS_AND_TOTALS, repeat=ELEMENTS):
        used = [min(rows, ROWS_WITH_VALUE) * bool(total) for rows, total in member]
        of_rows = weight(typical * ROWS**2 * GRID**2, sum(rows**2 for rows, _ in member) or 1)
        of_total = weight(in_sums * FULL**2 * GRID**2, sum(cell(total) ** 2 for _, total in member) or 1)
        of_value = weight(in_sums * ROWS_WITH_VALUE**2 * GRID**2, sum(each**2 for each in used) or 1)
        if not own:
            of_total = of_value = of_rows
        moved = (
            sum((of_rows * rows) ** 2 for rows, _ in member),
            sum((of_total * 2 * total // GRID) ** 2 for _, total in member),
            sum((of_value * each * FINE.width // GRID) ** 2 for each in used),
            sum((of_value * each) ** 2 for each in used),
        )
        for place, (change, (variance, share)) in enumerate(zip(moved, variances, strict=True)):
            assert variance is not None
            assert share is not None
            lost = change / (2 * (variance - DISCRETENESS)) / (release.rho * share)
            worst[place] = max(worst[place], lost)
    return worst


@pytest.mark.parametrize("typical", [1, 2, 3])
def test_no_member_moves_a_number_with_weights_of_its_own_by_more_than_its_share(typical: int) -> None:
    """Sums by the cells of their totals, averages by rows with a value; the charge is nearly reached."""
    found = own_losses(own_weights(typical), lambda total: ceil(Fraction(total, STEP)))
    assert max(found) <= 1
    assert min(found) > Fraction(98, 100)


def test_numbers_of_few_rows_have_the_noise_of_as_few_elements() -> None:
    """Their weights are by these elements, too; with weights by those of the counts a member moves them by more."""
    release, cell = own_weights(3, in_sums=2), lambda total: ceil(Fraction(total, STEP))
    found = own_losses(release, cell, in_sums=2)
    assert max(found) <= 1
    assert min(found) > Fraction(98, 100)
    assert all(lost > 1 for lost in own_losses(release, cell, in_sums=3)[1:])


@pytest.mark.parametrize(
    ("cell", "own", "places"),
    [
        (lambda total: total // STEP // 2, True, [1]),
        (lambda total: int(total == TOTAL.high) * FULL, True, [1]),
        (lambda total: ceil(Fraction(total, STEP)), False, [1, 2, 3]),
    ],
    ids=["cells of half of the total", "cells of the largest totals alone", "weights of the counts"],
)
def test_wrong_weights_of_numbers_of_their_own_are_found(
    cell: Callable[[int], int], own: bool, places: list[int]
) -> None:
    """A count of all rows bounds neither a total nor the rows with a value as their noise needs."""
    found = own_losses(own_weights(1), cell, own=own)
    assert all(found[place] > 1 for place in places)


def test_noise_of_the_rows_that_counts_are_of_is_another_one() -> None:
    """With the tau of the counts the average of few rows would have three times the noise."""
    release = own_weights(1)
    as_counts = BoundMoments(
        CURRENCY,
        release.units,
        release.bound,
        None,
        release.share,
        tuple(SumShare(each.clamp, each.share, each.count_share) for each in release.columns),
    )
    small, large = (each.sum_variance(1) - DISCRETENESS for each in (release, as_counts))
    assert large == ROWS**2 * small
