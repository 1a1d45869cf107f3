"""The result of a mechanism, and what can be derived from it without further cost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Selection:
    """A private release: ranked elements with noisy counts, and nothing of the true ones.

    `indices` has shape (j,): positions in `Histogram.counts_by_element`, in the order of release.
    `noisy_counts` has the same shape, or is None where counts were not asked for. `ended_in_bottom` says
    that the list ends at the noisy threshold; `bottom` is that threshold where the mechanism releases it.
    """

    indices: NDArray[np.int64]
    noisy_counts: NDArray[np.int64] | None
    ended_in_bottom: bool
    bottom: int | None = None


def selection_thresholds(selection: Selection, shown: int) -> NDArray[np.int64] | None:
    """Return the noisy count that each of the first `shown` elements had to reach to be shown.

    For releases whose elements are selected by their own noisy counts (KnownLap, UnkLap). Element i is
    among the first `shown` exactly if v_i >= t_i, where t_i comes from the noisy counts of the others
    alone: it is the noisy count of the first element that is cut off, plus one where that one would win a
    tie; and never less than bottom + 1. Returns shape (min(shown, j),), or None if nothing was selected: no
    bottom and no cut.

    Raises:
        ValueError: If `shown` is negative or the release has no counts.
    """
    if shown < 0:
        raise ValueError(f"shown must not be negative, got {shown}")
    if selection.noisy_counts is None:
        raise ValueError("selection must have noisy counts")
    kept = selection.indices[:shown]
    floor = None if selection.bottom is None else np.full(kept.size, selection.bottom + 1, dtype=np.int64)
    if shown >= selection.indices.size:
        return floor
    wins_ties = kept < selection.indices[shown]
    first_cut_off = int(selection.noisy_counts[shown])
    cut = np.where(wins_ties, first_cut_off, first_cut_off + 1)
    return cut if floor is None else np.maximum(cut, floor)
