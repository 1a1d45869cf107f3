"""What goes wrong when the papers' pseudo-code is followed where it must not be.

Each test puts one wrong form in the place of a pure piece of a mechanism and shows a violation by exact
enumeration; the tests of the promises run the pieces that the package has. Form 4, a sign in a composition
theorem, belongs to the accounting and not to a mechanism.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.mechanisms import Cost, Currency, KnownLap, UnkGumb, UnkLap, unk_gumb, unk_lap
from dp_service.mechanisms.rows import Rows
from dp_service.mechanisms.unk_gumb import are_candidates, choose_threshold_index, selection_weights
from dp_service.noise import LogWeights, NoiseSource

from .enumeration import certain_hockey_stick, output_law
from .neighbours import Counts, over_known_domain, over_unknown_domain

CURRENCY = Currency(Fraction(1), Fraction(1, 20))
TOP_ONE = UnkGumb(CURRENCY, k=1, d_bar=3, tau=1, with_counts=False)
ALMOST_NOTHING = Fraction(1, 10**200)


def proven_delta(first: Counts, second: Counts, epsilon: float) -> float:
    """Return a lower bound of the delta of `TOP_ONE` between two histograms."""
    laws = [
        output_law(over_unknown_domain(TOP_ONE, counts, d_bar=TOP_ONE.d_bar), radius=0)
        for counts in (first, second)
    ]
    return certain_hockey_stick(laws[0], laws[1], epsilon)


def with_bottom(weights: LogWeights, multiple: int, odds: Fraction) -> LogWeights:
    """Return selection weights with another bottom."""
    multiples = np.append(weights.multiples[:-1], multiple)
    return LogWeights(weights.unit, multiples, last_odds=odds, eligible=weights.eligible)


def form_1(mechanism: UnkGumb, counts: NDArray[np.int64], k_bar: int, cut: int) -> LogWeights:
    """Use ln(min(k_bar, d_bar - k_bar) / delta), whose zero at k_bar = d_bar is as good as no bottom at all."""
    weights = selection_weights(mechanism, counts, k_bar, cut)
    odds = min(k_bar, mechanism.d_bar - k_bar) / mechanism.currency.delta
    return with_bottom(weights, cut + mechanism.tau, odds or ALMOST_NOTHING)


def form_5(mechanism: UnkGumb, counts: NDArray[np.int64], k_bar: int, cut: int) -> LogWeights:
    """Drop the `+ tau` of the threshold."""
    weights = selection_weights(mechanism, counts, k_bar, cut)
    return with_bottom(weights, cut, k_bar / mechanism.currency.delta)


@pytest.mark.parametrize(
    ("wrong", "neighbour", "true_delta"), [(form_1, (1, 1, 1), 0.377), (form_5, (1, 0, 0), 0.0905)]
)
def test_a_wrong_threshold_publishes_a_single_persons_elements(
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[UnkGumb, NDArray[np.int64], int, int], LogWeights],
    neighbour: Counts,
    true_delta: float,
) -> None:
    """One member's new elements come out far more often than the promised 0.05, and no epsilon covers that."""
    assert proven_delta(neighbour, (0, 0, 0), epsilon=3) <= 0.05
    monkeypatch.setattr(unk_gumb, "selection_weights", wrong)
    assert proven_delta(neighbour, (0, 0, 0), epsilon=3) == pytest.approx(true_delta, abs=5e-4)


def form_2(
    mechanism: UnkGumb, counts: NDArray[np.int64], indices: NDArray[np.int64], noise: NoiseSource
) -> int:
    """Take the smallest score plus Gumbel noise in place of the largest of minus the score plus noise."""
    # Weights count up to a common factor, so i / factorial is as good as i.
    scores = LogWeights(mechanism.selection_unit, counts[indices], math.factorial(mechanism.d_bar) // indices)
    return int(indices[noise.gumbel_order(scores, len(scores), "threshold index")[-1]])


IndexChoice = Callable[[UnkGumb, NDArray[np.int64], NDArray[np.int64], NoiseSource], int]


def log_ratio_of_last_index(choose: IndexChoice, distance: int) -> float:
    """Return |ln(P / Q)| of the index whose score is far above those of four others, when a member moves it by 1."""
    mechanism = UnkGumb(CURRENCY, k=1, d_bar=4, tau=1)
    laws = []
    for first_score in (distance, distance + 1):
        counts = np.array([99, first_score, 0, 0, 0], dtype=np.int64)

        def chosen(noise: NoiseSource, counts: NDArray[np.int64] = counts) -> int:
            return choose(mechanism, counts, np.arange(1, 5), noise)

        laws.append(output_law(chosen, radius=0))
    return abs(math.log(laws[0].mass[1] / laws[1].mass[1]))


def test_the_smallest_noisy_score_is_not_the_exponential_mechanism() -> None:
    """With four candidates it costs 3e = (n - 1) e where the exponential mechanism for a minimum costs e."""
    assert log_ratio_of_last_index(choose_threshold_index, 12) <= 1 + 1e-9
    assert log_ratio_of_last_index(form_2, 12) == pytest.approx(3, abs=1e-3)


@pytest.mark.parametrize(("candidates", "cost"), [(10, 2.7), (100, 6.5), (1000, 10.4)])
def test_the_smallest_noisy_score_is_expensive_already_at_equal_scores(candidates: int, cost: float) -> None:
    """One of n equal scores rises by tau, e = 1, and its log-probability falls by far more than e."""
    # The smallest of n - 1 standard Gumbel variables is above x with probability (1 - exp(-exp(-x)))^(n - 1).
    grid = np.linspace(-8, 45, 200_001)
    log_others_above = (candidates - 1) * np.log(-np.expm1(-np.exp(-grid)))
    density = np.exp(-(grid - 1) - np.exp(-(grid - 1)))
    raised = float(np.sum(density * np.exp(log_others_above)) * (grid[1] - grid[0]))
    assert math.log(1 / candidates / raised) == pytest.approx(cost, abs=0.05)


def test_reserving_two_k_would_overspend() -> None:
    """Form 3: k elements and no bottom cost 2k + 1, which is what is reserved; 2k is one short."""
    mechanism = UnkGumb(CURRENCY, k=5, d_bar=9, tau=1)
    assert mechanism.cost(released=5, ended_in_bottom=False) == Cost(information=11, calls=1)
    assert mechanism.worst_case_cost() == Cost(information=11, calls=1)


@pytest.mark.slow
def test_breaking_ties_by_true_rank_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal noisy counts in the order of the true counts reveal that order, however small epsilon is."""
    mechanism = KnownLap(Currency(Fraction(1), Fraction(1, 20)), delta_l0=1, tau=1)

    def delta_between(first: Counts, second: Counts) -> float:
        laws = [output_law(over_known_domain(mechanism, counts), radius=30) for counts in (first, second)]
        return certain_hockey_stick(laws[0], laws[1], 0.5)

    assert delta_between((1, 2), (2, 2)) <= 0
    monkeypatch.setattr(Rows, "descending", lambda rows, noisy: np.lexsort((-rows.counts, -noisy)))
    assert delta_between((1, 2), (2, 2)) > 0.1


def mass_of_zeros(mechanism: UnkLap | UnkGumb, counts: Counts) -> float:
    """Return the probability that an element comes out that nobody has, or a row that is not there at all."""
    law = output_law(over_known_domain(mechanism, counts), radius=6)
    zeros = {element for element, count in enumerate(counts) if count == 0}
    return math.fsum(mass for outcome, mass in law.mass.items() if zeros & set(outcome.elements))


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(0, 2, 0), (0, 0, 0), (1, 0, 0)])
def test_rows_of_zero_never_come_out_unless_the_mask_is_dropped(
    monkeypatch: pytest.MonkeyPatch, counts: Counts
) -> None:
    """Such rows draw noise like all others; what keeps them back is that they are not eligible, and nothing else."""
    lap = UnkLap(Currency(Fraction(1), Fraction(9, 10)), delta_l0=1, d_bar=2, tau=1)
    assert mass_of_zeros(lap, counts) == mass_of_zeros(TOP_ONE, counts) == 0
    monkeypatch.setattr(unk_lap, "may_be_shown", lambda rows: np.ones(len(rows), dtype=np.bool_))
    monkeypatch.setattr(unk_gumb, "are_candidates", lambda counts, _: np.ones(counts.size, dtype=np.bool_))
    assert mass_of_zeros(lap, counts) > 0.01
    with pytest.raises(IndexError):
        # The fourth row of `TOP_ONE` is missing: nothing in the histogram has its number.
        mass_of_zeros(TOP_ONE, counts)


def test_tied_rows_that_are_no_candidates_would_cost_more_than_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts equal to h_(k_bar+1) as candidates: of two neighbours one shows an element that the other never shows."""
    everyone, nobody = (1, 1, 1, 1), (0, 0, 0, 0)

    def proven(counts: Counts) -> float:
        laws = [output_law(over_known_domain(TOP_ONE, each), radius=0) for each in (counts, nobody)]
        return certain_hockey_stick(laws[0], laws[1], 3)

    assert proven(everyone) <= 0.05
    monkeypatch.setattr(unk_gumb, "are_candidates", lambda counts, cut: (counts >= cut) & (counts > 0))
    assert proven(everyone) > 0.05


def test_candidates_at_the_threshold_would_be_placeholders() -> None:
    """Strictly above: equal counts, and with them the zeros of missing rows, are never candidates."""
    assert are_candidates(np.array([0, 3, 1, 1], dtype=np.int64), 1).tolist() == [False, True, False, False]
    assert are_candidates(np.array([0, 3, 0, 1], dtype=np.int64), 0).tolist() == [False, True, False, True]
