"""All tiny histograms, their neighbours, and mechanisms as functions from named counts to named outcomes."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple, Protocol

from dp_service.mechanisms import Histogram, Mechanism
from dp_service.mechanisms.selection import Selection
from dp_service.noise import NoiseSource

from .enumeration import Law, output_law

Counts = tuple[int, ...]


class Release(NamedTuple):
    """A selection with elements by name, as a value that can be counted."""

    elements: tuple[int, ...]
    noisy_counts: tuple[int, ...] | None
    ended_in_bottom: bool
    bottom: int | None


def all_histograms(elements: int, largest: int) -> list[Counts]:
    """Return every assignment of counts from 0 to `largest` to the elements, which are named by position."""
    return list(product(range(largest + 1), repeat=elements))


def neighbouring_pairs(
    histograms: list[Counts], *, tau: int, delta_l0: int
) -> Iterator[tuple[Counts, Counts]]:
    """Yield each pair with and without one member, in both orders."""
    known = set(histograms)
    for counts in histograms:
        for steps in product(range(tau + 1), repeat=len(counts)):
            larger = tuple(count + step for count, step in zip(counts, steps, strict=True))
            if larger in known and 0 < sum(step > 0 for step in steps) <= delta_l0:
                yield counts, larger
                yield larger, counts


def over_known_domain(mechanism: Mechanism, counts: Counts) -> Callable[[NoiseSource], Release]:
    """Run on all counts, zeros included."""
    return named_run(mechanism, list(range(len(counts))), counts)


def over_unknown_domain(
    mechanism: Mechanism, counts: Counts, *, d_bar: int
) -> Callable[[NoiseSource], Release]:
    """Run on the d_bar + 1 largest counts that exist, ties at the cut broken by the element."""
    return named_run(mechanism, _fetched(counts, d_bar), counts)


def _fetched(counts: Counts, d_bar: int) -> list[int]:
    present = [element for element, count in enumerate(counts) if count > 0]
    return sorted(sorted(present, key=lambda element: (-counts[element], element))[: d_bar + 1])


def laws_over(
    histograms: list[Counts], run_on: Callable[[Counts], Callable[[NoiseSource], Release]], *, radius: int
) -> dict[Counts, Law[Release]]:
    """Return the exact output law for each histogram."""
    return {counts: output_law(run_on(counts), radius=radius) for counts in histograms}


def laws_over_unknown_domain(
    mechanism: Mechanism, histograms: list[Counts], *, d_bar: int, radius: int
) -> dict[Counts, Law[Release]]:
    """Return the exact output law for each histogram, of which the mechanism is given the rows that are fetched.

    No name is part of a row, so histograms with the same fetched counts share an enumeration.
    """
    unnamed: dict[Counts, Law[Release]] = {}
    laws = {}
    for counts in histograms:
        fetched = _fetched(counts, d_bar)
        rows = tuple(counts[element] for element in fetched)
        if rows not in unnamed:
            unnamed[rows] = output_law(named_run(mechanism, list(range(len(rows))), rows), radius=radius)
        laws[counts] = _named(unnamed[rows], fetched)
    return laws


def _named(law: Law[Release], names: list[int]) -> Law[Release]:
    mass = {
        outcome._replace(elements=tuple(names[element] for element in outcome.elements)): probability
        for outcome, probability in law.mass.items()
    }
    return Law(mass, law.lost)


class Runs(Protocol):
    """A mechanism, served or not."""

    def run(self, histogram: Histogram, noise: NoiseSource, /) -> Selection:
        """Draw one release."""


def named_run(mechanism: Runs, elements: list[int], counts: Counts) -> Callable[[NoiseSource], Release]:
    """Run on the counts of some elements, and name what is released by these."""
    histogram = Histogram.from_element_order([counts[element] for element in elements])

    def run(noise: NoiseSource) -> Release:
        selection = mechanism.run(histogram, noise)
        released = tuple(elements[index] for index in selection.indices.tolist())
        noisy = None if selection.noisy_counts is None else tuple(selection.noisy_counts.tolist())
        return Release(released, noisy, selection.ended_in_bottom, selection.bottom)

    return run
