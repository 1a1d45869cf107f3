"""Cursors: one question each at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from pinot_connector.dbapi.errors import InterfaceError, NotSupportedError, dbapi_error
from pinot_connector.dbapi.parameters import Parameters, bound
from pinot_connector.dbapi.tables import Column, Values, described, tabulated
from pinot_connector.results import PrivateResult

if TYPE_CHECKING:
    from pinot_connector.dbapi.connection import Connection


@dataclass(frozen=True)
class _Result:
    """What a question brought; `rows` are those that have not been fetched."""

    release: PrivateResult
    description: tuple[Column, ...]
    rows: Iterator[Values]


class Cursor:
    """Asks questions and gives their rows. It belongs to one thread at a time.

    `arraysize` is how many rows `fetchmany` returns by default. After an `execute` that failed there is nothing to
    fetch: neither its own rows nor those of the question before.
    """

    def __init__(self, connection: Connection, *, intervals: bool) -> None:
        self.arraysize = 1
        self._connection = connection
        self._intervals = intervals
        self._closed = False
        self._result: _Result | None = None

    @property
    def connection(self) -> Connection:
        """The connection that the cursor asks through."""
        return self._connection

    @property
    def closed(self) -> bool:
        """Whether the cursor or its connection is closed."""
        return self._closed or self._connection.closed

    @property
    def description(self) -> tuple[Column, ...] | None:
        """Name, type, four times None, and False (never NULL) for each column; None before a result."""
        return None if self._result is None else self._result.description

    @property
    def rowcount(self) -> int:
        """How many rows the result has; -1 before a result."""
        return -1 if self._result is None else len(self._result.release.rows)

    @property
    def release(self) -> PrivateResult | None:
        """The release that the rows are of: mechanism, cost, remaining budget, whether it ended in bottom."""
        return None if self._result is None else self._result.release

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Asks a question and pays for it; returns this cursor.

        Args:
            operation: SQL of the accepted subset, with `%(name)s` for values and `%%` for a per cent sign.
            parameters: the values by name; see `parameters.bound`.

        Raises:
            ProgrammingError: the question or a parameter is wrong.
            NotSupportedError: the policy forbids the question.
            BudgetExhaustedError: the budget does not hold its worst case.
            OperationalError, InternalError: there is no result for another reason.
            InterfaceError: the cursor or its connection is closed.
        """
        self._require_open()
        self._result = None
        with dbapi_error():
            release = self._connection.ask(bound(operation, parameters))
        self._result = _Result(
            release,
            description=described(release, intervals=self._intervals),
            rows=tabulated(release, intervals=self._intervals),
        )
        return self

    def executemany(self, operation: str, seq_of_parameters: object) -> NoReturn:
        """Refuses: each question is paid for, so each is asked by its own `execute`."""
        raise NotSupportedError("executemany is not supported: each question is paid for, ask it by execute")

    def fetchone(self) -> Values | None:
        """Returns the next row, or None if there is none."""
        return next(self._remaining(), None)

    def fetchmany(self, size: int | None = None) -> list[Values]:
        """Returns the next `size` rows, by default `arraysize`; fewer if fewer are left.

        Raises:
            InterfaceError: the size is no number of rows, or there is nothing to fetch.
        """
        wanted = _rows_wanted(self.arraysize if size is None else size)
        return list(islice(self._remaining(), wanted))

    def fetchall(self) -> list[Values]:
        """Returns all rows that are left."""
        return list(self._remaining())

    def setinputsizes(self, sizes: object) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Forgets the result; the cursor is of no use afterwards. Closing twice is allowed."""
        self._closed = True
        self._result = None

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Values:
        return next(self._remaining())

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _remaining(self) -> Iterator[Values]:
        self._require_open()
        if self._result is None:
            raise InterfaceError(
                "there is nothing to fetch: the last execute gave no result, or there was none"
            )
        return self._result.rows

    def _require_open(self) -> None:
        if self.closed:
            raise InterfaceError("the cursor or its connection is closed")


def _rows_wanted(size: object) -> int:
    # More rows than this no answer has, and islice cannot count.
    if isinstance(size, bool) or not isinstance(size, Integral) or not 0 <= int(size) <= sys.maxsize:
        raise InterfaceError("size: expected how many rows, an integer of at least 0")
    return int(size)
