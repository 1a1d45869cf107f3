"""What a member counts with, by the rules of `dp_service.bounding`: the reference for what engines compute."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from math import isqrt
from typing import TypeVar

from dp_service.noise.encoding import length_prefixed
from dp_service.terms import GRID

Text = TypeVar("Text", str, tuple[str, ...])


def order_hash(salt: bytes, member: str, *element: str) -> bytes:
    """Return the 32 bytes by which one element of one member is ordered.

    `salt` is public. The member and the values of the element, one for each column, are canonical texts in UTF-8.

    >>> order_hash(b"salt", "ada", "x").hex()[:16]
    '0652e5bbe34b3ad6'
    """
    texts = (text.encode() for text in (member, *element))
    return hashlib.sha256(length_prefixed(salt, *texts)).digest()


def kept(salt: bytes, member: str, elements: Iterable[Text], typical: int) -> list[Text]:
    """Return the at most `typical` distinct elements that count, in the order in which they are kept.

    An element is a text, or a tuple of texts, one for each column. They are ascending by
    `order_hash`, ties by element in code-point order.
    """

    def place(element: Text) -> tuple[bytes, Text]:
        values = (element,) if isinstance(element, str) else element
        return order_hash(salt, member, *values), element

    return sorted(set(elements), key=place)[:typical]


def weight(squared_distance: int, square_sum: int) -> int:
    """Return W of a member.

    Args:
        squared_distance: D, on the grid.
        square_sum: Q, the sum of the squares of its cells, positive.

    >>> weight(49 * GRID**2, 625)
    28
    """
    return min(GRID, isqrt(squared_distance // square_sum))


def weighted(cells: Sequence[int], squared_distance: int, *, least: int = 1) -> list[int]:
    """Return what a member adds to the counts of its elements, on the grid.

    Args:
        cells: The cells of one member, each at least 1.
        squared_distance: D, on the grid.
        least: The least contribution that counts.
    """
    if not cells:
        return []
    by = weight(squared_distance, sum(cell * cell for cell in cells))
    return [by * cell if by * cell >= least else 0 for cell in cells]
