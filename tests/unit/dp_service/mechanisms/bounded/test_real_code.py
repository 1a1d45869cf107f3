"""The laws that the promises are enumerated with are those of the code: it is run under every outcome of its draws."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.bounding.contributions import Contributions
from dp_service.mechanisms import Histogram
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, ShiftedCounts
from dp_service.noise import NoiseSource
from tests.support.shift_estimates import estimates
from tests.support.some import some
from tests.unit.dp_service.mechanisms.enumeration import RowOrder, output_law

from .laws import Grid, joint, marginal, names_law
from .member_data import Counts, histogram, members
from .promises import one_look, shift, two_looks

RADIUS = 8
REVERSED: RowOrder = lambda size: np.arange(size)[::-1].astype(np.int64)  # noqa: E731 - a name for a parameter


def as_numbers(counts: Counts) -> Histogram:
    """Return counts as a histogram."""
    return Histogram.from_element_order(np.array(counts, dtype=np.int64))


def released(look: BoundGauss, counts: Counts, noise: NoiseSource) -> tuple[int | None, ...]:
    """Return by element the noisy count that is shown, or None."""
    selection = look.run(as_numbers(counts), noise)
    assert selection.noisy_counts is not None
    shown = dict(zip(selection.indices.tolist(), selection.noisy_counts.tolist(), strict=True))
    ordered = sorted(shown, key=lambda element: (-shown[element], element))
    assert selection.indices.tolist() == ordered
    return tuple(shown.get(element) for element in range(len(counts)))


def expected(look: BoundGauss, counts: Counts) -> dict[tuple[int | None, ...], float]:
    """Return the same law as a product of laws for each element."""
    grid = Grid.of(look.variance, 0, max(counts))
    values = [None, *range(grid.lowest, grid.lowest + grid.size)]
    law = joint([marginal(look, count, grid) for count in counts])
    return dict(zip(product(values, repeat=len(counts)), law.tolist(), strict=True))


def assert_same(found: Mapping[Hashable, float], wanted: Mapping[Hashable, float], lost: float) -> None:
    """Compare two laws; `lost` is what the first one leaves out."""
    assert lost < 1e-6
    for outcome in set(found) | set(wanted):
        assert math.isclose(found.get(outcome, 0.0), wanted.get(outcome, 0.0), rel_tol=1e-6, abs_tol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (2, 2), (1, 4), (3, 5)])
@pytest.mark.parametrize(
    "look", [one_look(1, 1), one_look(1, 3), one_look(1, None), replace(one_look(2, 1), units=Fraction(5, 2))]
)
@pytest.mark.parametrize("row_order", [np.arange, REVERSED])
def test_one_look_has_the_law_that_is_enumerated(
    look: BoundGauss, counts: Counts, row_order: RowOrder
) -> None:
    """For two elements, whatever the order of the rows; what is below m is never shown."""
    law = output_law(lambda noise: released(look, counts, noise), radius=RADIUS, row_order=row_order)
    assert_same(law.mass, expected(look, counts), law.lost)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(5, 5, 4), (2, 6, 0)])
@pytest.mark.parametrize("most_names", [1, 2])
def test_names_have_the_law_that_is_enumerated(counts: Counts, most_names: int) -> None:
    """Three elements, of which the first by noisy count are named, ties by element."""
    looks = two_looks(1, 1, most_names, units=4)
    look = looks.names_look
    law = output_law(lambda noise: tuple(looks.draw_names(as_numbers(counts), noise).tolist()), radius=5)
    grid = Grid.of(look.variance, 0, max(counts))
    wanted = names_law([marginal(look, count, grid) for count in counts], most_names)
    assert_same(law.mass, wanted, law.lost)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("counts", "total"), [((1, 0), 1), ((2, 3), 4)])
def test_the_shift_has_the_law_that_is_enumerated(counts: Counts, total: int) -> None:
    """Two elements and the total: three independent draws around b x - a n and n."""
    mechanism = shift(2, 2, units=6)
    a, b = mechanism.factors

    def run(noise: NoiseSource) -> tuple[int, ...]:
        found = mechanism.run(as_numbers(counts), total, noise)
        return (*found.moved.tolist(), found.total)

    law = output_law(run, radius=5)
    laws, ranges = [], []
    centres = [*(b * count - a * total for count in counts), total]
    for centre, variance in zip(
        centres, [mechanism.count_variance] * 2 + [mechanism.total_variance], strict=True
    ):
        grid = Grid.of(variance, centre, centre)
        laws.append(grid.law(variance, centre))
        ranges.append(range(grid.lowest, grid.lowest + grid.size))
    wanted = dict(zip(product(*ranges), joint(laws).tolist(), strict=True))
    assert_same(law.mass, wanted, law.lost)  # type: ignore[arg-type]


def test_histograms_are_those_of_bounded_contributions() -> None:
    """For distinct members in one period, the small function above counts what `Contributions.bounded` keeps."""
    possible = members(3)
    bound = ContributionBound(2)
    for data in some([tuple(possible[i : i + 4]) for i in range(0, len(possible), 4)]):
        kept = [[element for element, _ in of_period] for (of_period,) in data]
        offsets = np.cumsum([0, *map(len, kept)], dtype=np.int64)
        elements: NDArray[np.int32] = np.array([e for each in kept for e in each], dtype=np.int32)
        bounded = Contributions(offsets, elements, 3).bounded(2)
        assert histogram(data, bound, 3) == tuple(np.bincount(bounded.elements, minlength=3).tolist())


def test_the_second_look_is_over_the_names_that_the_first_one_gave() -> None:
    """No name is an empty answer, and more than M names are refused."""
    looks = two_looks(1, 1, 2)
    law = output_law(
        lambda noise: tuple(looks.draw_counts(as_numbers(()), noise).indices.tolist()), radius=RADIUS
    )
    assert law.mass == {(): 1.0}
    with pytest.raises(ValueError, match="at most 2 names"):
        output_law(lambda noise: looks.draw_counts(as_numbers((1, 1, 1)), noise).bottom, radius=1)


def test_estimates_of_the_shift_are_multiples_of_one_half() -> None:
    """They are shown as such."""
    found = ShiftedCounts(shift(2, 2), np.array([3, -1], dtype=np.int64), 4)
    assert estimates(found) == [Fraction(7, 2), Fraction(3, 2)]
    assert found.ranking() == [0, 1]
