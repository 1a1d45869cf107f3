"""Delta of a question: in how many elements a member counts in full, by what the policy says of its columns.

A policy says of how many values of a column a member typically has rows. Elements are combinations of values, so a
member typically has no more of them than the product, and never more than there are. All of these numbers are public.
Where the query bounds members, a number that is wrong costs accuracy and no privacy.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple


class Values(NamedTuple):
    """The values of one column that a question groups by.

    Attributes:
        of_member: Of how many of them a member has rows, typically or at most; None: the policy does not say.
        size: How many values there are that the question's conditions and the domain allow; None: any number.
    """

    of_member: int | None
    size: int | None

    @property
    def least(self) -> int | None:
        """The smaller of the two, where the policy says the first."""
        return (
            self.of_member if self.of_member is None or self.size is None else min(self.of_member, self.size)
        )


def elements_of_member(columns: Iterable[Values]) -> int | None:
    """Return in how many elements of some columns a member is; None: the policy does not say so of each column.

    >>> elements_of_member([Values(32, None), Values(4, 3), Values(8, 1)])
    96
    >>> elements_of_member([])
    1
    """
    found = [each.least for each in columns]
    return prod(each for each in found if each is not None) if None not in found else None
