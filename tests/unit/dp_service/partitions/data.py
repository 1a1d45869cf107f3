"""Small data sets: every member a tuple of element codes in the order in which they are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np

from dp_service.bounding.contributions import Contributions

Member = tuple[int, ...]


def contributions(members: Sequence[Member], element_count: int) -> Contributions:
    """Return the members as arrays."""
    offsets = np.cumsum([0, *map(len, members)], dtype=np.int64)
    elements = np.array([element for member in members for element in member], dtype=np.int32)
    return Contributions(offsets, elements, element_count)


def member_sets(element_count: int) -> list[Member]:
    """Return every set of elements that a member may have, none left out."""
    return [
        chosen for size in range(element_count + 1) for chosen in combinations(range(element_count), size)
    ]


def neighbours(element_count: int, most_members: int) -> Iterator[tuple[list[Member], list[Member]]]:
    """Yield every data set up to a number of members, without and with one more member, wherever that stands."""
    sets = member_sets(element_count)
    for count in range(most_members):
        for members in combinations_with_replacement(sets, count):
            for more in sets:
                for place in {0, count}:
                    yield list(members), [*members[:place], more, *members[place:]]
