"""What a stored release store needs of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

Values: TypeAlias = Mapping[str, Any]
Execute: TypeAlias = Callable[[str, Values], list[tuple[Any, ...]]]
_Answer = TypeVar("_Answer")


class Database(Protocol):
    """Runs transactions. Every method but `check` is called in one of `threads` threads.

    Every method raises `ReleaseStoreFailed` if the database cannot be used; its message holds no value.
    """

    threads: int
    """How many transactions may run at a time."""

    bytes_type: str
    """The name of the type for bytes."""

    id_type: str
    """The type of a number that the database gives out in ascending order."""

    def has_tables(self, execute: Execute) -> bool:
        """Returns whether there is a release store in the database, and refuses one that holds something else."""
        ...

    def lock(self, execute: Execute) -> None:
        """Makes every other transaction that calls this wait until this one has ended."""
        ...

    def run(self, work: Callable[[Execute], _Answer]) -> _Answer:
        """Returns what some work returns that was done in a transaction.

        If the connection was lost, it is done again in another: doing it twice must have the effect of doing it once.
        """
        ...

    def check(self) -> None:
        """Raises if what was opened is not what is there now. It does not wait."""
        ...

    def size_bytes(self) -> int:
        """Returns how much is kept."""
        ...

    def close(self) -> None:
        """Closes all connections."""
        ...
