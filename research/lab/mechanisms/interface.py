"""The interface that alternatives share, and helpers that cut a histogram."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.selection import Selection
from dp_service.noise.interval_arithmetic import Interval
from dp_service.noise.source import NoiseSource


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP, both rounded upwards.

    `choices` is the number of epsilon_per-BR choices that make up epsilon, where the mechanism is a
    sequence of such and composes better than its epsilon says; None where nothing more than (epsilon,
    delta) is known.
    """

    epsilon: float
    delta: float
    choices: int | None


class ComparedMechanism(Protocol):
    """A frozen description of one mechanism with all its parameters; it checks them when it is made."""

    @property
    def label(self) -> str:
        """Its name in tables."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what is promised for neighbouring histograms."""
        ...

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Draw one release from a whole histogram: every element that exists, or the whole domain if it is known."""
        ...


def rounded_up(value: Fraction | int) -> float:
    """Return a float that is not below a rational number.

    >>> rounded_up(Fraction(1, 10)) > Fraction(1, 10)
    True
    """
    return math.nextafter(float(value), math.inf)


def upper_end(value: Interval) -> float:
    """Return a float that is not below any number of an interval."""
    return math.nextafter(float(value.b), math.inf)


def largest_rows(histogram: Histogram, rows: int) -> tuple[Histogram, NDArray[np.int64]]:
    """Return the rows that an engine would fetch of an unknown domain, and the elements that they are.

    They are the `rows` largest counts, ties at the cut broken by the element, without zeros.
    """
    existing = int(np.count_nonzero(histogram.counts_by_element))
    elements = np.sort(histogram.canonical_order[: min(rows, existing)])
    return Histogram.from_element_order(histogram.counts_by_element[elements]), elements


def largest_counts(histogram: Histogram, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the same rows, largest first: their counts, filled up with zeros to `rows`, and their elements."""
    fetched, elements = largest_rows(histogram, rows)
    return np.sort(fetched.padded_to(rows))[::-1], elements[fetched.canonical_order]


def by_noisy_count(indices: NDArray[np.int64], noisy_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return positions that put a release in order: noisy count descending, then element.

    Breaking ties by position in the canonical order, which goes by true count, would reveal the true order of
    the tied elements with certainty.
    """
    return np.lexsort((indices, -noisy_counts))
