"""The threshold that hides an element which one member alone holds, from the exact tail of the noise.

Let x' be x with one more member. Elements that x lacks are held by that member alone: they are the novel ones. Unless
one of them is shown, outputs on x' are outputs that x can give too. So T is chosen such that all novel elements stay
at or below it with probability at least 1 - delta, whatever the member's set is::

    prod over novel u of (1 - Pr[Z >= T + 1 - w_u]) >= 1 - delta

Source: Swanberg et al. 2023, algorithm 2 and appendix A, with the discrete law in place of the continuous one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from dp_service.noise.distribution import exact_bound, gaussian_tail
from dp_service.noise.interval_arithmetic import certainly_below
from dp_service.partitions.noisy_comparison import upper_tail

# Where sigma is many units, the last digits of T are worth nothing: a step is sigma / 2^20.
_STEP_BITS = 20


def threshold_of_equals(variance: Fraction, delta: Fraction, weights: Sequence[int]) -> int:
    """Return T for members whose t novel elements hold at most weights[t - 1] each, for every t.

    `weights` must not rise. The result is at most sigma / 2^20 above the smallest such T, and never below.
    """
    return _raised(variance, delta, weights, range(len(weights)), 0)


def threshold_of_sorted(variance: Fraction, delta: Fraction, weights: Sequence[int]) -> int:
    """Return T for members of whose novel elements the m-th heaviest holds at most weights[m - 1]; as above."""
    return _least(variance, delta, Counter(weights))


def _raised(
    variance: Fraction, delta: Fraction, weights: Sequence[int], stretch: range, threshold: int
) -> int:
    """Return `threshold`, or more if some t = i + 1 with i in `stretch` needs more.

    What all t of a stretch need is at most what its largest t needs with the weight of its smallest.
    """
    novel = Counter({weights[stretch.start]: stretch.stop}) if stretch else Counter()
    if _suffices(variance, delta, novel, threshold):
        return threshold
    if len(stretch) == 1:
        return _least(variance, delta, novel)
    middle = len(stretch) // 2
    threshold = _raised(variance, delta, weights, stretch[middle:], threshold)
    return _raised(variance, delta, weights, stretch[:middle], threshold)


def _least(variance: Fraction, delta: Fraction, novel: Counter[int]) -> int:
    """Return a T for one novel set (weights and how many hold each), by steps from a guess."""
    sigma = math.sqrt(variance)
    step = max(1, int(sigma) >> _STEP_BITS)
    threshold = _guess(sigma, float(delta), novel)
    while not _suffices(variance, delta, novel, threshold):
        threshold += step
    while _suffices(variance, delta, novel, threshold - step):
        threshold -= step
    return threshold


def _suffices(variance: Fraction, delta: Fraction, novel: Counter[int], threshold: int) -> bool:
    """Return whether the inequality above certainly holds."""
    hidden = exact_bound(Fraction(1))
    for weight, count in novel.items():
        hidden *= (1 - gaussian_tail(variance, threshold + 1 - weight)) ** count
    # Doubt counts against T; 1 - delta is rational and the product is not.
    return certainly_below(exact_bound(1 - delta), hidden)


def _guess(sigma: float, delta: float, novel: Counter[int]) -> int:
    """Return about the smallest T, by the continuous law and bisection."""
    # As delta is at most 1/2, every novel element is hidden with probability 1/2 or more: T is at least its weight.
    low, high = float(max(novel)), max(novel) + 40 * sigma
    for _ in range(60):
        middle = (low + high) / 2
        log_hidden = sum(
            count * math.log1p(-upper_tail((middle - weight) / sigma)) for weight, count in novel.items()
        )
        low, high = (middle, high) if log_hidden < math.log1p(-delta) else (low, middle)
    return int(high)
