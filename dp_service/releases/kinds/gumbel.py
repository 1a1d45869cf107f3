"""The k largest, each chosen and paid for: of a known domain, or of an unknown one above a chosen threshold.

Elements are selected by Gumbel noise, and their counts then get noise of their own: so intervals are plain, whatever
was selected. k and whether counts are wanted change what is drawn and paid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.accuracy import (
    GumbelThreshold,
    found_of_equals,
    mean_gaussian_error,
    mean_laplace_error,
)
from dp_service.mechanisms import Currency, KnownGumb, UnkGumb
from dp_service.mechanisms.count_noise import gaussian_variance
from dp_service.mechanisms.intervals import (
    CountIntervals,
    fresh_noise_interval,
    gaussian_half_width,
    gaussian_noise_interval,
    noise_half_width,
)
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.kinds.kind import Fields
from dp_service.releases.kinds.parts import HALF, MOSTLY, counts_of, made, needed
from dp_service.releases.kinds.unbounded import Unbounded
from dp_service.releases.kinds.views import ExpectedAccuracy, ExpectedPrice, IntervalKind, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement
from dp_service.terms import CountNoise


@dataclass(frozen=True, eq=False)
class Gumbel(Unbounded[KnownGumb | UnkGumb]):
    """At most k elements by the exponential mechanism, for members who change any number of elements."""

    @classmethod
    def of(cls, parameters: ReleaseParameters, currency: Currency) -> Gumbel:
        """Return the kind with its mechanism."""
        k, tau, with_counts = needed(parameters.k), parameters.tau, parameters.with_counts
        noise = parameters.count_noise
        if parameters.domain is not None:
            return cls(parameters, made(KnownGumb, currency, k, tau, with_counts, noise))
        d_bar = needed(parameters.d_bar)
        return cls(parameters, made(UnkGumb, currency, k, d_bar, tau, with_counts, noise))

    @property
    def information_per_element(self) -> int:
        """One choice, and one count if there are counts."""
        return 2 if self.parameters.with_counts else 1

    @property
    def said(self) -> Fields:
        """What a message says of it."""
        asked = self.parameters
        own = {
            "d_bar": asked.d_bar,
            "count_noise": asked.count_noise if asked.with_counts else None,
            "noise_scale": self.noise_scale,
        }
        return {"gumbel": own}

    def intervals(
        self, drawn: MechanismOutput, count: int, alpha: Fraction
    ) -> tuple[CountIntervals, IntervalKind]:
        """Return plain intervals: the noise in a count had no part in choosing its element."""
        noisy, scale, minimum = counts_of(drawn)[:count], self.mechanism.count_inverse_scale, self.least_shown
        found = (
            gaussian_noise_interval(noisy, self._variance, alpha=alpha, minimum=minimum)
            if self._is_gaussian
            else fresh_noise_interval(noisy, scale, alpha=alpha, minimum=minimum)
        )
        return found, IntervalKind.PLAIN

    @property
    def _is_gaussian(self) -> bool:
        return self.parameters.count_noise is CountNoise.GAUSSIAN

    @property
    def _variance(self) -> Fraction:
        return gaussian_variance(self.mechanism.count_inverse_scale)

    @property
    def gloss(self) -> str:
        """What its mechanism does, in a few words."""
        if self.parameters.domain is not None:
            return "the exponential mechanism over a known domain, once for each place"
        return "the exponential mechanism with a private threshold; the domain is not known"

    def accuracy(self) -> ExpectedAccuracy:
        """Return how exact counts will be, how large they have to be, and how far apart to be ranked rightly."""
        scale = self.noise_scale
        threshold = gumbel_threshold(self.mechanism) if isinstance(self.mechanism, UnkGumb) else None
        heights = () if threshold is None else (threshold.needed(HALF), threshold.needed(MOSTLY))
        return ExpectedAccuracy(
            half_width=None if scale is None else self._half_width(scale),
            mean_error=None if scale is None else self._mean_error(scale),
            found_half=heights[0] if heights else None,
            found_mostly=heights[1] if heights else None,
            ordered_mostly=gumbel_gap(self.mechanism.currency.epsilon_per, self.mechanism.tau),
            prices=() if threshold is None else tuple(self._price(threshold, above) for above in heights),
        )

    def _price(self, threshold: GumbelThreshold, above: int) -> ExpectedPrice:
        """Return what UnkGumb costs: a unit for the threshold, for each element and bottom, and for each count."""
        found = found_of_equals(threshold, self.mechanism.k, above)
        # Bottom is not met if all are found.
        information = self.information_per_element * found.elements + 2 - found.all_of_them
        return ExpectedPrice(above, round(found.elements, 3), round(information, 3))

    def _half_width(self, scale: Fraction) -> int:
        if self._is_gaussian:
            return gaussian_half_width(self._variance, 1 - MOSTLY)
        return noise_half_width(1 / scale, 1 - MOSTLY)

    def _mean_error(self, scale: Fraction) -> float:
        mean = mean_gaussian_error if self._is_gaussian else mean_laplace_error
        return round(mean(float(scale)), 3)

    def of_intervals(self, view: ReleaseView, confidence: float) -> Iterator[Statement]:
        """Yield what the intervals of a list cover, and that its order has noise of its own."""
        yield from super().of_intervals(view, confidence)
        if view.intervals is not None:
            yield Statement(
                "order.apart", "Order and counts carry noise apart, so counts may disagree with the order."
            )


def gumbel_gap(epsilon_per: Fraction, tau: int) -> int:
    """Return how far two counts must lie apart to be ranked as before noise with 95 %: the law is logistic."""
    odds = math.log(MOSTLY / (1 - MOSTLY))
    return math.ceil(odds * tau / float(epsilon_per))


def gumbel_threshold(mechanism: UnkGumb) -> GumbelThreshold:
    """Return the threshold of UnkGumb at its last rank."""
    currency = mechanism.currency
    return GumbelThreshold(currency.epsilon_per, currency.delta, mechanism.tau, mechanism.d_bar)
