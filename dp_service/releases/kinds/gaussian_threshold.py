"""How large a bounded count has to be for its element to be shown."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction

from dp_service.mechanisms.bounded import BoundGauss
from dp_service.mechanisms.bounded.gaussian_tails import log_tail

# What floats do to the logarithm of a tail.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class GaussianThreshold:
    """The threshold of BoundGauss, and the variance parameter of the noise, both on its grid."""

    threshold: int
    variance: Fraction
    grid: int

    @classmethod
    def of(cls, look: BoundGauss) -> GaussianThreshold | None:
        """Return that of a look; None: nothing hides its elements."""
        return None if look.threshold is None else cls(look.threshold, look.variance, look.bound.grid)

    def needed(self, probability: Fraction) -> int:
        """Return the smallest bounded count whose element is shown with this probability."""
        level = math.log(probability)
        # Noise beyond ten standard deviations decides nothing here.
        highest = self.threshold + 10 * math.isqrt(math.ceil(self.variance)) + 10
        found = bisect.bisect_left(
            range(highest), True, key=lambda count: self.log_shown(count) >= level - _ROUNDING
        )
        return -(-found // self.grid)

    def log_shown(self, count: int) -> float:
        """Return the logarithm of the probability with which an element of this count, on the grid, is shown."""
        return log_tail(float(self.variance), self.threshold + 1 - count)
