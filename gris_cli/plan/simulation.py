"""Runs of the real mechanisms on a histogram, many times over, with fresh noise each time.

Every run is the mechanism as dp_service runs it, with noise from a seed of its own. Nothing of a simulation is private,
for it looks at true counts and shows them.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency, UnkGumb, UnkLap
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.noise.encoding import length_prefixed
from gris_cli.expectations import laplace_threshold
from gris_cli.plan.histograms import NamedHistogram

Advance = Callable[[], None]


class Draws:
    """Fresh noise for each run: from the operating system, or from a seed for runs that can be repeated."""

    def __init__(self, seed: int | None) -> None:
        self._key = secrets.token_bytes(32) if seed is None else hashlib.sha256(str(seed).encode()).digest()

    def noise(self, *labels: str) -> KeyedNoise:
        """Return the noise of one run, independent of that of other labels."""
        message = length_prefixed(*(label.encode() for label in labels))
        return KeyedNoise(KeyedStream(hmac.digest(self._key, message, "sha256")))


@dataclass(frozen=True)
class CurvePoint:
    """How many elements UnkGumb returned: the mean, and the quarters below which 25 % and 75 % of the runs lie."""

    epsilon_per: Fraction
    d_bar: int
    mean: float
    lower: float
    upper: float


def curve(
    named: NamedHistogram,
    mechanisms: Sequence[UnkGumb],
    draws: Draws,
    *,
    trials: int,
    advance: Advance,
) -> Iterator[CurvePoint]:
    """Yield a point for each mechanism, from `trials` runs; `advance` is called after each run."""
    for mechanism in mechanisms:
        histogram = named.largest(mechanism.d_bar + 1).histogram
        label = (str(mechanism.currency.epsilon_per), str(mechanism.d_bar))
        returned = np.empty(trials)
        for trial in range(trials):
            returned[trial] = mechanism.run(histogram, draws.noise(*label, str(trial))).indices.size
            advance()
        lower, upper = np.percentile(returned, [25, 75])
        yield CurvePoint(
            mechanism.currency.epsilon_per,
            mechanism.d_bar,
            float(returned.mean()),
            float(lower),
            float(upper),
        )


@dataclass(frozen=True)
class FoundElement:
    """How often an element was found, and its noisy count in the first run if that found it.

    `share` is of the runs; `expected` is the closed form where there is one.
    """

    rank: int
    element: str
    count: int
    noisy_count: int | None
    share: float
    expected: float | None


def found(
    named: NamedHistogram,
    mechanism: UnkLap | UnkGumb,
    draws: Draws,
    *,
    shown: int,
    trials: int,
    advance: Advance,
) -> list[FoundElement]:
    """Return the `shown` elements of the largest counts, with how often each was found in `trials` runs."""
    fetched = named.largest(mechanism.d_bar + 1)
    size = len(fetched.histogram)
    times = np.zeros(size, dtype=np.int64)
    noisy: dict[int, int] = {}
    for trial in range(trials):
        selection = mechanism.run(
            fetched.histogram, draws.noise(str(mechanism.currency.epsilon_per), str(trial))
        )
        times[selection.indices] += 1
        if trial == 0 and selection.noisy_counts is not None:
            noisy = dict(zip(selection.indices.tolist(), selection.noisy_counts.tolist(), strict=True))
        advance()
    expected = _expected(mechanism, fetched.histogram.descending_counts)
    ranked = fetched.histogram.canonical_order[: min(shown, mechanism.d_bar)].tolist()
    return [
        FoundElement(
            rank=rank + 1,
            element=fetched.elements[index],
            count=int(fetched.histogram.counts_by_element[index]),
            noisy_count=noisy.get(index),
            share=int(times[index]) / trials,
            expected=None if expected is None else expected(rank),
        )
        for rank, index in enumerate(ranked)
    ]


def _expected(mechanism: UnkLap | UnkGumb, counts: NDArray[np.int64]) -> Callable[[int], float] | None:
    """Return the chance of each rank to be found; UnkGumb's depends on all counts together and has no closed form."""
    if isinstance(mechanism, UnkGumb):
        return None
    threshold = laplace_threshold(mechanism)
    cut = int(counts[mechanism.d_bar]) if counts.size > mechanism.d_bar else 0
    return lambda rank: threshold.chance(int(counts[rank]) - cut) if counts[rank] else 0.0


def gumbel_mechanisms(
    epsilons: Sequence[Fraction], d_bars: Sequence[int], *, delta: Fraction, k: int, tau: int
) -> list[UnkGumb]:
    """Return UnkGumb for every pair, without the counts, which change nothing in what is returned."""
    return [
        UnkGumb(Currency(epsilon_per, delta), k, d_bar, tau, with_counts=False)
        for d_bar in d_bars
        for epsilon_per in epsilons
    ]
