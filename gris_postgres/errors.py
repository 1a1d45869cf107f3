"""Errors by their SQLSTATE, and as the messages that clients show."""

from __future__ import annotations

import re
from http import HTTPStatus

from pygwire.messages import ErrorResponse, NoticeResponse

from gris_serving.refusals import HttpRefusalError
from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    BudgetHeld,
    GrisError,
    InvalidQuestion,
    OutcomeUnknown,
    RefusedByPolicy,
    ServiceRefused,
)

SYNTAX, VALUE, NO_TABLE, NO_COLUMN, NOT_ALLOWED = "42601", "22023", "42P01", "42703", "42501"
BUDGET, BUSY, LOGIN, PASSWORD, UNKNOWN_OUTCOME = "53400", "53000", "28000", "28P01", "08007"
PROTOCOL, TOO_MUCH, NOT_SUPPORTED, READ_ONLY, CANCELLED = "08P01", "54000", "0A000", "25006", "57014"
NO_STATEMENT, NO_PORTAL, NO_DATABASE, NO_SETTING = "26000", "34000", "3D000", "42704"
ABORTED, TOO_MANY_CONNECTIONS, STOPPING, SYSTEM, INTERNAL = "25P02", "53300", "57P01", "58000", "XX000"

_OF_RULES = {"table": NO_TABLE, "column": NO_COLUMN}
_OF_ERRORS: tuple[tuple[type[GrisError], str], ...] = (
    (BudgetExhausted, BUDGET),
    (BudgetHeld, BUDGET),
    (AccountUnknown, LOGIN),
    (OutcomeUnknown, UNKNOWN_OUTCOME),
    (ServiceRefused, LOGIN),
)
_OF_STATUSES = {
    HTTPStatus.UNAUTHORIZED: PASSWORD,
    HTTPStatus.FORBIDDEN: LOGIN,
    HTTPStatus.TOO_MANY_REQUESTS: BUSY,
}
_PLACE = re.compile(r"\bline (\d{1,6}), column (\d{1,6}):")


class PostgresError(Exception):
    """What a client gets instead of an answer.

    Args:
        sqlstate: PostgreSQL's code of it.
        message: What it says.
        position: The character of the statement that it is about, from 1; 0: none.
    """

    def __init__(self, sqlstate: str, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.position = position

    def response(self, severity: str = "ERROR") -> ErrorResponse:
        """Return it as a message."""
        fields = _fields(severity, self.sqlstate, self.message)
        return ErrorResponse(fields | {"P": str(self.position)} if self.position else fields)


def error_of(error: GrisError | HttpRefusalError, sql: str = "", begin: int = 0) -> PostgresError:
    """Return what a client gets for an error.

    Args:
        error: The error.
        sql: The statement that it is of, as its client has written it; empty: it is of none, or of another.
        begin: Where that begins in what the client has sent.
    """
    if isinstance(error, HttpRefusalError):
        return PostgresError(_OF_STATUSES.get(error.status, SYSTEM), error.message)
    message = str(error)
    if position := _position(message, sql):
        # Clients show the place themselves.
        return PostgresError(_sqlstate(error), message.partition("\n")[0], begin + position)
    return PostgresError(_sqlstate(error), message)


def notice(message: str) -> NoticeResponse:
    """Return what a client may show beside an answer."""
    return NoticeResponse(_fields("NOTICE", "00000", message))


def _sqlstate(error: GrisError) -> str:
    if isinstance(error, InvalidQuestion):
        return SYNTAX if error.field in ("", "sql") else VALUE
    if isinstance(error, RefusedByPolicy):
        return _OF_RULES.get(error.rule, NOT_ALLOWED)
    return next((code for kind, code in _OF_ERRORS if isinstance(error, kind)), SYSTEM)


def _position(message: str, sql: str) -> int:
    """Return the character of a statement that a message names by line and column."""
    if not sql or (place := _PLACE.search(message)) is None:
        return 0
    line, column = int(place[1]), int(place[2])
    before = sql.split("\n")[: line - 1]
    return sum(len(each) + 1 for each in before) + column if len(before) == line - 1 else 0


def _fields(severity: str, sqlstate: str, message: str) -> dict[str, str]:
    # A text ends at its first NUL.
    return {"S": severity, "V": severity, "C": sqlstate, "M": message.replace("\0", "")}
