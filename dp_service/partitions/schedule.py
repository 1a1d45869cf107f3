"""The rounds of a method: budget, noise and cuts of each, all fixed before any data are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from dp_service.noise.gaussian_price import variance_for
from dp_service.partitions.grid import ADAPTIVE, OWN_ELEMENTS, WeightGrid
from dp_service.partitions.parameters import Method, Parameters
from dp_service.partitions.threshold import threshold_of_equals, threshold_of_sorted

RATIO = Fraction(1, 3)
"""The budget of a round of SIPS as a fraction of the next round's."""

FIRST_SHARE = Fraction(1, 3)
"""The share of the budget that MAD2R spends in its first round."""

_FLOAT_UNITS = 2


class Weighting(StrEnum):
    """How the members' weight is shared out among their elements."""

    EQUAL = "equal"
    POLICY = "policy"
    GREEDY = "greedy"
    ADAPTIVE = "adaptive"


_OWN = (Weighting.EQUAL, Weighting.GREEDY)


@dataclass(frozen=True)
class Grids:
    """The grids of weights that depend on the member alone, and of those that do not. Tests use coarser ones."""

    own: WeightGrid = OWN_ELEMENTS
    adaptive: WeightGrid = ADAPTIVE


STANDARD_GRIDS = Grids()

# How far beyond the threshold, in standard deviations, more weight is still useful. These values did best at rho = 0.1
# on public data; no guarantee depends on them.
_BUFFERS = {Weighting.EQUAL: 0, Weighting.POLICY: 5, Weighting.GREEDY: 2, Weighting.ADAPTIVE: 2}


@dataclass(frozen=True)
class Round:
    """One weighted histogram with noise.

    It is `delta`-approximate `rho`-zCDP and `delta`-approximate sqrt(2 rho)-GDP: `variance` is that of the noise, in
    squared units of `grid`. An element is released if its noisy weight exceeds `threshold`, in units. `enough` is the
    weight beyond which more is wasted. `cuts`, in rising order with `threshold` last, are what a noisy weight is
    compared with: where there are two, an element that exceeds neither is left out of the rounds that follow.
    """

    number: int
    rho: Fraction
    delta: Fraction
    typical: int
    weighting: Weighting
    grid: WeightGrid
    variance: Fraction
    threshold: int
    enough: int
    cuts: tuple[int, ...]


@lru_cache(maxsize=64)
def rounds(parameters: Parameters, grids: Grids = STANDARD_GRIDS) -> tuple[Round, ...]:
    """Return the rounds; their rho and their delta add up to those of the parameters, exactly."""
    weighting, shares = _plan(parameters)
    grid = grids.own if weighting in _OWN else grids.adaptive
    return tuple(
        _round(parameters, number, share, weighting, grid, is_last=number == len(shares) - 1)
        for number, share in enumerate(shares)
    )


def _plan(parameters: Parameters) -> tuple[Weighting, tuple[Fraction, ...]]:
    """Return how a method weighs, and the share of the budget of each of its rounds."""
    once = (Fraction(1),)
    match parameters.method:
        case Method.WEIGHTED_GAUSSIAN:
            return Weighting.EQUAL, once
        case Method.SIPS:
            return Weighting.EQUAL, geometric_shares(parameters.iterations)
        case Method.POLICY_GAUSSIAN:
            return Weighting.POLICY, once
        case Method.GREEDY:
            return Weighting.GREEDY, once
        case Method.MAD:
            return Weighting.ADAPTIVE, once
        case Method.MAD2R:
            return Weighting.ADAPTIVE, (FIRST_SHARE, 1 - FIRST_SHARE)


def geometric_shares(iterations: int) -> tuple[Fraction, ...]:
    """Return the share of round i, r^(I-1-i) (1 - r) / (1 - r^I); source: algorithm 3 of Swanberg et al. 2023.

    >>> geometric_shares(3)
    (Fraction(1, 13), Fraction(3, 13), Fraction(9, 13))
    """
    front = (1 - RATIO) / (1 - RATIO**iterations)
    return tuple(RATIO ** (iterations - 1 - i) * front for i in range(iterations))


def _round(
    parameters: Parameters,
    number: int,
    share: Fraction,
    weighting: Weighting,
    grid: WeightGrid,
    *,
    is_last: bool,
) -> Round:
    rho, delta = share * parameters.rho, share * parameters.delta
    variance = variance_for(grid.sensitivity**2, rho)
    threshold = _threshold(weighting, grid, variance, delta, parameters.typical)
    sigma = math.isqrt(int(variance))
    # Only MAD2R looks at weights below the threshold: what its first round finds light is not carried into the second.
    cuts = (threshold,) if is_last or weighting is Weighting.EQUAL else (sigma, threshold)
    enough = threshold + _BUFFERS[weighting] * sigma
    return Round(number, rho, delta, parameters.typical, weighting, grid, variance, threshold, enough, cuts)


def _threshold(
    weighting: Weighting, grid: WeightGrid, variance: Fraction, delta: Fraction, typical: int
) -> int:
    """Return T for the largest weights of a member's novel elements; each weighting's docstring proves that bound."""
    if weighting is Weighting.GREEDY:
        return threshold_of_sorted(variance, delta, [grid.units, *[0] * (typical - 1)])
    more = 0 if weighting is Weighting.EQUAL else _FLOAT_UNITS
    weights = [grid.equal_weight(count) + more for count in range(1, typical + 1)]
    return threshold_of_equals(variance, delta, weights)
