"""How exact an answer can be expected to be, from the parameters of its mechanism alone and before anything is paid.

Nothing here bounds privacy loss, and no data are read.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.accuracy import (
    GumbelThreshold,
    LaplaceThreshold,
    mean_gaussian_error,
    mean_laplace_error,
)
from dp_service.mechanisms import KnownGumb, UnkGumb, UnkLap
from dp_service.mechanisms.bounded.gaussian_tails import log_tail
from dp_service.mechanisms.intervals import gaussian_half_width, noise_half_width
from dp_service.mechanisms.unk_lap import threshold_shift
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.mechanism import count_noise_scale, look_of, mechanism_of, shift_of, two_looks_of
from dp_service.releases.sharpening import law_of
from dp_service.terms import CountNoise

HALF = Fraction(1, 2)
MOSTLY = Fraction(19, 20)
ALPHA = 1 - MOSTLY
# What floats do to the logarithm of a tail.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ExpectedAccuracy:
    """How exact the counts of an answer will be, and how large a count has to be.

    `half_width` is that of a 95 % interval of plain noise, and `mean_error` how far a count is off on average; None
    without counts. `found_mostly` is how far a count must lie above the count at rank d_bar + 1 for its element to pass
    the threshold with 95 %, or if `is_fixed` the count itself; None where there is no threshold. `ordered_mostly` is
    how far two counts must lie apart to be ranked in their order before noise with 95 %; None where the counts' noise
    decides.
    """

    half_width: int | None
    mean_error: float | None
    found_mostly: int | None
    is_fixed: bool
    ordered_mostly: int | None


@dataclass(frozen=True)
class GaussianThreshold:
    """The threshold of BoundGauss, and the variance parameter of the noise."""

    threshold: int
    variance: Fraction

    def needed(self, probability: Fraction) -> int:
        """Return the smallest bounded count whose element is shown with this probability."""
        level = math.log(probability)
        # Noise beyond ten standard deviations decides nothing here.
        highest = self.threshold + 10 * math.isqrt(math.ceil(self.variance)) + 10
        return bisect.bisect_left(
            range(highest), True, key=lambda count: self._log_shown(count) >= level - _ROUNDING
        )

    def _log_shown(self, count: int) -> float:
        return log_tail(float(self.variance), self.threshold + 1 - count)


Threshold = GumbelThreshold | LaplaceThreshold | GaussianThreshold


def expected_accuracy(parameters: ReleaseParameters) -> ExpectedAccuracy:
    """Return how exact an answer with these parameters can be expected to be."""
    threshold = _threshold(parameters)
    # Quantiles have no counts; their ranks are part of the parameters.
    scale = None if parameters.quantiles is not None else count_noise_scale(parameters)
    return ExpectedAccuracy(
        half_width=None if scale is None else _half_width(parameters, scale),
        mean_error=None if scale is None else _mean_error(parameters, scale),
        found_mostly=None if threshold is None else threshold.needed(MOSTLY),
        is_fixed=isinstance(threshold, GaussianThreshold),
        ordered_mostly=_ordered_mostly(parameters),
    )


def gumbel_gap(epsilon_per: Fraction, tau: int) -> int:
    """Return how far two counts must lie apart to be ranked as before noise with 95 %: the law is logistic."""
    odds = math.log(MOSTLY / (1 - MOSTLY))
    return math.ceil(odds * tau / float(epsilon_per))


def gumbel_threshold(mechanism: UnkGumb) -> GumbelThreshold:
    """Return the threshold of UnkGumb at its last rank."""
    currency = mechanism.currency
    return GumbelThreshold(currency.epsilon_per, currency.delta, mechanism.tau, mechanism.d_bar)


def laplace_threshold(mechanism: UnkLap) -> LaplaceThreshold:
    """Return the threshold of UnkLap."""
    return LaplaceThreshold(mechanism.count_inverse_scale, threshold_shift(mechanism))


def _threshold(parameters: ReleaseParameters) -> Threshold | None:
    mechanism = mechanism_of(parameters)
    if isinstance(mechanism, UnkGumb):
        return gumbel_threshold(mechanism)
    if isinstance(mechanism, UnkLap):
        return laplace_threshold(mechanism)
    looks = two_looks_of(parameters)
    # Of two looks the first decides: an element has to be named.
    look = look_of(parameters) if looks is None else looks.names_look
    if look is None or look.threshold is None:
        return None
    return GaussianThreshold(look.threshold, look.variance)


def _half_width(parameters: ReleaseParameters, scale: Fraction) -> int:
    variance = _variance(parameters, scale)
    return noise_half_width(1 / scale, ALPHA) if variance is None else gaussian_half_width(variance, ALPHA)


def _variance(parameters: ReleaseParameters, scale: Fraction) -> Fraction | None:
    """Return the variance of Gaussian noise in a count; None: the noise is Laplace's."""
    stated = parameters.contributions
    if stated is None:
        return scale**2 if parameters.count_noise is CountNoise.GAUSSIAN else None
    if stated.before is not None and stated.before.planned:
        return law_of(parameters).variance
    shift, look = shift_of(parameters), look_of(parameters)
    if shift is not None:
        return shift.error_variance
    return scale**2 if look is None else look.variance


def _mean_error(parameters: ReleaseParameters, scale: Fraction) -> float:
    is_gaussian = parameters.contributions is not None or parameters.count_noise is CountNoise.GAUSSIAN
    return round((mean_gaussian_error if is_gaussian else mean_laplace_error)(float(scale)), 3)


def _ordered_mostly(parameters: ReleaseParameters) -> int | None:
    """Return the gap at which the exponential mechanism ranks two counts rightly."""
    mechanism = mechanism_of(parameters)
    if not isinstance(mechanism, UnkGumb | KnownGumb):
        return None
    return gumbel_gap(parameters.epsilon_per, mechanism.tau)
