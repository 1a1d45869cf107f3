"""All tiny histograms, their neighbours, and mechanisms as functions from named counts to named outcomes."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

from dp_service.mechanisms import Histogram, Mechanism
from dp_service.mechanisms.comparison import ComparedMechanism
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
    return _named_run(mechanism, list(range(len(counts))), counts)


def over_unknown_domain(
    mechanism: Mechanism, counts: Counts, *, d_bar: int
) -> Callable[[NoiseSource], Release]:
    """Run on the d_bar + 1 largest counts that exist, ties at the cut broken by the element."""
    present = [element for element, count in enumerate(counts) if count > 0]
    fetched = sorted(present, key=lambda element: (-counts[element], element))[: d_bar + 1]
    return _named_run(mechanism, sorted(fetched), counts)


def over_whole_histogram(mechanism: ComparedMechanism, counts: Counts) -> Callable[[NoiseSource], Release]:
    """Run an alternative on all counts; it cuts them itself to what it may see."""
    return _named_run(mechanism, list(range(len(counts))), counts)


def laws_over(
    histograms: list[Counts], run_on: Callable[[Counts], Callable[[NoiseSource], Release]], *, radius: int
) -> dict[Counts, Law[Release]]:
    """Return the exact output law for each histogram."""
    return {counts: output_law(run_on(counts), radius=radius) for counts in histograms}


def _named_run(
    mechanism: Mechanism | ComparedMechanism, elements: list[int], counts: Counts
) -> Callable[[NoiseSource], Release]:
    histogram = Histogram.from_element_order([counts[element] for element in elements])

    def run(noise: NoiseSource) -> Release:
        selection = mechanism.run(histogram, noise)
        released = tuple(elements[index] for index in selection.indices.tolist())
        noisy = None if selection.noisy_counts is None else tuple(selection.noisy_counts.tolist())
        return Release(released, noisy, selection.ended_in_bottom, selection.bottom)

    return run
