"""PEP 249's connections: they open cursors, and answer what needs none."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from pinot_connector.budgets import Level
from pinot_connector.catalog import Catalog
from pinot_connector.dbapi.cursor import Cursor
from pinot_connector.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - PEP 249's name
    dbapi_error,
)
from pinot_connector.dbapi.parameters import Parameters
from pinot_connector.forks import ForkedError
from pinot_connector.questions import sql_question
from pinot_connector.results import PrivateResult
from pinot_connector.sync_client import SyncClient

_Answer = TypeVar("_Answer")


class Connection:
    """Opens cursors that ask for one account. Threads may share it.

    `with connection as cursor` gives a cursor, as it does with pinotdb, and closes the connection at its end. PEP
    249's errors are attributes too.

    Args:
        client: answers the questions, and is closed with the connection.
        intervals: whether rows include both ends of each count's interval, in two more columns.
        max_cost: the most information units that one question may cost; None: whatever the budget holds.
    """

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(
        self, client: SyncClient[Any], *, intervals: bool = False, max_cost: int | None = None
    ) -> None:
        self._client = client
        self._intervals = intervals
        self._max_cost = max_cost
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return self._closed

    def cursor(self) -> Cursor:
        """Opens a cursor.

        Raises:
            InterfaceError: the connection is closed.
        """
        self._require_open()
        return Cursor(self, intervals=self._intervals)

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Asks a question with a new cursor, and returns the cursor; see `Cursor.execute`."""
        return self.cursor().execute(operation, parameters)

    def ask(self, sql: str) -> PrivateResult:
        """Answers a question without parameters; cursors call this.

        Args:
            sql: the question, in the accepted subset of SQL.

        Returns:
            The result, which has been paid for.

        Raises:
            GrisError: there is no result; cursors translate the error.
            InterfaceError: the connection was closed before there was an answer.
        """
        question = sql_question(sql)
        return self._answered(lambda: self._client.ask(question, max_cost=self._max_cost))

    def catalog(self, table: str = "") -> Catalog:
        """Returns what may be asked: tables, columns, measures. Nothing is charged, and no data are read.

        Args:
            table: the only table to describe; empty for all.

        Raises:
            NotSupportedError: the policy lists no such table.
            OperationalError: there is no answer.
            InterfaceError: the connection is closed.
        """
        with dbapi_error():
            return self._answered(lambda: self._client.catalog(table))

    def remaining(self) -> tuple[Level, ...]:
        """Returns the budget of the account. Nothing is charged, and no data are read.

        Raises:
            OperationalError: the account has no budget, the caller is refused, or there is no answer.
            InterfaceError: the connection is closed.
        """
        with dbapi_error():
            return self._answered(self._client.remaining)

    def commit(self) -> None:
        """Does nothing: every question is paid for when it is executed."""
        self._require_open()

    def rollback(self) -> NoReturn:
        """Always refuses: a result that was shown cannot be taken back, and neither can its charge.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError("rollback is not supported: what has been shown cannot be taken back")

    def close(self) -> None:
        """Cancels questions that are still running, and closes the client. Closing twice is allowed."""
        self._closed = True
        self._client.close()

    def __enter__(self) -> Cursor:
        return self.cursor()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")

    def _answered(self, call: Callable[[], _Answer]) -> _Answer:
        self._require_open()
        try:
            return call()
        except ForkedError as error:
            raise InterfaceError(str(error)) from error
        except RuntimeError as error:
            if not self._closed:
                raise
            raise InterfaceError("the connection was closed before there was an answer") from error
