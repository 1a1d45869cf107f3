"""What a loop of assertions goes through is there: a claim about nothing holds whatever the code does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_Thing = TypeVar("_Thing")


def some(things: Iterable[_Thing]) -> list[_Thing]:
    """Return things as a list.

    Raises:
        AssertionError: There are none.
    """
    found = list(things)
    assert found, "expected something to make claims about"
    return found
