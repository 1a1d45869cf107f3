"""How many examples a property is tried on, and which cases are left to the night."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

_Case = TypeVar("_Case")

MORE = "GRIS_TEST_EXAMPLES"


def examples(number: int) -> int:
    """Return the number for a run of all tests, or as many times it as the campaign `properties` asks for."""
    return number * int(os.environ.get(MORE, "1"))


def long_but(is_short: Callable[[_Case], bool], cases: Iterable[_Case]) -> list[Any]:
    """Return values of one parameter, of which those that are not short are left to the night."""
    return [case if is_short(case) else pytest.param(case, marks=pytest.mark.nightly) for case in cases]


def long_rows_but(is_short: Callable[..., bool], rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Return values of several parameters, of which the rows that are not short are left to the night."""
    return [tuple(row) if is_short(*row) else pytest.param(*row, marks=pytest.mark.nightly) for row in rows]
