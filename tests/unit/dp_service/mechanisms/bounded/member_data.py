"""Small member-level data sets, their neighbours, and the histograms of bounded contributions.

A member has, in each period, its elements in the order in which they are kept, each with its number of rows. Every
order is tried, so whatever a hash of member and element may say is among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, permutations, product
from typing import TypeVar

from dp_service.mechanisms.bounded import ContributionBound, Counted

Rows = tuple[int, int]
"""An element, and how many rows a member has in it."""

Member = tuple[tuple[Rows, ...], ...]
"""The elements of each period, in the order in which they are kept."""

DataSet = tuple[Member, ...]
Counts = tuple[int, ...]

Valued = tuple[tuple[int, tuple[int, ...]], ...]
"""A member's elements in the order in which they are kept, each with its values in the order in which these are."""

_Member = TypeVar("_Member")


def members(elements: int, *, periods: int = 1, most_rows: int = 1) -> list[Member]:
    """Return every member there can be, the one without rows too."""
    of_period = [
        tuple(zip(order, rows, strict=True))
        for size in range(elements + 1)
        for order in permutations(range(elements), size)
        for rows in product(range(1, most_rows + 1), repeat=size)
    ]
    return list(product(of_period, repeat=periods))


def valued_members(elements: int, values: int) -> list[Valued]:
    """Return every member there can be, with some of the values in some of the elements."""
    held = [order for size in range(1, values + 1) for order in permutations(range(values), size)]
    return [
        tuple(zip(order, of_elements, strict=True))
        for size in range(elements + 1)
        for order in permutations(range(elements), size)
        for of_elements in product(held, repeat=size)
    ]


def distinct_counts(
    data: Sequence[Valued], bound: ContributionBound, elements: int, *, within: Sequence[int] | None = None
) -> Counts:
    """Return how many values some member keeps in each element: tau of each in its first Delta elements.

    Args:
        data: The members.
        bound: How contributions are bounded.
        elements: How many elements there are.
        within: The values that a filter of the question leaves, before anything is kept; None: all.
    """
    united: list[set[int]] = [set() for _ in range(elements)]
    for member in data:
        left = [
            (element, [each for each in values if within is None or each in within])
            for element, values in member
        ]
        for element, values in [each for each in left if each[1]][: bound.typical]:
            united[element].update(values[: bound.tau])
    return tuple(map(len, united))


def neighbours(
    possible: Sequence[_Member], most_members: int
) -> Iterator[tuple[tuple[_Member, ...], tuple[_Member, ...]]]:
    """Yield every data set of fewer members, without and with one member more."""
    for count in range(most_members):
        for chosen in combinations_with_replacement(possible, count):
            for more in possible:
                yield chosen, (*chosen, more)


def histogram(
    data: DataSet,
    bound: ContributionBound,
    elements: int,
    *,
    within: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
) -> Counts:
    """Return the counts of bounded contributions.

    Args:
        data: The members.
        bound: How contributions are bounded.
        elements: How many elements there are.
        within: A filter that acts before bounding, as a question's own filters do if bounding is done in the query.
        after: A filter that acts on what was bounded, as on a copy that was prepared.
    """
    counts = [0] * elements
    for member in data:
        contributed = [0] * elements
        for of_period in member:
            allowed = [(element, rows) for element, rows in of_period if within is None or element in within]
            for element, rows in allowed[: bound.typical]:
                if after is None or element in after:
                    contributed[element] += min(rows, bound.tau)
        for element, changed in enumerate(contributed):
            counts[element] += min(changed, 1) if bound.counted is Counted.MEMBERS else changed
    return tuple(counts)
