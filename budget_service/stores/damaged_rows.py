"""Reads rows of a store: one that cannot be read is damage of the ledger, reported with its table and key.

What a store holds was valid when it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from budget_service.ledger.limits import parse_limit
from budget_service.ledger.values import Limit
from budget_service.stores.interface import StoreDamagedError

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

# How a value that no version has written makes itself felt; an unknown time zone is a LookupError.
_UNREADABLE = (ValueError, TypeError, LookupError)


def reads(
    table: str, key: Callable[[Any], object] = str
) -> Callable[[Callable[Arguments, Value]], Callable[Arguments, Value]]:
    """Have a function that reads a row of a table raise StoreDamagedError for one it cannot read.

    Args:
        table: The table, or whatever the store has in its place.
        key: Returns the key of the row from the first argument of the function.
    """

    def reading(read: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
        @wraps(read)
        def reading_row(*row: Arguments.args, **named: Arguments.kwargs) -> Value:
            try:
                return read(*row, **named)
            except _UNREADABLE as error:
                raise StoreDamagedError(table, str(key(row[0]))) from error

        return reading_row

    return reading


@contextmanager
def reading_row(table: str, key: str) -> Iterator[None]:
    """Raise StoreDamagedError if the block cannot read a row."""
    try:
        yield
    except _UNREADABLE as error:
        raise StoreDamagedError(table, key) from error


@reads("limits")
def read_limit(_level: str, text: str) -> Limit:
    """Return the stored limit of a level from its text."""
    return parse_limit(text)
