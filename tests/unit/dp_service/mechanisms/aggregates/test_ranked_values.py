"""Quantiles with the smallest and the largest value keep their promise together, as one question asks for them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import Cost, Currency
from dp_service.mechanisms.aggregates import CellsOfGroups, RankedValues
from dp_service.mechanisms.aggregates.quantile_gumb import Integers
from dp_service.mechanisms.aggregates.rank_scores import Wanted
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.noise.source import NoiseSource
from tests.support.examples import long_but
from tests.unit.dp_service.mechanisms.enumeration import Law, output_law

CURRENCY = Currency(Fraction(1), Fraction(1, 20))
ROUNDING = 1 + 1e-9
HALF = (Fraction(1, 2),)
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))

Groups = tuple[tuple[int, ...], ...]


def law_of(mechanism: RankedValues, groups: Groups) -> Law[tuple[int, ...]]:
    """Return the law of all that is chosen."""
    counts = np.array(groups, dtype=np.int64)
    return output_law(lambda noise: tuple(mechanism.run(counts, noise).ravel().tolist()), radius=0)


def ratios(mechanism: RankedValues, first: Groups, second: Groups) -> list[float]:
    """Return the log ratios of every outcome."""
    laws = [law_of(mechanism, each).mass for each in (first, second)]
    assert set(laws[0]) == set(laws[1])
    return [math.log(laws[0][outcome] / laws[1][outcome]) for outcome in laws[0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantiles", "extremes", "units"), [(HALF, (True, True), 3), (QUARTILES, (False, True), 3)]
)
@pytest.mark.parametrize("cell", long_but(lambda cell: cell == 2, [0, 1, 2]))
def test_all_values_of_a_group_cost_their_units_together(
    quantiles: tuple[Fraction, ...], extremes: tuple[bool, bool], units: int, cell: int
) -> None:
    """Of members in 3 cells, with one member more in any of them; each is nearly worth its unit."""
    mechanism = RankedValues(CURRENCY, CellsOfGroups(1, 3, ContributionBound(1)), quantiles, *extremes)
    assert mechanism.worst_case_cost() == Cost(units, 0)
    for counts in ((0, 0, 0), (2, 1, 0), (9, 1, 30), (40, 0, 12)):
        more = tuple(count + (place == cell) for place, count in enumerate(counts))
        found = ratios(mechanism, (counts,), (more,))
        assert max(map(abs, found)) <= units * ROUNDING


@pytest.mark.slow
def test_a_member_of_two_groups_costs_twice_as_much() -> None:
    """Two of three groups, a median and about the largest value: 4 units, and more than 3 would not do."""
    mechanism = RankedValues(
        CURRENCY, CellsOfGroups(3, 3, ContributionBound(2)), HALF, smallest=False, largest=True
    )
    assert mechanism.worst_case_cost() == Cost(4, 0)
    # One more in the last cell moves all scores of both by their whole range.
    base, more = (20, 20, 1), (20, 20, 2)
    found = ratios(mechanism, (base, base, (4, 4, 4)), (more, more, (4, 4, 4)))
    assert 3.9 < max(found) - min(found) <= 4 * ROUNDING


def test_every_value_has_noise_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest and the largest of one group must not share a draw, which is what equal labels would mean."""
    mechanism = RankedValues(
        CURRENCY, CellsOfGroups(2, 4, ContributionBound(1)), QUARTILES, smallest=True, largest=True
    )
    counts = np.ones((2, 4), dtype=np.int64)
    found = mechanism.run(counts, KeyedNoise(KeyedStream(bytes(32))))
    assert found.shape == (2, 5)

    chosen_cell = CellsOfGroups.chosen_cell

    def shared(
        among: CellsOfGroups,
        currency: Currency,
        wanted: Wanted,
        counts: Integers,
        noise: NoiseSource,
        _: str,
    ) -> int:
        return chosen_cell(among, currency, wanted, counts, noise, "the same")

    monkeypatch.setattr(CellsOfGroups, "chosen_cell", shared)
    with pytest.raises(ValueError, match="has been drawn from already"):
        mechanism.run(counts, KeyedNoise(KeyedStream(bytes(32))))


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(40, 60, 60), (0, 140, 0), (60, 0, 60)])
def test_all_values_are_within_their_rank_errors_together(counts: tuple[int, ...]) -> None:
    """By the exact law, with what the members in the cells of other values add."""
    alpha, n = Fraction(1, 4), sum(counts)
    mechanism = RankedValues(
        CURRENCY, CellsOfGroups(1, 3, ContributionBound(1)), QUARTILES, smallest=True, largest=False
    )
    errors, within = mechanism.errors(alpha=alpha), 0.0
    wanted = [*(q * n for q in QUARTILES), Fraction(mechanism.spare)]
    for cells, mass in law_of(mechanism, (counts,)).mass.items():
        within += mass * all(
            max(sum(counts[:cell]) - rank, rank - sum(counts[: cell + 1]), Fraction(0))
            <= error.values + sum(part * counts[cells[cut]] for cut, part in error.cuts.items())
            for cell, rank, error in zip(cells, wanted, errors, strict=True)
        )
    assert within >= 1 - float(alpha)


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)])
@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 0, 0), (0, 0, 2), (3, 1, 3)])
def test_ranks_of_small_groups_are_within_their_errors_at_every_confidence(
    counts: tuple[int, ...], alpha: Fraction
) -> None:
    """Rank c is beyond all members of such a group, so no cell is nearer to it than c less their number."""
    mechanism = RankedValues(
        CURRENCY, CellsOfGroups(1, 3, ContributionBound(1)), (), smallest=True, largest=True
    )
    c, n = mechanism.spare, sum(counts)
    assert n < c
    smallest, largest = (error.values for error in mechanism.errors(alpha=alpha))
    within = 0.0
    for (low, high), mass in law_of(mechanism, (counts,)).mass.items():
        is_low = c - sum(counts[: low + 1]) <= smallest
        is_high = c - (n - sum(counts[:high])) <= largest
        within += mass * (is_low and is_high)
    assert within >= 1 - float(alpha) - 1e-12


def test_nothing_to_choose_is_refused() -> None:
    """And so is a number of groups that a release does not have."""
    among = CellsOfGroups(2, 4, ContributionBound(1))
    with pytest.raises(ValueError, match="must be asked for"):
        RankedValues(CURRENCY, among, (), smallest=False, largest=False)
    with pytest.raises(ValueError, match="outcome"):
        RankedValues(CURRENCY, among, HALF, smallest=False, largest=False).cost(1, ended_in_bottom=False)
