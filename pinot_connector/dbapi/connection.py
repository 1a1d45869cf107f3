"""Connections: a client that asks for one account, and whatever was opened for it."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import NoReturn

from pinot_connector.client_base import ClientBase
from pinot_connector.dbapi import errors
from pinot_connector.dbapi.cursor import Cursor
from pinot_connector.dbapi.parameters import Parameters
from pinot_connector.results import PrivateResult


class Connection:
    """Gives cursors that ask for one account. Threads may share it.

    `with connection as cursor` gives a cursor, as it does with pinotdb, and closes the connection at its end. PEP
    249's errors are attributes too.

    Args:
        client: asks the questions.
        opened: the client and whatever else ends with the connection.
        intervals: whether rows have the ends of each count's interval.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, client: ClientBase[PrivateResult], opened: ExitStack, *, intervals: bool) -> None:
        self._client = client
        self._opened = opened
        self._intervals = intervals
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return self._closed

    def cursor(self) -> Cursor:
        """Returns a new cursor."""
        self._require_open()
        return Cursor(self, intervals=self._intervals)

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Asks a question by a new cursor and returns it; see `Cursor.execute`."""
        return self.cursor().execute(operation, parameters)

    def ask(self, sql: str) -> PrivateResult:
        """Returns the paid release of a question without parameters; cursors ask by it.

        Raises:
            GrisError: there is no result; cursors translate it.
            InterfaceError: the connection was closed before there was an answer.
        """
        try:
            return self._client.sql(sql)
        except RuntimeError as error:
            if not self._closed:
                raise
            raise errors.InterfaceError("the connection was closed before there was an answer") from error

    def commit(self) -> None:
        """Does nothing: what is executed is paid for at once."""
        self._require_open()

    def rollback(self) -> NoReturn:
        """Refuses: what has been shown cannot be taken back, nor what was paid for it."""
        raise errors.NotSupportedError("rollback is not supported: what has been shown cannot be taken back")

    def close(self) -> None:
        """Cancels what is still being asked and gives everything back. Closing twice is allowed."""
        self._closed = True
        self._opened.close()

    def __enter__(self) -> Cursor:
        return self.cursor()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise errors.InterfaceError("the connection is closed")
