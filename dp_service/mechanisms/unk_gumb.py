"""UnkGumb: up to k elements of an unknown domain under unrestricted sensitivity.

Source: Durfee and Rogers 2019, algorithms 1 and 6 and section 6.2; Rogers et al. 2020, algorithm 4, with
the two corrections stated at `threshold_weights` and `choose_threshold_index`.

Why it is private. Precondition: the histogram holds the d_bar + 1 largest counts (or all there are, missing
ones count 0); one member moves every count by 0 to tau, all in the same direction. Released: an ordered
list of elements, whether it was ended by bottom, and counts with fresh noise.

The threshold index k_bar is chosen by an exponential mechanism over scores that a member moves by 0 to tau,
monotonically, because every h_(i) is: e-BR. Given k_bar, the elements above h_(k_bar+1) and bottom are
ranked by peeling the exponential mechanism, in which bottom moves with h_(k_bar+1): every element that is
met and bottom, if it is met, is one e-BR choice. Each count is one more, as in KnownGumb.

An element that is a candidate for one neighbour only is at most tau above h_(k_bar+1) (section 6.2, for
which the candidates have to be strictly above), and there are at most k_bar of them. Its weight is at most
delta / k_bar of bottom's, so the probability that any of them is met before bottom is at most delta.
Without `+ tau` in the threshold it would be up to e^e delta.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.count_noise import CountNoise, draw_count_noise
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.mechanism import MechanismName
from dp_service.mechanisms.parameters import (
    MAX_ROWS,
    Cost,
    Currency,
    require_drawable,
    require_outcome,
    require_positive_integer,
)
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.noise.weights import LogWeights


@dataclass(frozen=True)
class UnkGumb:
    """Release at most k elements that beat a threshold, with fresh noisy counts if asked.

    Guarantee: ((2k + 1) e, delta)-DP with counts and ((k + 1) e, delta)-DP without, e = epsilon_per, as a
    sequence of e-BR choices and one delta, for neighbours under unrestricted sensitivity. Cost of j
    elements: information 2j + 2 if they end in bottom and 2k + 1 if not; without counts j + 2 and k + 1;
    calls 1. Counts get Pr[Z = z] proportional to exp(-e |z| / (2 tau)); with `count_noise` Gaussian each
    unit is worth e^2 / 8 of zCDP and nothing in e-DP.

    Raises ValueError for parameters that are not positive integers, k > d_bar, or a scale that cannot be
    drawn.
    """

    name: ClassVar[MechanismName] = MechanismName.UNK_GUMB
    version: ClassVar[int] = 1

    currency: Currency
    k: int
    d_bar: int
    tau: int
    with_counts: bool = True
    count_noise: CountNoise = CountNoise.LAPLACE

    def __post_init__(self) -> None:
        require_positive_integer("k", self.k)
        require_positive_integer("d_bar", self.d_bar, at_most=MAX_ROWS)
        require_positive_integer("tau", self.tau)
        require_drawable(self.count_inverse_scale)
        if self.k > self.d_bar:
            raise ValueError(f"k must be at most d_bar = {self.d_bar}, got {self.k}")

    @property
    def count_inverse_scale(self) -> Fraction:
        """One over the scale of Laplace noise in the counts; Gaussian noise has the square of that as variance."""
        return self.currency.epsilon_per / (2 * self.tau)

    @property
    def selection_unit(self) -> Fraction:
        """What one step of a count adds to the logarithm of its weight."""
        return self.currency.epsilon_per / self.tau

    def worst_case_cost(self) -> Cost:
        """Return 2k + 1 (k + 1 without counts) and one call: k elements are found and bottom is not met.

        The paper's algorithm 5 reserves 2k. That forgets the choice of the threshold, so a budget would be
        overspent.
        """
        return self.cost(released=self.k, ended_in_bottom=False)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return one unit for the threshold, one for each element and for bottom, and one for each count.

        Raises ValueError for what cannot come out: the list ends in bottom exactly if it has fewer than k elements.
        """
        require_outcome(0 <= released <= self.k and ended_in_bottom == (released < self.k))
        choices = 1 + released + ended_in_bottom
        return Cost(information=choices + released if self.with_counts else choices, calls=1)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements found, in the order of their keys; at most d_bar + 1 rows may come in."""
        counts = histogram.padded_to(self.d_bar + 1)
        k_bar = choose_threshold_index(self, counts, noise)
        ranks, ended_in_bottom = select(self, counts, k_bar, noise)
        noisy_counts = None
        if self.with_counts:
            fresh = draw_count_noise(self.count_noise, self.count_inverse_scale, ranks.size, noise)
            noisy_counts = counts[ranks] + fresh
        return Selection(histogram.canonical_order[ranks], noisy_counts, ended_in_bottom)


def choose_threshold_index(mechanism: UnkGumb, counts: NDArray[np.int64], noise: NoiseSource) -> int:
    """Choose k_bar from k..d_bar by the exponential mechanism for a low threshold: e-BR.

    The noise is added to **minus** the score and the largest is taken. The paper's algorithm 4 takes the
    smallest of score plus Gumbel noise instead. The Gumbel law is not symmetric, so that is no exponential
    mechanism: with n candidates it costs up to (n - 1) e.
    """
    weights = threshold_weights(mechanism, counts)
    return mechanism.k + int(noise.gumbel_order(weights, 1, "threshold index")[0])


def threshold_weights(mechanism: UnkGumb, counts: NDArray[np.int64]) -> LogWeights:
    """Return exp(-s_i e / tau) for i = k..d_bar, where s_i = h_(i+1) + tau + tau ln(i / delta) / e.

    `counts` are descending, shape (d_bar + 1,). Factors that all weights share are left out: -s_i e / tau
    is -(e / tau) h_(i+1) + ln(1 / i) and a constant. The paper's algorithm 4 has ln(min(k_bar, d_bar -
    k_bar) / delta) in the threshold. That holds for a known domain only; here the number of newcomers is
    bounded by k_bar alone.
    """
    indices = np.arange(mechanism.k, mechanism.d_bar + 1)
    return LogWeights(mechanism.selection_unit, -counts[mechanism.k :], denominators=indices.astype(object))


def select(
    mechanism: UnkGumb, counts: NDArray[np.int64], k_bar: int, noise: NoiseSource
) -> tuple[NDArray[np.int64], bool]:
    """Peel candidates and bottom; return the at most k ranks before bottom, and whether it was met."""
    weights = selection_weights(mechanism, counts, k_bar)
    candidates = len(weights) - 1
    met = noise.gumbel_order(weights, min(mechanism.k, candidates + 1), "selection")
    bottom_at = np.flatnonzero(met == candidates)
    return (met[: bottom_at[0]], True) if bottom_at.size else (met, False)


def selection_weights(mechanism: UnkGumb, counts: NDArray[np.int64], k_bar: int) -> LogWeights:
    """Return exp(h_(j) e / tau) for the candidates in canonical order, then that of bottom.

    h_bottom = h_(k_bar+1) + tau (1 + ln(k_bar / delta) / e), so bottom weighs exp((h_(k_bar+1) + tau) e /
    tau) k_bar / delta.
    """
    candidates = candidate_count(counts, k_bar)
    bottom_odds = k_bar / mechanism.currency.delta
    numerators = np.ones(candidates + 1, dtype=object)
    denominators = np.ones(candidates + 1, dtype=object)
    numerators[candidates] = bottom_odds.numerator
    denominators[candidates] = bottom_odds.denominator
    multiples = np.append(counts[:candidates], counts[k_bar] + mechanism.tau)
    return LogWeights(mechanism.selection_unit, multiples, numerators, denominators)


def candidate_count(counts: NDArray[np.int64], k_bar: int) -> int:
    """Return how many counts are strictly above h_(k_bar+1); descending, they are the first ones.

    Strictly: h_(k_bar+1) is at least 0, so placeholders and zeros can never be candidates.
    """
    return int(np.count_nonzero(counts > counts[k_bar]))
