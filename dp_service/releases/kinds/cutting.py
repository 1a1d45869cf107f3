"""Where a list of an unknown domain ends so that it can be kept and sent, whatever it is that was released.

What cannot be sent could be asked again and again without being paid for. So a list ends before it is too large, and
where it does follows from what was released: the elements, in their order, and their noisy counts. Elements that count
as much as the first one that is left out are left out too: then each one that is kept exceeds that count, as it
exceeds a threshold, and intervals hold given that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dp_service.releases.kinds.parts import counts_of
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.terms import Element, Scalar

MAX_LIST_BYTES = 128 * 2**20
"""How large the texts and numbers of a list are at most; release stores take twice as much."""

_NUMBER_BYTES = 10
# Questions and engines have no longer texts.
_WIDEST_BYTES = 4096


def fitting_list(
    elements: Sequence[Element], drawn: MechanismOutput, most_bytes: int = MAX_LIST_BYTES
) -> MechanismOutput:
    """Return a release whose elements can be kept.

    Args:
        elements: Those of the histogram.
        drawn: The release.
        most_bytes: How large its texts and numbers are at most.
    """
    indices = drawn.selection.indices
    numbers = _NUMBER_BYTES * (1 + len(drawn.sums))
    if indices.size and indices.size * (_WIDEST_BYTES * len(elements[0]) + numbers) > most_bytes:
        sizes = (numbers + sum(map(_bytes_of, elements[place])) for place in indices.tolist())
        return _first(drawn, _that_fit(sizes, most_bytes))
    return drawn


def _first(drawn: MechanismOutput, count: int) -> MechanismOutput:
    """Return the first elements, without those that count as much as the one after them."""
    counts = counts_of(drawn)
    if count >= counts.size:
        return drawn
    beyond = int(counts[count])
    kept = int((counts[:count] > beyond).sum())
    found = drawn.of_rows(range(kept))
    return replace(found, selection=replace(found.selection, bottom=beyond))


def _that_fit(sizes: Iterable[int], most: int) -> int:
    """Return how many things of these sizes fit."""
    total = count = 0
    for size in sizes:
        total += size
        if total > most:
            break
        count += 1
    return count


def _bytes_of(value: Scalar) -> int:
    return len(value.encode()) if isinstance(value, str) else _NUMBER_BYTES
