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

from dp_service.mechanisms.count_noise import draw_count_noise, require_drawable_counts
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import (
    MAX_ROWS,
    Cost,
    Currency,
    require_outcome,
    require_positive_integer,
)
from dp_service.mechanisms.rows import Rows
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.noise.weights import LogWeights
from dp_service.terms import CountNoise, MechanismName


@dataclass(frozen=True)
class UnkGumb:
    """Release at most k elements that beat a threshold, with fresh noisy counts if asked.

    Guarantee: ((2k + 1) e, delta)-DP with counts and ((k + 1) e, delta)-DP without, e = epsilon_per, as a
    sequence of e-BR choices and one delta, for neighbours under unrestricted sensitivity. Cost of j
    elements: information 2j + 2 if they end in bottom and 2k + 1 if not; without counts j + 2 and k + 1;
    calls 1. Counts get Pr[Z = z] proportional to exp(-e |z| / (2 tau)); with `count_noise` Gaussian each
    unit is worth its zCDP and GDP, and nothing in e-DP.

    Raises:
        ValueError: A parameter is no positive integer, k > d_bar, or the scale cannot be drawn.
    """

    name: ClassVar[MechanismName] = MechanismName.UNK_GUMB
    version: ClassVar[int] = 2

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
        require_drawable_counts(self.count_noise, self.count_inverse_scale)
        if self.k > self.d_bar:
            raise ValueError(f"k must be at most d_bar = {self.d_bar}, got {self.k}")

    @property
    def count_inverse_scale(self) -> Fraction:
        """One over the scale of Laplace noise in the counts; Gaussian noise has its square + 1/11 as variance."""
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

        Raises:
            ValueError: The outcome is impossible: a list ends in bottom exactly if it has fewer than k elements.
        """
        require_outcome(0 <= released <= self.k and ended_in_bottom == (released < self.k))
        choices = 1 + released + ended_in_bottom
        return Cost(information=choices + released if self.with_counts else choices, calls=1)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements found, in the order of their keys; at most d_bar + 1 rows may come in."""
        rows = Rows.shuffled(histogram, self.d_bar + 1, noise)
        descending = rows.counts[rows.descending(rows.counts)]
        # The elements of the rows are 0..d_bar in a random order, and so are these k..d_bar.
        indices = rows.elements[rows.elements >= self.k]
        k_bar = choose_threshold_index(self, descending, indices, noise)
        found = select(self, rows.counts, k_bar, int(descending[k_bar]), noise)
        noisy_counts = None
        if self.with_counts:
            # Noise is drawn for k elements however many there are.
            fresh = draw_count_noise(self.count_noise, self.count_inverse_scale, self.k, noise)
            noisy_counts = rows.counts[found] + fresh[: found.size]
        return Selection(rows.elements[found], noisy_counts, ended_in_bottom=found.size < self.k)


def choose_threshold_index(
    mechanism: UnkGumb, counts: NDArray[np.int64], indices: NDArray[np.int64], noise: NoiseSource
) -> int:
    """Choose k_bar from k..d_bar by the exponential mechanism for a low threshold: e-BR.

    `indices` are k..d_bar in an order that does not depend on the counts, best a random one: the scores rise
    with the index, and timing would reveal a little of how.

    The noise is added to **minus** the score and the largest is taken. The paper's algorithm 4 takes the
    smallest of score plus Gumbel noise instead. The Gumbel law is not symmetric, so that is no exponential
    mechanism: with n candidates it costs up to (n - 1) e.
    """
    weights = threshold_weights(mechanism, counts, indices)
    return int(indices[noise.gumbel_order(weights, 1, "threshold index")[0]])


def threshold_weights(
    mechanism: UnkGumb, counts: NDArray[np.int64], indices: NDArray[np.int64]
) -> LogWeights:
    """Return exp(-s_i e / tau) for every index i, where s_i = h_(i+1) + tau + tau ln(i / delta) / e.

    `counts` are descending, shape (d_bar + 1,). Factors that all weights share are left out: -s_i e / tau
    is -(e / tau) h_(i+1) + ln(1 / i) and a constant. The paper's algorithm 4 has ln(min(k_bar, d_bar -
    k_bar) / delta) in the threshold. That holds for a known domain only; here the number of newcomers is
    bounded by k_bar alone.
    """
    return LogWeights(mechanism.selection_unit, -counts[indices], divisors=indices)


def select(
    mechanism: UnkGumb, counts: NDArray[np.int64], k_bar: int, cut: int, noise: NoiseSource
) -> NDArray[np.int64]:
    """Peel candidates and bottom; return the positions met before bottom, at most k; fewer if it was met.

    Rows that are no candidates are drawn with the others and come after bottom, if they come at all.
    """
    weights = selection_weights(mechanism, counts, k_bar, cut)
    met = noise.gumbel_order(weights, mechanism.k, "selection")
    bottom_at = np.flatnonzero(met == counts.size)
    return met[: bottom_at[0]] if bottom_at.size else met


def selection_weights(mechanism: UnkGumb, counts: NDArray[np.int64], k_bar: int, cut: int) -> LogWeights:
    """Return exp(h e / tau) for every count h, of which only candidates are eligible, then that of bottom.

    `cut` is h_(k_bar+1). h_bottom = cut + tau (1 + ln(k_bar / delta) / e), so bottom weighs exp((cut + tau) e /
    tau) k_bar / delta.
    """
    return LogWeights(
        mechanism.selection_unit,
        np.append(counts, cut + mechanism.tau),
        last_odds=k_bar / mechanism.currency.delta,
        eligible=np.append(are_candidates(counts, cut), True),
    )


def are_candidates(counts: NDArray[np.int64], cut: int) -> NDArray[np.bool_]:
    """Return which counts are strictly above h_(k_bar+1), the `cut`.

    Strictly: `cut` is at least 0, so missing rows and zeros can never be candidates.
    """
    return counts > cut
