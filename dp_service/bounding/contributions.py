"""The elements of every member as arrays, and which of them are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Contributions:
    """Members and their distinct elements, in the order in which a member's elements are kept.

    Member i holds the elements `elements[offsets[i]:offsets[i + 1]]`; `offsets` has shape (members + 1,) and begins
    with 0. An element is a code from 0 to `element_count` - 1. A member without elements is allowed. The members
    are in an order that does not depend on which others there are, such as that of their ids: sequential
    weightings read them in it.

    Raises:
        ValueError: The arrays do not fit together.
    """

    offsets: Integers
    elements: Codes
    element_count: int

    def __post_init__(self) -> None:
        if self.offsets.ndim != 1 or self.offsets.size == 0 or self.offsets[0] != 0:
            raise ValueError("offsets must be one array that begins with 0")
        if self.offsets[-1] != self.elements.size or np.any(np.diff(self.offsets) < 0):
            raise ValueError("offsets must not fall, and must end with the number of pairs")
        if self.elements.size and not 0 <= self.elements.min() <= self.elements.max() < self.element_count:
            raise ValueError("elements must be codes from 0 to element_count - 1")

    @property
    def member_count(self) -> int:
        """How many members there are."""
        return self.offsets.size - 1

    @cached_property
    def sizes(self) -> Integers:
        """How many elements each member holds, shape (members,)."""
        return np.diff(self.offsets)

    def bounded(self, typical: int, removed: NDArray[np.bool_] | None = None) -> Contributions:
        """Return what is left when the `removed` elements are gone and every member keeps its first `typical`.

        `removed` has shape (element_count,).

        Raises:
            ValueError: `typical` is not positive.
        """
        if typical < 1:
            raise ValueError(f"typical must be at least 1, got {typical}")
        if removed is None and (not self.sizes.size or self.sizes.max() <= typical):
            return self
        left = np.ones(self.elements.size, dtype=np.bool_) if removed is None else ~removed[self.elements]
        # How many pairs are left before each pair, over all members and then of its own member.
        before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(left)))
        rank = before[:-1] - np.repeat(before[self.offsets[:-1]], self.sizes)
        left &= rank < typical
        kept_before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(left)))
        return Contributions(kept_before[self.offsets], self.elements[left], self.element_count)
