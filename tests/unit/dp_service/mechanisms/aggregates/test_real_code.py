"""The laws that the promises are enumerated with are those of the code: it is run under every outcome of its draws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.aggregates import BoundMoments, SumShare
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import NoiseSource
from dp_service.values.bounds import Clamp
from tests.support.some import some
from tests.unit.dp_service.mechanisms.aggregates.member_rows import column_sums
from tests.unit.dp_service.mechanisms.bounded.laws import Grid
from tests.unit.dp_service.mechanisms.enumeration import RowOrder, output_law

REVERSED: RowOrder = lambda size: np.arange(size)[::-1].astype(np.int64)  # noqa: E731 - a name for a parameter
HALF = Fraction(1, 2)
# A group by its position, with N and the B of its only column.
Shown = tuple[tuple[int, int, int], ...]


def asked(min_count: int | None) -> BoundMoments:
    """Return a release with so little noise that few outcomes matter."""
    currency = Currency(Fraction(4), Fraction(1, 3))
    shares = (SumShare(Clamp(1, 2), HALF),)
    return BoundMoments(currency, Fraction(4), ContributionBound(1), min_count, HALF, shares)


def released(mechanism: BoundMoments, counts: list[int], sums: list[int], noise: NoiseSource) -> Shown:
    """Run the mechanism, and check the order of what it shows."""
    of_column = column_sums(sums)
    found = mechanism.run(Histogram.from_element_order(counts), (of_column,), noise)
    rows = list(
        zip(found.groups.tolist(), found.counts.tolist(), found.columns[0].centred.tolist(), strict=True)
    )
    assert rows == sorted(rows, key=lambda row: (-row[1], row[0]))
    return tuple(sorted(rows))


def expected(mechanism: BoundMoments, counts: list[int], sums: list[int]) -> dict[Shown, float]:
    """Return the same law, as a product of laws of groups."""
    law: dict[Shown, float] = {(): 1.0}
    for group, (count, centred) in enumerate(zip(counts, sums, strict=True)):
        after: dict[Shown, float] = {}
        for (before, mass), (row, own) in product(law.items(), of_group(mechanism, group, count, centred)):
            key = before if row is None else (*before, row)
            after[key] = after.get(key, 0.0) + mass * own
        law = after
    return law


def of_group(
    mechanism: BoundMoments, group: int, count: int, centred: int
) -> list[tuple[tuple[int, int, int] | None, float]]:
    """Return every outcome of one group with its probability; None: it is hidden."""
    variances = mechanism.count_variance, mechanism.sum_variance(0)
    grids = [Grid.of(variance, at, at) for variance, at in zip(variances, (count, centred), strict=True)]
    laws = [
        grid.law(variance, at) for grid, variance, at in zip(grids, variances, (count, centred), strict=True)
    ]
    outcomes: list[tuple[tuple[int, int, int] | None, float]] = []
    for (n, p), (b, q) in product(enumerate(laws[0], grids[0].lowest), enumerate(laws[1], grids[1].lowest)):
        least = mechanism.min_count
        hides = least is not None and (count < least or n <= (mechanism.threshold or 0))
        if p * q > 1e-12:
            outcomes.append((None if hides else (group, n, b), float(p * q)))
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("counts", [[0, 2], [3, 3], [1, 4]])
@pytest.mark.parametrize("min_count", [None, 1, 2])
@pytest.mark.parametrize("row_order", [np.arange, REVERSED])
def test_a_release_has_the_law_that_is_enumerated(
    counts: list[int], min_count: int | None, row_order: RowOrder
) -> None:
    """Two groups, whatever the order of the rows; what is below m or not above T is never shown, nor is its B."""
    mechanism, sums = asked(min_count), [-1, 2]
    found = output_law(lambda noise: released(mechanism, counts, sums, noise), radius=3, row_order=row_order)
    wanted = expected(mechanism, counts, sums)
    assert found.lost < 1e-6
    for outcome in some(set(found.mass) | set(wanted)):
        assert math.isclose(
            found.mass.get(outcome, 0.0), wanted.get(outcome, 0.0), rel_tol=1e-6, abs_tol=2e-6
        )


def test_counts_of_their_own_come_with_their_columns() -> None:
    """Two columns, of which the second has its own N; sums and counts stay with their group in every order."""
    quarter = Fraction(1, 4)
    shares = (SumShare(Clamp(0, 1), quarter), SumShare(Clamp(0, 9), quarter, quarter))
    mechanism = BoundMoments(
        Currency(Fraction(10**3), Fraction(1, 3)), Fraction(4), ContributionBound(1), None, quarter, shares
    )
    sums = (column_sums([5, -7, 3]), column_sums([40, 50, 60], [4, 5, 6]))

    def run(noise: NoiseSource) -> tuple[tuple[int, ...], ...]:
        found = mechanism.run(Histogram.from_element_order([7, 9, 9]), sums, noise)
        columns = [(column.centred, column.counts) for column in found.columns]
        arrays = [found.groups, found.counts, *(array for pair in columns for array in pair)]
        return tuple(tuple(array.tolist()) for array in arrays)

    law = output_law(run, radius=0, row_order=REVERSED)
    assert list(law.mass) == [((1, 2, 0), (9, 9, 7), (-7, 3, 5), (9, 9, 7), (50, 60, 40), (5, 6, 4))]
