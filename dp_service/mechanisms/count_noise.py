"""The fresh noise in the counts of the Gumbel mechanisms: discrete Laplace or discrete Gaussian.

Source: Canonne, Kamath and Steinke 2020 for the discrete Gaussian; Bun and Steinke 2016 for zCDP.

Why both are private. A member moves a count by at most tau. Laplace noise of scale 2 tau / e makes each
count (e / 2)-DP, hence e-BR and (e^2 / 8)-zCDP. Gaussian noise of variance 4 tau^2 / e^2 makes it (e^2 / 8)-zCDP as
well, and with 1/11 more (e / 2)-GDP (`gaussian_price`), at 71 % of the standard deviation. But it is neither e-BR nor
e-DP for any e: a unit of information pays for it **only where the guarantee is accounted in zCDP**, and a policy whose
budget is accounted otherwise must not offer it.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.parameters import require_drawable
from dp_service.noise.discrete_gaussian import MAX_VARIANCE
from dp_service.noise.gaussian_price import variance_for
from dp_service.noise.source import NoiseSource
from dp_service.terms import CountNoise


def draw_count_noise(
    law: CountNoise, inverse_scale: Fraction, size: int, noise: NoiseSource
) -> NDArray[np.int64]:
    """Draw noise for `size` counts: Laplace of scale 1 / inverse_scale, or Gaussian of the same zCDP."""
    if law is CountNoise.LAPLACE:
        return noise.discrete_laplace(inverse_scale, size, "counts")
    return noise.discrete_gaussian(gaussian_variance(inverse_scale), size, "counts")


def require_drawable_counts(law: CountNoise, inverse_scale: Fraction) -> None:
    """Raise ValueError, in terms of the caller's parameters, unless counts can get noise of this law and scale."""
    require_drawable(inverse_scale)
    if law is CountNoise.GAUSSIAN and gaussian_variance(inverse_scale) > MAX_VARIANCE:
        raise ValueError(
            "epsilon_per and tau must give Gaussian count noise a variance of at most "
            f"{MAX_VARIANCE}, got {gaussian_variance(inverse_scale)}"
        )


def gaussian_variance(inverse_scale: Fraction) -> Fraction:
    """Return the variance of noise for one unit, where the Laplace scale of the same zCDP is 2 tau / e."""
    return variance_for(1, inverse_scale**2 / 2)
