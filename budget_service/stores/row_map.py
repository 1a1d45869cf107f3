"""What a store is: a map of rows for each root account, beside a journal that only grows. It knows no rule.

A row has a key and a text. Keys are compared byte by byte, so that those of one kind lie together and can be scanned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field

from budget_service.ledger.windows import Microseconds

# A root account, and the key of a row of it.
RowKey: TypeAlias = tuple[str, str]


class Range(NamedTuple):
    """The first `at_most` rows of a root with keys behind `after` and before `until`; all of them without a number."""

    root: str
    after: str
    until: str
    at_most: int | None = None


class Put(NamedTuple):
    """A row that is written in place of one with the same key; one that `is_new` has none, or the commit is a fault.

    It may be removed once its root's time has come to `keep_until`.
    """

    key: RowKey
    text: str
    keep_until: Microseconds | None = None
    is_new: bool = False


class Appended(NamedTuple):
    """An entry of a root's journal, by its number; the first one has number 1."""

    root: str
    number: int
    text: str


class Found(NamedTuple):
    """Rows of one moment in any order, and the store's time then or later."""

    clock: Microseconds
    rows: Mapping[RowKey, str]


class Writes(Struct):
    """What is written together. `times` are those of the roots that have rows which are written with an end.

    By them at most `purged` rows of each that are out of date are removed: faster than they come, so that no request
    pays for a month.
    """

    times: dict[str, Microseconds]
    puts: list[Put] = field(default_factory=list)
    deletes: list[RowKey] = field(default_factory=list)
    appends: list[Appended] = field(default_factory=list)
    purged: int = 0


class OvertakenError(Exception):
    """Somebody else has changed the root since it was first read: what was read is of two moments. Read it again."""


class RowReading(Protocol):
    """Reads rows of one moment."""

    async def read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        """Return rows as they are since the first reading. Raises OvertakenError or StoreUnavailableError."""


class RowTransaction(RowReading, Protocol):
    """A transaction on some roots that has begun."""

    async def commit(self, writes: Writes | None, committed: Callable[[], None]) -> bool:
        """Write all or nothing; False: what was read has changed since. See `transactions.Transaction`."""


class RowMap(Protocol):
    """The rows of a store."""

    def begin(self, roots: Collection[str]) -> AbstractAsyncContextManager[RowTransaction]:
        """Begin a transaction; without a commit it ends without effect. Raises StoreUnavailableError."""

    def reading(self) -> AbstractAsyncContextManager[RowReading]:
        """Begin a transaction that only reads. Raises StoreUnavailableError."""
