"""Quantiles, largest and smallest values keep their promise over all small data sets, and find what they should.

The real code is run under every outcome of its draws. A data set is how many members have each cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dp_service.mechanisms import Cost, Currency
from dp_service.mechanisms.aggregates import (
    CellsOfGroups,
    ExtremeGumb,
    Largest,
    Quantile,
    QuantileGumb,
    Smallest,
    rank_error,
    rank_errors,
    spare_values,
)
from dp_service.mechanisms.aggregates.quantile_gumb import Part
from dp_service.mechanisms.aggregates.rank_errors import largest_loss
from dp_service.mechanisms.aggregates.rank_scores import Ranks
from dp_service.mechanisms.bounded import ContributionBound, Counted
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.values.cells import Grid
from tests.support.cells import counts_of
from tests.support.some import some
from tests.unit.dp_service.mechanisms.counting import CountingStream
from tests.unit.dp_service.mechanisms.enumeration import Law, output_law

EPSILON = 1.0
CURRENCY = Currency(Fraction(1), Fraction(1, 20))
DEPLOYED = Currency(Fraction("0.15"), Fraction("1e-10"))
ROUNDING = 1 + 1e-9
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))

Cells = tuple[int, ...]
Wanted = Quantile | Largest | Smallest
WANTED: list[Wanted] = [
    Quantile(Fraction(1, 2)),
    Quantile(Fraction(1, 4)),
    Quantile(Fraction(2, 3)),
    Quantile(Fraction(9, 10)),
    Largest(1),
    Largest(2),
    Smallest(1),
    Smallest(3),
]


def data_sets(cells: int, most_members: int) -> list[Cells]:
    """Return every number of members by cell."""
    return [
        counts for counts in product(range(most_members + 1), repeat=cells) if sum(counts) <= most_members
    ]


def neighbours(cells: int, most_members: int) -> Iterator[tuple[Cells, Cells]]:
    """Yield every data set without and with one member more."""
    for counts in data_sets(cells, most_members - 1):
        for cell in range(cells):
            yield counts, (*counts[:cell], counts[cell] + 1, *counts[cell + 1 :])


def among(cells: int, groups: int = 1, typical: int = 1, tau: int = 1) -> CellsOfGroups:
    """Return what is chosen from, of members with at most tau values in a group."""
    return CellsOfGroups(groups, cells, ContributionBound(typical, tau, counted=Counted.EVENTS))


def law_of_one(wanted: Wanted, counts: Cells, *, tau: int = 1) -> Law[Cells]:
    """Return the law of one choice, of members with at most tau values."""
    if isinstance(wanted, Quantile):
        return law_of(QuantileGumb(CURRENCY, among(len(counts), tau=tau), (wanted.q,)), (counts,))
    mechanism = ExtremeGumb(CURRENCY, among(len(counts), tau=tau), wanted)
    array = np.array([counts], dtype=np.int64)
    return output_law(lambda noise: tuple(mechanism.run(array, noise).tolist()), radius=0)


def law_of(mechanism: QuantileGumb, groups: tuple[Cells, ...]) -> Law[Cells]:
    """Return the law of all choices, one group after the other."""
    array = np.array(groups, dtype=np.int64)
    return output_law(lambda noise: tuple(mechanism.run(array, noise).ravel().tolist()), radius=0)


def log_ratios(first: Law[Cells], second: Law[Cells]) -> list[float]:
    """Return ln of the ratio of the probabilities of every outcome; both laws have the same ones."""
    assert set(first.mass) == set(second.mass)
    return [math.log(first.mass[outcome] / second.mass[outcome]) for outcome in first.mass]


def bounded_range(first: Law[Cells], second: Law[Cells]) -> float:
    """Return the range of the log ratios: the epsilon that the two are bounded range with, in both directions."""
    ratios = log_ratios(first, second)
    return max(ratios) - min(ratios)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_one_choice_is_bounded_range(wanted: Wanted) -> None:
    """Over all data sets of up to 5 members in 4 cells; without a delta."""
    worst = max(
        bounded_range(law_of_one(wanted, first), law_of_one(wanted, second))
        for first, second in neighbours(4, 5)
    )
    assert worst <= EPSILON * ROUNDING


def test_the_promise_is_nearly_reached() -> None:
    """A median with enough members moves all scores by the whole range: to find much less would prove nothing."""
    wanted = Quantile(Fraction(1, 2))
    laws = [law_of_one(wanted, counts) for counts in ((20, 1, 20, 0), (20, 1, 20, 1))]
    assert bounded_range(*laws) > 0.99 * EPSILON


def divergence(first: Law[Cells], second: Law[Cells], order: float) -> float:
    """Return the Renyi divergence of an order."""
    terms = [
        order * math.log(mass) + (1 - order) * math.log(second.mass[key]) for key, mass in first.mass.items()
    ]
    return math.log(math.fsum(map(math.exp, terms))) / (order - 1)


@pytest.mark.slow
def test_several_quantiles_cost_their_levels() -> None:
    """Three quartiles of up to 3 members in 4 cells: two levels, in zCDP, and in epsilon for all of them together."""
    mechanism = QuantileGumb(CURRENCY, among(4), QUARTILES)
    assert mechanism.levels == 2
    laws = {counts: law_of(mechanism, (counts,)) for counts in data_sets(4, 3)}
    for pair in some(neighbours(4, 3)):
        for first, second in (pair, pair[::-1]):
            assert max(log_ratios(laws[first], laws[second])) <= 2 * EPSILON * ROUNDING
            for order in (1.01, 2.0, 8.0):
                assert divergence(laws[first], laws[second], order) <= order * 2 * EPSILON**2 / 8 * ROUNDING


def worst_level(mechanism: QuantileGumb, cells: int, most_members: int) -> float:
    """Return the largest range of the choices of the second level, given that of the first."""
    laws = {counts: law_of(mechanism, (counts,)) for counts in data_sets(cells, most_members)}
    return max(
        bounded_range(given(laws[first], cut), given(laws[second], cut))
        for first, second in neighbours(cells, most_members)
        for cut in range(cells)
    )


def given(law: Law[Cells], cut: int) -> Law[Cells]:
    """Return the law of the first and last of three quantiles given the middle one, not divided by its chance."""
    return Law({key: mass for key, mass in law.mass.items() if key[1] == cut}, law.lost)


@pytest.mark.slow
def test_choices_of_one_level_are_bounded_range_together() -> None:
    """Given the cut, both parts of the second level cost one unit."""
    assert worst_level(QuantileGumb(CURRENCY, among(3), QUARTILES), 3, 3) <= EPSILON * ROUNDING


@pytest.mark.slow
def test_groups_cost_as_many_units_as_a_member_has_of_them() -> None:
    """Three groups: a member of one costs one unit, a member of two costs two."""
    for typical in (1, 2):
        mechanism = QuantileGumb(CURRENCY, among(3, groups=3, typical=typical), (Fraction(1, 2),))
        assert mechanism.worst_case_cost() == Cost(typical, 0)
        worst = max(
            bounded_range(law_of(mechanism, first), law_of(mechanism, second))
            for first, second in members_of_groups(typical)
        )
        assert (typical - 0.2) * EPSILON < worst <= typical * EPSILON * ROUNDING


def members_of_groups(typical: int) -> Iterator[tuple[tuple[Cells, ...], tuple[Cells, ...]]]:
    """Yield three groups of 3 cells without and with a member who has a value in some of them."""
    base = ((4, 0, 4), (0, 5, 5), (4, 1, 0))
    for chosen in product((None, 0, 1, 2), repeat=3):
        if 0 < sum(cell is not None for cell in chosen) <= typical:
            more = tuple(
                tuple(count + (place == cell) for place, count in enumerate(counts))
                for counts, cell in zip(base, chosen, strict=True)
            )
            yield base, more


def of_a_member(cells: int, tau: int) -> list[Cells]:
    """Return every way in which a member may have from 1 to tau values in cells."""
    return [values for values in product(range(tau + 1), repeat=cells) if 0 < sum(values) <= tau]


def together(first: Cells, second: Cells) -> Cells:
    """Return the values of both by cell."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_all_rows_of_a_member_are_one_choice(wanted: Wanted) -> None:
    """A member with up to 3 rows in 3 cells, beside up to 3 rows of others: all of them cost what one value does."""
    tau = 3
    for counts in data_sets(3, 3):
        law = law_of_one(wanted, counts, tau=tau)
        for values in of_a_member(3, tau):
            found = bounded_range(law, law_of_one(wanted, together(counts, values), tau=tau))
            assert found <= EPSILON * sum(values) / tau * ROUNDING


def test_the_promise_for_rows_is_nearly_reached() -> None:
    """With enough rows, and all of a member's beyond them: to find much less would prove nothing."""
    laws = [
        law_of_one(Quantile(Fraction(1, 2)), counts, tau=4) for counts in ((90, 1, 90, 0), (90, 1, 90, 4))
    ]
    assert bounded_range(*laws) > 0.99 * EPSILON


def test_scores_without_tau_break_the_promise_for_rows() -> None:
    """Two rows of a member move all scores within twice the range of one."""
    wanted, counts = Quantile(Fraction(1, 2)), (20, 1, 20, 0)
    laws = [law_of_one(wanted, each) for each in (counts, together(counts, (0, 0, 0, 2)))]
    assert bounded_range(*laws) > 1.9 * EPSILON


@pytest.mark.parametrize("is_split", [True, False])
def test_rows_in_both_parts_of_a_level_cost_one_unit(is_split: bool) -> None:
    """Given the cut, a member's rows left and right of it share the unit; with tau rows in each part they would not."""
    mechanism = QuantileGumb(CURRENCY, among(6, tau=2), QUARTILES)
    counts = (9, 1, 9, 9, 1, 9)
    values = (0, 0, 1, 1, 0, 0) if is_split else (0, 0, 2, 2, 0, 0)
    laws = [given(law_of(mechanism, (each,)), 2) for each in (counts, together(counts, values))]
    worst = bounded_range(*laws)
    assert worst <= EPSILON * ROUNDING if is_split else worst > 1.5 * EPSILON


@pytest.mark.slow
def test_several_quantiles_of_rows_cost_their_levels() -> None:
    """Three quartiles: a member with up to 2 rows in 3 cells beside up to 2 of others."""
    mechanism = QuantileGumb(CURRENCY, among(3, tau=2), QUARTILES)
    for counts in data_sets(3, 2):
        law = law_of(mechanism, (counts,))
        for values in of_a_member(3, 2):
            ratios = log_ratios(law, law_of(mechanism, (together(counts, values),)))
            assert max(map(abs, ratios)) <= mechanism.levels * EPSILON * ROUNDING


@pytest.mark.parametrize("tau", [2, 8, 200])
def test_rank_errors_of_rows_are_tau_times_as_large(tau: int) -> None:
    """Up to the rounding to a step of the score."""
    wanted, alpha = Quantile(Fraction(1, 2)), Fraction(1, 20)
    one = rank_error(DEPLOYED, wanted, among(500), alpha=alpha)
    rows = rank_error(DEPLOYED, wanted, among(500, tau=tau), alpha=alpha)
    assert abs(rows - tau * one) <= tau
    spare = spare_values(DEPLOYED, among(500, tau=tau), alpha=alpha)
    assert abs(spare - tau * spare_values(DEPLOYED, among(500), alpha=alpha)) <= tau


@pytest.mark.parametrize(
    "wrong_range", [lambda q: max(q.numerator, q.denominator - q.numerator), lambda q: q.denominator]
)
def test_scores_with_a_smaller_range_break_the_promise(
    monkeypatch: pytest.MonkeyPatch, wrong_range: Callable[[Fraction], int]
) -> None:
    """One member moves all scores within 2 max(a, b - a); half of that, or b, is too little for an upper quartile."""
    monkeypatch.setattr(Quantile, "score_range", property(lambda wanted: wrong_range(wanted.q)))
    wanted = Quantile(Fraction(3, 4))
    worst = max(
        bounded_range(law_of_one(wanted, first), law_of_one(wanted, second))
        for first, second in neighbours(3, 5)
    )
    assert worst > 1.15 * EPSILON


@pytest.mark.parametrize("is_overlapping", [False, True])
def test_parts_that_overlap_break_the_promise(monkeypatch: pytest.MonkeyPatch, is_overlapping: bool) -> None:
    """If members in the cell of the cut go both ways, they move the choices of both parts: two units for one."""

    def overlapping(part: Part, cell: int, q: Fraction) -> list[Part]:
        return [
            Part(part.first, part.middle, part.low_cell, cell + 1, part.q_low, q),
            Part(part.middle + 1, part.end, cell, part.end_cell, q, part.q_high),
        ]

    if is_overlapping:
        monkeypatch.setattr(Part, "split", overlapping)
    mechanism = QuantileGumb(CURRENCY, among(5), QUARTILES)
    laws = [given(law_of(mechanism, (counts,)), 2) for counts in ((8, 8, 8, 8, 8), (8, 8, 9, 8, 8))]
    worst = bounded_range(*laws)
    assert worst > 1.9 * EPSILON if is_overlapping else worst <= EPSILON * ROUNDING


@pytest.mark.parametrize("is_public", [True, False])
def test_a_grid_from_the_data_breaks_the_promise(is_public: bool) -> None:
    """Of a grid that ends at the largest value, the value of the last cell tells that somebody has it."""

    def law(values: list[int]) -> Law[Cells]:
        grid = Grid.linear(0, 12 if is_public else max(values) + 1, 3)
        found = law_of_one(Quantile(Fraction(1, 2)), counts_of(grid, values))
        return Law({grid.bounds_of(*cell): mass for cell, mass in found.mass.items()}, found.lost)

    first, second = law([2, 5, 8]), law([2, 5, 8, 11])
    assert (set(first.mass) == set(second.mass)) is is_public
    if is_public:
        assert bounded_range(first, second) <= EPSILON * ROUNDING


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1, 100)])
def test_a_score_is_the_distance_from_the_ranks_of_a_cell(q: Fraction) -> None:
    """b times the distance of q n from [L(x - 1), L(x)], and 0 for some cell."""
    for counts in some(data_sets(4, 5)):
        scores = Quantile(q).scores(Ranks.of(np.array(counts, dtype=np.int64)))
        assert scores.max() == 0
        for cell, score in some(enumerate(scores.tolist())):
            wanted = q * sum(counts)
            low, high = sum(counts[:cell]), sum(counts[: cell + 1])
            assert -score == q.denominator * max(low - wanted, wanted - high, Fraction(0))


def test_a_value_that_most_members_have_is_found() -> None:
    """By the plain score |a R - (b - a) L| a cell where nobody is would be as good as the one where all are."""
    counts = np.array([0, 0, 100, 0], dtype=np.int64)
    assert Quantile(Fraction(1, 2)).scores(Ranks.of(counts)).tolist() == [-100, -100, 0, -100]
    ranks = Ranks.of(counts)
    assert (-np.abs(ranks.above - ranks.up_to)).tolist() == [-100] * 4


@pytest.mark.parametrize("spare", [1, 2, 4])
def test_scores_of_extremes_leave_members_to_spare(spare: int) -> None:
    """The cell of the c-th or next from the end has score 0, wherever there are at least c members."""
    for counts in some(data_sets(4, 6)):
        array = np.array(counts, dtype=np.int64)
        largest = Largest(spare).scores(Ranks.of(array))
        assert largest.tolist() == Smallest(spare).scores(Ranks.of(array[::-1])).tolist()[::-1]
        if sum(counts) >= spare:
            for cell in some(np.flatnonzero(largest == 0).tolist()):
                assert sum(counts[cell + 1 :]) <= spare <= sum(counts[cell:])
            assert largest.max() == 0


@pytest.mark.slow
@pytest.mark.parametrize("wanted", WANTED, ids=str)
@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(1, 20)])
def test_a_single_choice_is_within_its_rank_error(wanted: Wanted, alpha: Fraction) -> None:
    """By the exact law, wherever some cell has the wanted rank."""
    loss = largest_loss(CURRENCY, wanted.score_range, 4, alpha)
    assert rank_error(CURRENCY, wanted, among(4), alpha=alpha) == Fraction(loss, wanted.steps_of_rank)
    for counts in [*data_sets(4, 5), (0, 40, 0, 0), (9, 0, 0, 9)]:
        scores = wanted.scores(Ranks.of(np.array(counts, dtype=np.int64)))
        if scores.max() == 0:
            law = law_of_one(wanted, counts).mass
            outside = sum(mass for (cell,), mass in law.items() if scores[cell] < -loss)
            assert outside <= float(alpha)


def test_the_rank_error_is_no_larger_than_needed() -> None:
    """Where one cell has all members and the others are just beyond it, the chance is more than a third of alpha."""
    alpha, wanted = Fraction(1, 20), Quantile(Fraction(1, 2))
    loss = largest_loss(CURRENCY, 2, 4, alpha)
    law = law_of_one(wanted, (0, loss + 1, 0, 0)).mass
    assert float(alpha) / 3 < sum(mass for (cell,), mass in law.items() if cell != 1) <= float(alpha)


@pytest.mark.slow
@pytest.mark.parametrize(
    "counts", [(10, 10, 10, 10, 10), (0, 60, 0, 0, 3), (1, 30, 1, 30, 1), (0, 0, 0, 0, 9), (0, 0, 0, 0, 0)]
)
def test_several_quantiles_are_within_their_rank_errors_together(counts: Cells) -> None:
    """With what the members in the cells of the cuts add, by the exact law."""
    alpha, n = Fraction(1, 4), sum(counts)
    mechanism = QuantileGumb(CURRENCY, among(5), QUARTILES)
    errors = rank_errors(mechanism, alpha=alpha)
    within = 0.0
    for cells, mass in law_of(mechanism, (counts,)).mass.items():
        allowed = [
            error.values + sum(weight * counts[cells[cut]] for cut, weight in error.cuts.items())
            for error in errors
        ]
        distances = [
            max(sum(counts[:cell]) - q * n, q * n - sum(counts[: cell + 1]), Fraction(0))
            for q, cell in zip(QUARTILES, cells, strict=True)
        ]
        within += mass * all(d <= a for d, a in zip(distances, allowed, strict=True))
    assert within >= 1 - float(alpha)


def test_rank_errors_of_quartiles_add_half_of_that_of_the_median() -> None:
    """Which is a cut of their parts, with its cell."""
    first, median, last = rank_errors(QuantileGumb(DEPLOYED, among(500), QUARTILES), alpha=Fraction(3, 20))
    single = rank_error(DEPLOYED, Quantile(Fraction(1, 2)), among(500), alpha=Fraction(1, 20))
    assert (median.values, dict(median.cuts)) == (single, {})
    assert first == last
    assert (first.values, dict(first.cuts)) == (single * Fraction(3, 2), {1: Fraction(1, 2)})


@pytest.mark.parametrize(("m", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (9, 4), (99, 7)])
def test_m_quantiles_take_the_logarithm_of_m_plus_one(m: int, levels: int) -> None:
    """Quartiles 2, deciles 4, percentiles 7; and no member is in more choices than that."""
    quantiles = tuple(Fraction(place, m + 1) for place in range(1, m + 1))
    mechanism = QuantileGumb(DEPLOYED, among(10, groups=5, typical=2), quantiles)
    assert mechanism.worst_case_cost() == mechanism.cost(5 * m, ended_in_bottom=False) == Cost(2 * levels, 0)
    deepest = 0
    parts = [(1, Part(0, m, 0, 10, Fraction(0), Fraction(1)))]
    while parts:
        depth, part = parts.pop()
        if part.first < part.end:
            deepest = max(deepest, depth)
            parts += [(depth + 1, each) for each in part.split(3, quantiles[part.middle])]
    assert deepest == levels


def test_quantiles_ascend_and_a_part_without_cells_answers_with_its_cut() -> None:
    """All members in the last cell: the median is there, and so is what is above it, without a draw."""
    mechanism = QuantileGumb(Currency(Fraction(50), Fraction(1, 2)), among(3), QUARTILES)
    stream = CountingStream(1)
    found = mechanism.run(np.array([[0, 0, 90]], dtype=np.int64), KeyedNoise(stream))
    assert found.tolist() == [[2, 2, 2]]
    assert any("quantile 1" in name for name in stream.read)
    assert not any("quantile 2" in name for name in stream.read)
    for seed in range(20):
        noise = KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))
        (cells,) = (
            QuantileGumb(CURRENCY, among(9), QUARTILES).run(np.ones((1, 9), dtype=np.int64), noise).tolist()
        )
        assert cells == sorted(cells)


def test_a_group_without_members_is_drawn_from_uniformly() -> None:
    """Nothing tells it from others."""
    assert law_of_one(Quantile(Fraction(1, 3)), (0, 0, 0, 0)).mass == pytest.approx(
        {(c,): 0.25 for c in range(4)}
    )


@pytest.mark.parametrize("wanted", [Quantile(Fraction(3, 4)), Largest(5)])
def test_all_data_sets_read_as_many_words(wanted: Wanted) -> None:
    """Of one choice, for every seed; later ones depend on what was released before."""
    shapes = [np.zeros(50), np.full(50, 7), np.arange(50) * 1000, (np.arange(50) == 7) * 10**6]
    for seed in range(5):
        reads = []
        for counts in shapes:
            stream = CountingStream(seed)
            array = counts.astype(np.int64).reshape(1, 50)
            if isinstance(wanted, Quantile):
                QuantileGumb(DEPLOYED, among(50), (wanted.q,)).run(array, KeyedNoise(stream))
            else:
                ExtremeGumb(DEPLOYED, among(50), wanted).run(array, KeyedNoise(stream))
            reads.append(stream.read)
        assert all(read == reads[0] for read in reads)
        assert sum(reads[0].values()) >= 50


def test_members_to_spare_follow_from_public_numbers() -> None:
    """About 2 ln(cells / alpha) / e, and then no cell above everybody is chosen more often than alpha."""
    spare = spare_values(DEPLOYED, among(500), alpha=Fraction(1, 20))
    assert spare == pytest.approx(2 * math.log(500 * 20) / 0.15, abs=2)
    few = spare_values(CURRENCY, among(4), alpha=Fraction(1, 20))
    for counts in ((few, 0, 0, 0), (9, few, 0, 0), (40, 0, 1, 0)):
        top = max(cell for cell in range(4) if counts[cell])
        law = law_of_one(Largest(few), counts).mass
        assert sum(mass for (cell,), mass in law.items() if cell > top) <= 0.05


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: QuantileGumb(CURRENCY, among(4), ()), "quantiles must be from 1"),
        (lambda: QuantileGumb(CURRENCY, among(4), (Fraction(0),)), "strictly between 0 and 1"),
        (lambda: QuantileGumb(CURRENCY, among(4), (Fraction(1),)), "strictly between 0 and 1"),
        (lambda: QuantileGumb(CURRENCY, among(4), (0.5,)), "strictly between 0 and 1"),  # type: ignore[arg-type]
        (lambda: QuantileGumb(CURRENCY, among(4), (Fraction(1, 2), Fraction(1, 2))), "each of them once"),
        (lambda: QuantileGumb(CURRENCY, among(4), (Fraction(1, 2), Fraction(1, 4))), "ascend"),
        (lambda: QuantileGumb(CURRENCY, among(4), (Fraction(1, 10**5),)), "denominator"),
        (
            lambda: QuantileGumb(CURRENCY, among(4), (Fraction(1, 101), Fraction(1, 100))),
            "common denominator",
        ),
        (lambda: ExtremeGumb(CURRENCY, among(4), Largest(0)), "spare"),
        (lambda: CellsOfGroups(0, 4, ContributionBound(1)), "groups"),
        (lambda: CellsOfGroups(1, 10**6, ContributionBound(1)), "cells"),
        (lambda: rank_error(CURRENCY, Quantile(Fraction(1, 2)), among(4), alpha=Fraction(0)), "alpha"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(make: Callable[[], object], message: str) -> None:
    """The message says which."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.zeros((1, 3), dtype=np.int64), "1 groups and 4 cells"),
        (np.zeros((1, 4)), "int64"),
        (np.array([[0, 0, 0, -1]]), "negative"),
        (np.array([[2**38, 1, 0, 0]]), "at most 2\\^38"),
    ],
)
def test_counts_fit_the_groups_and_the_grid(counts: np.ndarray[tuple[int, ...]], message: str) -> None:
    """As many as there are, and none of them negative."""
    with pytest.raises(ValueError, match=message):
        QuantileGumb(CURRENCY, among(4), QUARTILES).run(counts, KeyedNoise(KeyedStream(bytes(32))))
