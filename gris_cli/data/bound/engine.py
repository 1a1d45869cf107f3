"""What a copy needs of the engine that makes it."""

from __future__ import annotations

from typing import Any, Protocol

from gris_cli.data.dialects import DataDialect


class CopyEngine(Protocol):
    """Makes temporary tables of the rows of queries, written in its dialect, and answers from them."""

    @property
    def dialect(self) -> DataDialect:
        """The engine's SQL."""

    def table(self, name: str, query: str, what: str = "") -> None:
        """Make a temporary table; `what` says for people what takes so long."""

    def drop(self, name: str) -> None:
        """Drop a temporary table."""

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the one row of a query."""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""

    def types(self, name: str) -> dict[str, str]:
        """Return the type of each column of a table, by the engine's name."""
