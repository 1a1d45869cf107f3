"""One look, two looks and UnkGumb on the counts that are expected under each bound: what they find, and their error.

`Trials` runs the mechanisms themselves, with exact noise. `Sketch` draws the same with normal noise on the elements
that are not hopeless, for all settings of a search; only what it proposes is then run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dp_service.queries.policy_types import NAMES_SHARE
from dp_service.mechanisms import Currency, Histogram, UnkGumb
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, TwoLooks
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from research.lab.bound.contributions import MOST_ELEMENTS, BoundedCounts, Floats
from research.lab.simulation import Draws

Integers = NDArray[np.int64]

SKETCHES = 64
"""How many runs a sketch is the mean of."""

_HOPELESS = 5.5
"""An element so many standard deviations below what is shown is shown in one run of fifty million."""

_SKETCHED = 40
"""A sketch looks at so many times the elements that may be named: those with the most left."""


@dataclass(frozen=True)
class Question:
    """What will be asked: the k largest elements, in a currency, with the policy's min_count and d_bar.

    Raises:
        ValueError: UnkGumb would fetch more elements than a plan looks at.
    """

    currency: Currency
    k: int
    min_count: int
    d_bar: int

    def __post_init__(self) -> None:
        if self.d_bar >= MOST_ELEMENTS:
            raise ValueError(f"d_bar must be below {MOST_ELEMENTS} in a plan, got {self.d_bar}")

    @property
    def most_names(self) -> int:
        """M: the first of two looks keeps half as many names again as are asked for."""
        return math.ceil(3 * self.k / 2)


@dataclass(frozen=True)
class OneLook:
    """One look with the bound Delta."""

    units: int
    bound: int


@dataclass(frozen=True)
class BothLooks:
    """Two looks; in the first half as many elements of a member count in full as in the second."""

    units: int
    counts_bound: int

    @property
    def names_bound(self) -> int:
        """How many count in full in the first look."""
        return -(-self.counts_bound // 2)

    def mechanism(self, question: Question) -> TwoLooks:
        """Return the mechanism.

        Raises:
            ValueError: A parameter is out of range, or the noise cannot be drawn.
        """
        bounds = ContributionBound(self.names_bound), ContributionBound(self.counts_bound)
        share = NAMES_SHARE * self.units
        return TwoLooks(
            question.currency, self.units, share, *bounds, question.min_count, question.most_names
        )


@dataclass(frozen=True)
class Worth:
    """Means over runs.

    Attributes:
        units: Information units that were charged.
        shown: How many elements were shown.
        found: How many of these are of the true k largest.
        error: How far a shown count is from the count before bounding; None if nothing was shown.
        error_part: The same as a part of the count before bounding; 0 if nothing was shown.
    """

    units: float
    shown: float
    found: float
    error: float | None
    error_part: float = 0.0


class Trials:
    """Runs the mechanisms, as dp_service would, on the counts that are expected under their bounds."""

    def __init__(self, counts: BoundedCounts, question: Question, draws: Draws, trials: int) -> None:
        self._counts = counts
        self._question = question
        self._draws = draws
        self._trials = trials

    def unk_gumb(self) -> Worth:
        """Return what UnkGumb finds: unbounded counts, two units for each element that is shown."""
        asked = self._question
        mechanism = UnkGumb(asked.currency, asked.k, asked.d_bar, 1)
        histogram = _histogram(self._counts.counts[: asked.d_bar + 1])
        tally = _Tally(self._counts.counts, asked.k)
        for trial in range(self._trials):
            found = mechanism.run(histogram, self._draws.noise("gumbel", str(trial)))
            cost = mechanism.cost(found.indices.size, found.ended_in_bottom)
            tally.add(found.indices, _counts_of(found.noisy_counts), cost.information)
        return tally.worth()

    def one_look(self, look: OneLook) -> Worth:
        """Return what one look finds.

        Raises:
            ValueError: A parameter is out of range, or the noise cannot be drawn.
        """
        asked = self._question
        mechanism = BoundGauss(
            asked.currency, Fraction(look.units), ContributionBound(look.bound), asked.min_count
        )
        hopeful = self._hopeful(mechanism)
        histogram = _histogram(self._counts.under(look.bound)[hopeful])
        tally = _Tally(self._counts.counts, asked.k)
        for trial in range(self._trials):
            found = mechanism.run(histogram, self._draws.noise(repr(look), str(trial)))
            noisy = _counts_of(found.noisy_counts)[: asked.k]
            tally.add(hopeful[found.indices[: asked.k]], noisy, look.units)
        return tally.worth()

    def two_looks(self, looks: BothLooks) -> Worth:
        """Return what two looks find.

        Raises:
            ValueError: A parameter is out of range, or the noise cannot be drawn.
        """
        k, mechanism = self._question.k, looks.mechanism(self._question)
        hopeful = self._hopeful(mechanism.names_look)
        first = _histogram(self._counts.under(looks.names_bound)[hopeful])
        within = np.rint(self._counts.within_names(looks.counts_bound)).astype(np.int64)
        tally = _Tally(self._counts.counts, k)
        for trial in range(self._trials):
            drawn = mechanism.draw_names(first, self._draws.noise(repr(looks), "names", str(trial)))
            names = np.sort(hopeful[drawn])
            histogram = Histogram.from_element_order(within[names])
            found = mechanism.draw_counts(histogram, self._draws.noise(repr(looks), "counts", str(trial)))
            noisy = _counts_of(found.noisy_counts)[:k]
            tally.add(names[found.indices[:k]], noisy, looks.units)
        return tally.worth()

    def _hopeful(self, look: BoundGauss) -> Integers:
        """Return the elements that a look may show, ascending; all others only take time."""
        threshold, sigma = look.threshold or 0, math.sqrt(look.variance)
        left = self._counts.under(look.bound.typical)
        return np.flatnonzero(np.rint(left) > threshold - _HOPELESS * sigma)


class _Tally:
    """Adds up runs."""

    def __init__(self, counts: Floats, k: int) -> None:
        self._counts = counts
        self._k = k
        self._runs = self._units = self._shown = self._found = 0
        self._errors = self._parts = 0.0

    def add(self, elements: Integers, noisy: Integers, units: int) -> None:
        self._runs += 1
        self._units += units
        self._shown += elements.size
        self._found += int(np.count_nonzero(elements < self._k))
        counts = self._counts[elements]
        errors = np.abs(noisy - counts)
        self._errors += float(errors.sum())
        self._parts += float((errors / counts).sum())

    def worth(self) -> Worth:
        error = self._errors / self._shown if self._shown else None
        part = self._parts / max(self._shown, 1)
        return Worth(
            self._units / self._runs, self._shown / self._runs, self._found / self._runs, error, part
        )


class Sketch:
    """What settings find, about: normal noise, the same for all of them, so that they can be compared."""

    def __init__(self, counts: BoundedCounts, question: Question, seed: int) -> None:
        self._counts = counts
        self._question = question
        drawn = np.random.Generator(np.random.PCG64(seed))
        self._first = drawn.standard_normal((SKETCHES, counts.counts.size), dtype=np.float32)
        self._second = drawn.standard_normal((SKETCHES, question.most_names), dtype=np.float32)

    def one_looks(self, units: int) -> Iterator[tuple[OneLook, Worth]]:
        """Yield every bound with what it finds."""
        for bound in self._counts.bounds:
            values, places = self._first_look(Fraction(units), bound, self._question.k)
            yield OneLook(units, bound), self._worth(units, values, places)

    def both_looks(self, units: int) -> Iterator[tuple[BothLooks, Worth]]:
        """Yield every bound of the second look with what it finds, with the services' rules for the first."""
        for counts_bound in self._useful_within:
            looks = BothLooks(units, counts_bound)
            values, places = self._first_look(NAMES_SHARE * units, looks.names_bound, self._question.most_names)
            noise = self._second * _sigma(self._question, (1 - NAMES_SHARE) * units, counts_bound)
            counted = self._counts.within_names(counts_bound)[places] + noise[:, : places.shape[1]]
            counted[~np.isfinite(values)] = -np.inf
            best = np.argsort(-counted, axis=1)[:, : self._question.k]
            kept = np.take_along_axis(counted, best, 1), np.take_along_axis(places, best, 1)
            yield looks, self._worth(units, *kept)

    @cached_property
    def _useful_within(self) -> tuple[int, ...]:
        """Bounds up to the first that cuts nothing within M names: more would only add noise."""
        enough = next((b for b in self._counts.bounds if b >= self._question.most_names), None)
        return tuple(b for b in self._counts.bounds if enough is None or b <= enough)

    def _first_look(self, units: Fraction, bound: int, rows: int) -> tuple[Floats, Integers]:
        """Return noisy counts and elements of the first `rows` of each run, shape (runs, rows).

        What is hidden has the value minus infinity.
        """
        sigma = _sigma(self._question, units, bound)
        threshold = _threshold(self._question, sigma, bound)
        left = self._counts.under(bound)
        least = max(self._question.min_count - 0.5, threshold - _HOPELESS * sigma)
        hopeful = np.flatnonzero(left >= least)
        if hopeful.size > _SKETCHED * self._question.most_names:
            hopeful = hopeful[np.argsort(-left[hopeful])[: _SKETCHED * self._question.most_names]]
        noisy = left[hopeful] + sigma * self._first[:, hopeful]
        noisy[noisy <= threshold] = -np.inf
        if hopeful.size > rows:
            best = np.argpartition(-noisy, rows - 1, axis=1)[:, :rows]
        else:
            best = np.broadcast_to(np.arange(hopeful.size), noisy.shape)
        return np.take_along_axis(noisy, best, 1), hopeful[best]

    def _worth(self, units: int, values: Floats, places: Integers) -> Worth:
        shown = np.isfinite(values)
        number = int(shown.sum())
        counts = self._counts.counts[places]
        errors = np.abs(values - counts)
        found = (shown & (places < self._question.k)).sum()
        error = float(errors[shown].sum()) / number if number else None
        part = float((errors / counts)[shown].sum()) / max(number, 1)
        return Worth(units, number / SKETCHES, float(found) / SKETCHES, error, part)


def _sigma(question: Question, units: Fraction, bound: int) -> float:
    return math.sqrt(variance_for(bound, rho_of_units(question.currency.epsilon_per, units)))


def _threshold(question: Question, sigma: float, bound: int) -> float:
    """Return about T, for distinct members."""
    # A float has no smaller delta, and the quantile of this one is close enough.
    allowed = max(float(question.currency.delta) / bound, 1e-300)
    return question.min_count - sigma * NormalDist().inv_cdf(allowed)


def _histogram(counts: Floats) -> Histogram:
    return Histogram.from_element_order(np.rint(counts).astype(np.int64))


def _counts_of(noisy: Integers | None) -> Integers:
    return np.zeros(0, dtype=np.int64) if noisy is None else noisy
