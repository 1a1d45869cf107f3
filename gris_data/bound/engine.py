"""What a copy needs of the engine that makes it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Protocol

from dp_service.queries.pairs_manifest import CopiedPeriod, PairsManifest
from gris_data.bound.pairs_rows import PeriodContent
from gris_data.bound.source import Columns
from gris_data.dialects import DataDialect


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


class PairsEngine(CopyEngine, Protocol):
    """Makes a pairs copy from an input: the view `GIVEN` of its rows, the view `PRESENT`, the table `ADDED`."""

    def open(self, columns: Columns, since: datetime.date | None) -> dict[str, str]:
        """Check the input and make the view of its rows; return the type of each of its columns.

        Args:
            columns: What these are.
            since: The first day that is read, and rows without one; None: all are.

        Raises:
            InputError: There is no such input, or it cannot be read or copied.
        """

    def show_present(self, files: Sequence[str], columns: Sequence[str]) -> None:
        """Make the view of these columns of a copy's files."""

    def add(self, query: str) -> None:
        """Make the table of new rows, when all else that is read of the input has been read."""

    def write(self, manifest: PairsManifest, content: PeriodContent) -> CopiedPeriod:
        """Write the file of a period of new rows."""

    def finish(self, added: Sequence[CopiedPeriod]) -> None:
        """Put the files of new periods in their place.

        Raises:
            InputError: The input changed meanwhile.
        """
