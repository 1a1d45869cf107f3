"""What to expect of a question, from the parameters of its mechanism alone and before anything is paid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dp_service.accounting.accuracy import (
    GumbelThreshold,
    found_of_equals,
    mean_gaussian_error,
    mean_laplace_error,
)
from dp_service.mechanisms import Currency, UnkGumb, UnkLap
from dp_service.mechanisms.intervals import gaussian_half_width, noise_half_width
from dp_service.releases.kinds.bounded import GaussianThreshold
from dp_service.releases.kinds.gumbel import gumbel_gap, gumbel_threshold
from dp_service.releases.kinds.kind import HALF, MOSTLY, Threshold
from dp_service.releases.kinds.laplace import laplace_threshold
from pinot_connector.parameters import Contributions, CountNoise, Mechanism, Parameters

__all__ = [
    "ALPHA",
    "HALF",
    "MOSTLY",
    "Expectation",
    "expectation_of",
    "gumbel_gap",
    "gumbel_threshold",
    "laplace_threshold",
]

ALPHA = 1 - MOSTLY


@dataclass(frozen=True)
class Price:
    """What a top-k costs on average, if k elements lie `above` the count at rank d_bar + 1 and nothing else does.

    `found` is how many of them it finds on average.
    """

    above: int
    found: float
    information: float


@dataclass(frozen=True)
class Expectation:
    """How large a count has to be, how exact it will be, and what the question costs on average.

    All of it follows from the question's public parameters: anyone who may ask may know it. What the data make of it
    is a count of them, which only a paid answer may show; the owner of the data plans with `gris plan found --data`.

    `found_half` and `found_mostly` are how far a count must lie above the count at rank d_bar + 1 (0 if there are no
    more elements) for its element to pass the threshold with 50 % and 95 % probability; None where there is no
    threshold. UnkGumb may put its threshold at an earlier rank if that finds more. `half_width` is that of a 95 %
    interval of plain noise, and `mean_error` how far a count is off on average; None without counts.

    `ordered_mostly` is how far two counts must lie apart to be ranked in their order before noise with 95 %; None where
    the noise in the counts alone decides. `prices` are for counts of `found_half` and `found_mostly`; empty where the
    price is the same whatever is found. `is_fixed` says that the threshold is the same whatever the data: then
    `found_half` and `found_mostly` are counts themselves.
    """

    found_half: int | None
    found_mostly: int | None
    half_width: int | None
    mean_error: float | None = None
    ordered_mostly: int | None = None
    prices: tuple[Price, ...] = ()
    is_fixed: bool = False


def expectation_of(parameters: Parameters) -> Expectation:
    """Return what to expect of a question that has been resolved to these parameters."""
    threshold = _threshold(parameters)
    needed = [] if threshold is None else [threshold.needed(HALF), threshold.needed(MOSTLY)]
    return Expectation(
        found_half=needed[0] if needed else None,
        found_mostly=needed[1] if needed else None,
        half_width=_half_width(parameters),
        mean_error=_mean_error(parameters),
        ordered_mostly=_ordered_mostly(parameters),
        prices=tuple(_prices(parameters, threshold, needed)),
        is_fixed=isinstance(threshold, GaussianThreshold),
    )


def _prices(parameters: Parameters, threshold: Threshold | None, heights: Sequence[int]) -> Iterator[Price]:
    """Yield what UnkGumb costs: a unit for the threshold, for each element and bottom, and for each count."""
    if not isinstance(threshold, GumbelThreshold) or parameters.k is None:
        return
    of_element = 1 if parameters.noise_scale is None else 2
    for above in heights:
        found = found_of_equals(threshold, parameters.k, above)
        # Bottom is not met if all are found.
        information = of_element * found.elements + 2 - found.all_of_them
        yield Price(above, round(found.elements, 3), round(information, 3))


def _ordered_mostly(parameters: Parameters) -> int | None:
    """Return the gap at which the exponential mechanism ranks two counts rightly."""
    if parameters.mechanism not in (Mechanism.UNK_GUMB, Mechanism.KNOWN_GUMB):
        return None
    return gumbel_gap(parameters.epsilon_per, parameters.tau)


def _mean_error(parameters: Parameters) -> float | None:
    scale = parameters.noise_scale
    if scale is None:
        return None
    is_gaussian = parameters.count_noise is CountNoise.DISCRETE_GAUSSIAN
    return round((mean_gaussian_error if is_gaussian else mean_laplace_error)(float(scale)), 3)


def _fixed_threshold(contributions: Contributions | None) -> GaussianThreshold | None:
    """Return the threshold, of two looks that of the first: an element has to be named."""
    if contributions is None:
        return None
    look = contributions if contributions.names is None else contributions.names
    if look.threshold is None or look.noise_variance is None:
        return None
    return GaussianThreshold(look.threshold, look.noise_variance)


def _half_width(parameters: Parameters) -> int | None:
    scale = parameters.noise_scale
    if scale is None:
        return None
    if parameters.sharpened is not None and parameters.sharpened.planned:
        return gaussian_half_width(parameters.sharpened.noise_variance, ALPHA)
    if parameters.contributions is not None and parameters.contributions.noise_variance is not None:
        return gaussian_half_width(parameters.contributions.noise_variance, ALPHA)
    if parameters.count_noise is CountNoise.DISCRETE_GAUSSIAN:
        return gaussian_half_width(scale**2, ALPHA)
    return noise_half_width(1 / scale, ALPHA)


def _threshold(parameters: Parameters) -> Threshold | None:
    if (fixed := _fixed_threshold(parameters.contributions)) is not None:
        return fixed
    if parameters.delta is None or parameters.d_bar is None:
        return None
    currency = Currency(parameters.epsilon_per, parameters.delta)
    if parameters.mechanism is Mechanism.UNK_GUMB and parameters.k is not None:
        return gumbel_threshold(UnkGumb(currency, parameters.k, parameters.d_bar, parameters.tau))
    if parameters.mechanism is Mechanism.UNK_LAP and parameters.delta_l0 is not None:
        return laplace_threshold(UnkLap(currency, parameters.delta_l0, parameters.d_bar, parameters.tau))
    return None
