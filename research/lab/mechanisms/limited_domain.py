"""LimitDom: the top k of the d_bar largest counts above a noisy threshold, by Gumbel noise.

Source: Durfee and Rogers 2019, algorithm 1 (`LimitDom`) and section 6.2, algorithm 5 (`StrictLimitDom`).
Algorithm 6, which chooses the threshold's index privately, is UnkGumb without counts. Their counts move
by 1; here by tau.

Why they are private. Given the set of candidates, candidates and bottom are ranked by peeling the
exponential mechanism; bottom moves with h_(d_bar+1). So every element that is met, and bottom if it is
met, is one e-BR choice. An element that is a candidate for one neighbour only is at most tau above
h_(d_bar+1), so its weight is at most delta / n of bottom's if bottom is raised by tau + tau ln(n / delta)
/ e. With n no less than the number of such elements, any of them is met before bottom with probability at
most delta.

The two differ in n. LimitDom takes the d_bar largest counts whatever they are, ties and zeros included.
Then an element leaves only because another one enters: n is the least of Delta (those that a member can
change), d_bar (all that are in) and d - d_bar (all that are out). This needs the whole domain to be
known: with an unknown one, d - d_bar is the wrong form 1 of algorithm 4 of Rogers et al., with a true
delta of 0.377 where 0.05 is promised. StrictLimitDom takes only counts above h_(d_bar+1), so that zeros
never come out and nothing needs to be known; but when h_(d_bar+1) rises, any number of tied elements
leave at once, and n is d_bar, even if Delta is known.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import MAX_ROWS, Currency, require_drawable, require_positive_integer
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.noise.weights import LogWeights
from research.lab.mechanisms.interface import Guarantee, largest_counts, rounded_up


@dataclass(frozen=True)
class LimitDom:
    """Release at most k of the d_bar largest counts of a known domain, in order (algorithm 1).

    `delta_l0` is Delta, None if a member may change any number of counts. Guarantee: (k e, delta)-DP, e =
    epsilon_per, as k e-BR choices; j elements and bottom are j + 1 choices.

    Raises:
        ValueError: A parameter is no positive integer, k > d_bar, or the scale cannot be drawn.
    """

    label: ClassVar[str] = "LimitDom (DR alg. 1)"

    currency: Currency
    k: int
    d_bar: int
    tau: int
    delta_l0: int | None = None

    def __post_init__(self) -> None:
        _check(self.currency, self.k, self.d_bar, self.tau)
        if self.delta_l0 is not None:
            require_positive_integer("delta_l0", self.delta_l0)

    def guarantee(self) -> Guarantee:
        """Return k choices and one delta."""
        return _guarantee(self.currency, self.k)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements found; the histogram holds the whole domain, at least d_bar elements, zeros included."""
        outside = len(histogram) - self.d_bar
        if outside < 0:
            raise ValueError(
                f"d_bar must be at most the size of the domain, {len(histogram)}, got {self.d_bar}"
            )
        candidates = histogram.counts_by_element[histogram.canonical_order][: self.d_bar]
        if outside == 0:
            # Nothing can enter, so there is nothing that bottom would have to stop.
            ranks, ended = (
                noise.gumbel_order(
                    selection_weights(self.currency, self.tau, candidates), self.k, "selection"
                ),
                False,
            )
        else:
            newcomers = min(self.d_bar, outside, self.delta_l0 or self.d_bar)
            bottom = int(histogram.counts_by_element[histogram.canonical_order][self.d_bar]) + self.tau
            odds = newcomers / self.currency.delta
            weights = selection_weights(self.currency, self.tau, np.append(candidates, bottom), odds)
            ranks, ended = _until_bottom(weights, self.k, noise)
        return Selection(histogram.canonical_order[ranks], None, ended)


@dataclass(frozen=True)
class StrictLimitDom:
    """Release at most k of the counts above the (d_bar + 1)-th of an unknown domain, in order (algorithm 5).

    Guarantee, cost of an outcome and errors are those of `LimitDom`, under unrestricted sensitivity.
    """

    label: ClassVar[str] = "strict LimitDom (DR alg. 5)"

    currency: Currency
    k: int
    d_bar: int
    tau: int

    def __post_init__(self) -> None:
        _check(self.currency, self.k, self.d_bar, self.tau)

    def guarantee(self) -> Guarantee:
        """Return k choices and one delta."""
        return _guarantee(self.currency, self.k)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements found; zeros are as good as absent."""
        counts, elements = largest_counts(histogram, self.d_bar + 1)
        candidates = counts[counts > counts[self.d_bar]]
        multiples = np.append(candidates, counts[self.d_bar] + self.tau)
        weights = selection_weights(self.currency, self.tau, multiples, self.d_bar / self.currency.delta)
        ranks, ended = _until_bottom(weights, self.k, noise)
        return Selection(elements[ranks], None, ended)


def _check(currency: Currency, k: int, d_bar: int, tau: int) -> None:
    require_positive_integer("k", k)
    require_positive_integer("d_bar", d_bar, at_most=MAX_ROWS)
    require_positive_integer("tau", tau)
    if k > d_bar:
        raise ValueError(f"k must be at most d_bar = {d_bar}, got {k}")
    require_drawable(currency.epsilon_per / tau)


def _guarantee(currency: Currency, k: int) -> Guarantee:
    return Guarantee(rounded_up(k * currency.epsilon_per), rounded_up(currency.delta), choices=k)


def selection_weights(
    currency: Currency, tau: int, multiples: NDArray[np.int64], last_odds: Fraction = Fraction(1)
) -> LogWeights:
    """Return exp(m e / tau) for every multiple m, the last of them times `last_odds`."""
    return LogWeights(currency.epsilon_per / tau, multiples, last_odds=last_odds)


def _until_bottom(weights: LogWeights, k: int, noise: NoiseSource) -> tuple[NDArray[np.int64], bool]:
    """Peel candidates and bottom, which comes last in `weights`; return the ranks before it, and whether it was met."""
    bottom = len(weights) - 1
    met = noise.gumbel_order(weights, min(k, bottom + 1), "selection")
    bottom_at = np.flatnonzero(met == bottom)
    return (met[: bottom_at[0]], True) if bottom_at.size else (met, False)
