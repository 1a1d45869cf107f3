"""Counts with Laplace noise in each: of a known domain all of them, of an unknown one those above a noisy threshold.

Elements are selected by their own noisy counts, so the intervals of a list that is cut or has a threshold hold given
that its elements are shown. Any k is the same release.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.accuracy import LaplaceThreshold, mean_laplace_error
from dp_service.mechanisms import Currency, KnownLap, UnkLap
from dp_service.mechanisms.intervals import (
    CountIntervals,
    fresh_noise_interval,
    noise_half_width,
    thresholded_interval,
)
from dp_service.mechanisms.selection import selection_thresholds
from dp_service.mechanisms.unk_lap import threshold_shift
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.kinds.kind import Fields
from dp_service.releases.kinds.parts import HALF, MOSTLY, counts_of, made, needed
from dp_service.releases.kinds.unbounded import Unbounded
from dp_service.releases.kinds.views import ExpectedAccuracy, IntervalKind
from dp_service.releases.mechanism_output import MechanismOutput


@dataclass(frozen=True, eq=False)
class Laplace(Unbounded[KnownLap | UnkLap]):
    """Counts with Laplace noise of scale 2 tau / epsilon_per, for members who change at most Delta elements."""

    @classmethod
    def of(cls, parameters: ReleaseParameters, currency: Currency) -> Laplace:
        """Return the kind with its mechanism."""
        delta_l0, tau = needed(parameters.delta_l0), parameters.tau
        if parameters.domain is not None:
            return cls(parameters, made(KnownLap, currency, delta_l0, tau))
        return cls(parameters, made(UnkLap, currency, delta_l0, needed(parameters.d_bar), tau))

    @property
    def said(self) -> Fields:
        """What a message says of it."""
        asked = self.parameters
        own = {"delta_l0": asked.delta_l0, "d_bar": asked.d_bar, "noise_scale": self.noise_scale}
        return {"laplace": own}

    @property
    def grows_with(self) -> str:
        """The settings of the policy with which its threshold grows."""
        return f"tau = {self.parameters.tau} and Delta = {self.parameters.delta_l0}"

    @property
    def most_found(self) -> int | None:
        """The elements that are fetched of an unknown domain, without the last one."""
        return self.parameters.d_bar

    def intervals(
        self, drawn: MechanismOutput, count: int, alpha: Fraction
    ) -> tuple[CountIntervals, IntervalKind]:
        """Return the intervals of the first elements, which hold given that they are shown."""
        noisy, scale = counts_of(drawn)[:count], self.mechanism.count_inverse_scale
        minimum = self.least_shown
        thresholds = selection_thresholds(drawn.selection, count)
        if thresholds is None:
            plain = fresh_noise_interval(noisy, scale, alpha=alpha, minimum=minimum)
            return plain, IntervalKind.PLAIN
        given_shown = thresholded_interval(noisy, thresholds, scale, alpha=alpha, minimum=minimum)
        return given_shown, IntervalKind.GIVEN_SHOWN

    @property
    def gloss(self) -> str:
        """What its mechanism does, in a few words."""
        if self.parameters.domain is not None:
            return "Laplace noise on every element of a known domain"
        return "Laplace noise and a noisy threshold; the domain is not known"

    def accuracy(self) -> ExpectedAccuracy:
        """Return how exact counts will be, and how large they have to be."""
        scale = self.noise_scale
        threshold = laplace_threshold(self.mechanism) if isinstance(self.mechanism, UnkLap) else None
        return ExpectedAccuracy(
            half_width=None if scale is None else noise_half_width(1 / scale, 1 - MOSTLY),
            mean_error=None if scale is None else round(mean_laplace_error(float(scale)), 3),
            found_half=None if threshold is None else threshold.needed(HALF),
            found_mostly=None if threshold is None else threshold.needed(MOSTLY),
        )


def laplace_threshold(mechanism: UnkLap) -> LaplaceThreshold:
    """Return the threshold of UnkLap."""
    return LaplaceThreshold(mechanism.count_inverse_scale, threshold_shift(mechanism))
