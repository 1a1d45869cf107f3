"""dp_service with one thing broken, to show that the audit would find it.

    python -m tests.campaigns.audit.broken_service FAULT --policy ... --key-file ...

The faults are put in place here, in the tests: no option and no environment variable of the real service can.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import UnkGumb, unk_gumb
from dp_service.mechanisms.bounded import BoundGauss
from dp_service.mechanisms.bounded.threshold import hiding_threshold
from dp_service.noise import KeyedStream, LogWeights
from dp_service.noise.source import KeyedNoise
from dp_service.queries.render import member_bounds
from dp_service.queries.render.member_bounds import Weights
from dp_service.server.process import main

_BELOW_ALL_COUNTS = -1000
_MORE_THAN_ANYBODY_HAS = 1000


def half_the_noise() -> None:
    """Every count gets noise of half its scale."""
    real = KeyedNoise.discrete_laplace

    def halved(self: KeyedNoise, inverse_scale: Fraction, size: int, label: str) -> NDArray[np.int64]:
        return real(self, 2 * inverse_scale, size, label)

    KeyedNoise.discrete_laplace = halved  # type: ignore[method-assign]


def threshold_without_tau() -> None:
    """The threshold of UnkGumb lacks its `+ tau`."""
    real = unk_gumb.selection_weights

    def lowered(mechanism: UnkGumb, counts: NDArray[np.int64], k_bar: int, cut: int) -> LogWeights:
        weights = real(mechanism, counts, k_bar, cut)
        multiples = weights.multiples.copy()
        multiples[-1] -= mechanism.tau
        return dataclasses.replace(weights, multiples=multiples)

    unk_gumb.selection_weights = lowered


def half_the_noise_of_choices() -> None:
    """Every selection gets Gumbel noise of half its scale."""
    real = KeyedNoise.gumbel_order

    def halved(self: KeyedNoise, weights: LogWeights, count: int, label: str) -> NDArray[np.int64]:
        return real(self, dataclasses.replace(weights, unit=2 * weights.unit), count, label)

    KeyedNoise.gumbel_order = halved  # type: ignore[method-assign]


def half_the_gaussian_noise() -> None:
    """Every Gaussian count gets noise of half its sigma."""
    real = KeyedNoise.discrete_gaussian

    def halved(self: KeyedNoise, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        return real(self, variance / 4, size, label)

    KeyedNoise.discrete_gaussian = halved  # type: ignore[method-assign]


def threshold_without_min_count() -> None:
    """The threshold of BoundGauss forgets that what is looked at counts min_count - 1 without the newcomer."""

    def lowered(look: BoundGauss) -> int | None:
        if look.min_count is None:
            return None
        return hiding_threshold(look.bound, look.variance, look.currency.delta, min_count=1)

    BoundGauss.threshold = property(lowered)  # type: ignore[assignment, method-assign]


def no_threshold_for_names() -> None:
    """Looks show every element, so that one of a single member is named, and then counted."""

    def lowered(look: BoundGauss) -> int | None:
        return None if look.min_count is None else _BELOW_ALL_COUNTS

    BoundGauss.threshold = property(lowered)  # type: ignore[assignment, method-assign]


def without_noise(ending: str) -> None:
    """Counts carry noise, and what is drawn beside them under a label with this ending none: a total, or sums."""
    real = KeyedNoise.discrete_gaussian

    def exact(self: KeyedNoise, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        drawn = real(self, variance, size, label)
        return np.zeros_like(drawn) if label.endswith(ending) else drawn

    KeyedNoise.discrete_gaussian = exact  # type: ignore[method-assign]


def bounds_nobody() -> None:
    """Members count in all of their elements, which the mechanism takes to be at most typical."""
    real = member_bounds.Weights

    def unbounded(_: int, *others: Any) -> Weights:
        return real(_MORE_THAN_ANYBODY_HAS, *others)

    member_bounds.Weights = unbounded  # type: ignore[assignment, misc]


def noise_of_a_fixed_seed() -> None:
    """Every release has the noise of every other."""

    def fixed(self: KeyedNoise, stream: KeyedStream) -> None:
        del stream
        self._stream = KeyedStream(bytes(32))
        self._used_labels = set()

    KeyedNoise.__init__ = fixed  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], None]] = {
    "bounds_nobody": bounds_nobody,
    "half_the_noise": half_the_noise,
    "half_the_noise_of_choices": half_the_noise_of_choices,
    "half_the_gaussian_noise": half_the_gaussian_noise,
    "threshold_without_min_count": threshold_without_min_count,
    "noise_of_a_fixed_seed": noise_of_a_fixed_seed,
    "no_threshold_for_names": no_threshold_for_names,
    "sums_without_noise": partial(without_noise, "sums"),
    "total_without_noise": partial(without_noise, "total"),
    "threshold_without_tau": threshold_without_tau,
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
