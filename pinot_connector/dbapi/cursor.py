"""Cursors of PEP 249: they ask one question after the other, and fetch the rows of each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from pinot_connector.dbapi.errors import (
    InterfaceError,
    NotSupportedError,
    Warning,  # noqa: A004 - PEP 249's name
    dbapi_error,
)
from pinot_connector.dbapi.parameters import Parameters, bound
from pinot_connector.dbapi.tables import (
    EXPLANATION_DESCRIBED,
    Column,
    Values,
    described,
    one_described,
    tabulated,
)
from pinot_connector.explanation_rows import explanation_rows
from pinot_connector.liveness import liveness_column
from pinot_connector.results import PrivateResult

if TYPE_CHECKING:
    from pinot_connector.dbapi.connection import Connection


@dataclass(frozen=True)
class _Result:
    """What an `execute` answered; `rows` are those that have not been fetched, `release` None: no data were asked."""

    release: PrivateResult | None
    description: tuple[Column, ...]
    rows: Iterator[Values]
    row_count: int


class Cursor:
    """Asks questions and fetches their rows. It belongs to one thread at a time.

    `arraysize` is how many rows `fetchmany` returns by default. `messages` has what there is to know about the result,
    as PEP 249's extension does: pairs of `Warning` and the warning, for each statement that says what the numbers mean.
    After an `execute` that failed there is nothing to fetch: neither its own rows nor
    those of the question before.
    """

    def __init__(self, connection: Connection, *, intervals: bool) -> None:
        self.arraysize = 1
        self.messages: list[tuple[type[Exception], Exception]] = []
        self._connection = connection
        self._intervals = intervals
        self._closed = False
        self._result: _Result | None = None

    @property
    def connection(self) -> Connection:
        """The connection that the cursor belongs to."""
        return self._connection

    @property
    def closed(self) -> bool:
        """Whether the cursor or its connection is closed."""
        return self._closed or self._connection.closed

    @property
    def description(self) -> tuple[Column, ...] | None:
        """Name, type, four times None, and whether it can be NULL, for each column; None before a result."""
        return None if self._result is None else self._result.description

    @property
    def rowcount(self) -> int:
        """How many rows the result has; -1 before a result."""
        return -1 if self._result is None else self._result.row_count

    @property
    def release(self) -> PrivateResult | None:
        """The release that the rows come from: mechanism, cost, remaining budget, whether it ended in bottom.

        None before a result, and after `SELECT 1` and `EXPLAIN`.
        """
        return None if self._result is None else self._result.release

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Asks a question and pays for it.

        `SELECT 1`, by which programs test a connection, is answered here: it asks no service, reads no data and costs
        nothing. `EXPLAIN` before a question gives what it would cost at most; that reads no data and costs nothing.

        Args:
            operation: SQL of the accepted subset, with `%(name)s` for values and `%%` for a per cent sign.
            parameters: the values by name; see `parameters.bound`.

        Returns:
            This cursor, with rows to fetch.

        Raises:
            ProgrammingError: the question or a parameter is wrong.
            NotSupportedError: the policy forbids the question.
            BudgetExhaustedError: the budget does not hold its worst case.
            OperationalError, InternalError: there is no result for another reason.
            InterfaceError: the cursor or its connection is closed.
        """
        self._require_open()
        self._result = None
        self.messages = []
        if (one := liveness_column(operation)) is not None:
            self._result = _Result(None, one_described(one), iter([(1,)]), row_count=1)
            return self
        with dbapi_error():
            release = self._connection.ask(bound(operation, parameters))
        self._result = self._shown(release)
        return self

    def _shown(self, release: PrivateResult) -> _Result:
        if release.explanation is not None:
            rows = list(explanation_rows(release.explanation))
            return _Result(None, EXPLANATION_DESCRIBED, iter(rows), len(rows))
        said = (each.text for each in release.statements if not each.is_method)
        self.messages.extend((Warning, Warning(text)) for text in said)
        return _Result(
            release,
            description=described(release, intervals=self._intervals),
            rows=tabulated(release, intervals=self._intervals),
            row_count=len(release.rows),
        )

    def executemany(self, operation: str, seq_of_parameters: object) -> NoReturn:
        """Always refuses: each question is paid for, so each needs its own `execute`.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError("executemany is not supported: each question is paid for, ask it by execute")

    def fetchone(self) -> Values | None:
        """Returns the next row, or None if there is none.

        Raises:
            InterfaceError: there is nothing to fetch, or the cursor is closed.
        """
        return next(self._remaining(), None)

    def fetchmany(self, size: int | None = None) -> list[Values]:
        """Returns the next `size` rows, by default `arraysize`; fewer if fewer are left.

        Raises:
            InterfaceError: the size is no number of rows, there is nothing to fetch, or the cursor is closed.
        """
        wanted = _rows_wanted(self.arraysize if size is None else size)
        return list(islice(self._remaining(), wanted))

    def fetchall(self) -> list[Values]:
        """Returns all rows that are left.

        Raises:
            InterfaceError: there is nothing to fetch, or the cursor is closed.
        """
        return list(self._remaining())

    def setinputsizes(self, sizes: object) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Drops the result; afterwards the cursor cannot be used. Closing twice is allowed."""
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
    # No answer has more rows than this, and islice cannot count further.
    if isinstance(size, bool) or not isinstance(size, Integral) or not 0 <= int(size) <= sys.maxsize:
        raise InterfaceError("size: expected how many rows, an integer of at least 0")
    return int(size)
