"""What to expect of a question, from the parameters of its mechanism alone and before anything is paid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.accuracy import GumbelThreshold, LaplaceThreshold
from dp_service.mechanisms import Currency, UnkGumb, UnkLap
from dp_service.mechanisms.intervals import gaussian_half_width, noise_half_width
from dp_service.mechanisms.unk_lap import threshold_shift
from pinot_connector.results import CountNoise, Mechanism, Parameters

HALF = Fraction(1, 2)
MOSTLY = Fraction(19, 20)
ALPHA = 1 - MOSTLY


@dataclass(frozen=True)
class Expectation:
    """How large a count has to be, and how exact it will be.

    `found_half` and `found_mostly` are how far a count must lie above the count at rank d_bar + 1 (0 if there are no
    more elements) for its element to pass the threshold with 50 % and 95 % probability; None where there is no
    threshold. UnkGumb may put its threshold at an earlier rank if that finds more. `half_width` is that of a 95 %
    interval of plain noise; None without counts.
    """

    found_half: int | None
    found_mostly: int | None
    half_width: int | None


def expectation_of(parameters: Parameters) -> Expectation:
    """Return what to expect of a question that has been resolved to these parameters."""
    threshold = _threshold(parameters)
    return Expectation(
        found_half=threshold.needed(HALF) if threshold else None,
        found_mostly=threshold.needed(MOSTLY) if threshold else None,
        half_width=_half_width(parameters),
    )


def gumbel_threshold(mechanism: UnkGumb) -> GumbelThreshold:
    """Return the threshold of UnkGumb at its last rank."""
    currency = mechanism.currency
    return GumbelThreshold(currency.epsilon_per, currency.delta, mechanism.tau, mechanism.d_bar)


def laplace_threshold(mechanism: UnkLap) -> LaplaceThreshold:
    """Return the threshold of UnkLap."""
    return LaplaceThreshold(mechanism.count_inverse_scale, threshold_shift(mechanism))


def _half_width(parameters: Parameters) -> int | None:
    scale = parameters.noise_scale
    if scale is None:
        return None
    if parameters.count_noise is CountNoise.DISCRETE_GAUSSIAN:
        return gaussian_half_width(scale**2, ALPHA)
    return noise_half_width(1 / scale, ALPHA)


def _threshold(parameters: Parameters) -> GumbelThreshold | LaplaceThreshold | None:
    if parameters.delta is None or parameters.d_bar is None:
        return None
    currency = Currency(parameters.epsilon_per, parameters.delta)
    if parameters.mechanism is Mechanism.UNK_GUMB and parameters.k is not None:
        return gumbel_threshold(UnkGumb(currency, parameters.k, parameters.d_bar, parameters.tau))
    if parameters.mechanism is Mechanism.UNK_LAP and parameters.delta_l0 is not None:
        return laplace_threshold(UnkLap(currency, parameters.delta_l0, parameters.d_bar, parameters.tau))
    return None
