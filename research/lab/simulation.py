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

from dp_service.mechanisms import Currency, Histogram, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.mechanisms.selection import Selection
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.noise.encoding import length_prefixed
from dp_service.releases.kinds.laplace import laplace_threshold
from research.lab.histograms import NamedHistogram

Planned = UnkLap | UnkGumb | KnownLap | KnownGumb
"""A mechanism of an unknown domain, or of a known one: then the domain is all elements of the histogram."""


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
) -> Iterator[CurvePoint]:
    """Yield a point for each mechanism, from `trials` runs."""
    for mechanism in mechanisms:
        histogram = named.largest(mechanism.d_bar + 1).histogram
        label = (str(mechanism.currency.epsilon_per), str(mechanism.d_bar))
        returned = np.empty(trials)
        for trial in range(trials):
            returned[trial] = mechanism.run(histogram, draws.noise(*label, str(trial))).indices.size
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
    """How often an element was found, and its noisy counts in the runs that found it.

    `share` is of the runs; `expected` is the closed form where there is one. `noisy_count` is that of the first run, if
    that found it. `lower` and `upper` are the quantiles of 2.5 % and 97.5 % of the noisy counts of the first runs, at
    most BAND_RUNS of them; None where none of these found it.
    """

    rank: int
    element: str
    count: int
    noisy_count: int | None
    share: float
    expected: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Outcome:
    """What a question costs and finds, on average over the runs.

    `worst_case` and `information` are units; `calls` is the same in every run. `recall` is the share of the k elements
    of the largest counts, or of all if there are fewer, that was found. `error` is how far a noisy count that was shown
    lay from the true one; None if none was shown.
    """

    worst_case: int
    information: float
    calls: int
    recall: float
    error: float | None


@dataclass(frozen=True)
class Found:
    """What the runs of one mechanism found: element by element, and as a whole."""

    elements: tuple[FoundElement, ...]
    outcome: Outcome


BAND_RUNS = 1000
"""How many runs the bands of noisy counts are made of: more would only take memory."""


class _Tally:
    """Adds up runs."""

    def __init__(
        self, mechanism: Planned, histogram: Histogram, ranked: NDArray[np.int64], trials: int
    ) -> None:
        self.times = np.zeros(len(histogram), dtype=np.int64)
        self.first: dict[int, int] = {}
        self.noisy = np.full((min(trials, BAND_RUNS), ranked.size), np.nan)
        self._mechanism = mechanism
        self._counts = histogram.counts_by_element
        self._columns = {int(index): column for column, index in enumerate(ranked)}
        self._top = ranked[self._counts[ranked] > 0]
        self._information = self._hits = self._errors = self._shown = 0
        self._trials = trials

    def add(self, trial: int, selection: Selection) -> None:
        """Add a run."""
        self.times[selection.indices] += 1
        self._information += self._mechanism.cost(
            selection.indices.size, selection.ended_in_bottom
        ).information
        self._hits += int(np.isin(self._top, selection.indices).sum())
        if selection.noisy_counts is None:
            return
        self._errors += int(np.abs(selection.noisy_counts - self._counts[selection.indices]).sum())
        self._shown += selection.indices.size
        if trial < BAND_RUNS:
            counts = dict(zip(selection.indices.tolist(), selection.noisy_counts.tolist(), strict=True))
            self.first = counts if trial == 0 else self.first
            for index in counts.keys() & self._columns.keys():
                self.noisy[trial, self._columns[index]] = counts[index]

    def outcome(self) -> Outcome:
        """Return the averages."""
        worst = self._mechanism.worst_case_cost()
        return Outcome(
            worst_case=worst.information,
            information=self._information / self._trials,
            calls=worst.calls,
            recall=self._hits / (self._trials * self._top.size) if self._top.size else 0.0,
            error=self._errors / self._shown if self._shown else None,
        )


def found(
    named: NamedHistogram,
    mechanism: Planned,
    draws: Draws,
    *,
    shown: int,
    trials: int,
) -> Found:
    """Return the `shown` elements of the largest counts, how often each was found in `trials` runs, and averages."""
    d_bar = mechanism.d_bar if isinstance(mechanism, UnkLap | UnkGumb) else None
    fetched = named if d_bar is None else named.largest(d_bar + 1)
    histogram = fetched.histogram
    ranked = histogram.canonical_order[: shown if d_bar is None else min(shown, d_bar)]
    tally = _Tally(mechanism, histogram, ranked, trials)
    for trial in range(trials):
        noise = draws.noise(str(mechanism.currency.epsilon_per), str(trial))
        tally.add(trial, _cut(mechanism.run(histogram, noise), mechanism, shown))
    expected = _expected(mechanism, histogram.counts_by_element[histogram.canonical_order])
    elements = tuple(
        FoundElement(
            rank=rank + 1,
            element=fetched.elements[index],
            count=int(histogram.counts_by_element[index]),
            noisy_count=tally.first.get(index),
            share=int(tally.times[index]) / trials,
            expected=None if expected is None else expected(rank),
            **_band(tally.noisy[:, rank]),
        )
        for rank, index in enumerate(ranked.tolist())
    )
    return Found(elements, tally.outcome())


def _cut(selection: Selection, mechanism: Planned, shown: int) -> Selection:
    """Return what a question for the `shown` largest is shown: of KnownLap, which counts all, the first of them."""
    if not isinstance(mechanism, KnownLap) or selection.noisy_counts is None:
        return selection
    return Selection(selection.indices[:shown], selection.noisy_counts[:shown], selection.ended_in_bottom)


def _band(noisy: NDArray[np.float64]) -> dict[str, float | None]:
    seen = noisy[~np.isnan(noisy)]
    if not seen.size:
        return {"lower": None, "upper": None}
    lower, upper = np.percentile(seen, [2.5, 97.5])
    return {"lower": float(lower), "upper": float(upper)}


def _expected(mechanism: Planned, counts: NDArray[np.int64]) -> Callable[[int], float] | None:
    """Return the chance of each rank to be found; only UnkLap's does not depend on all counts together."""
    if not isinstance(mechanism, UnkLap):
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
