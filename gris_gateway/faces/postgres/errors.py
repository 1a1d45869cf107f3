"""Errors by their SQLSTATE, and as the messages that clients show."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from pygwire.messages import ErrorResponse, NoticeResponse

from gris_serving.refusals import HttpRefusalError
from pinot_connector.errors import GrisError
from pinot_connector.failure_kinds import FailureKind, kind_of

if TYPE_CHECKING:
    from gris_gateway.faces.postgres.texts import Text

SYNTAX, VALUE, BUSY, LOGIN, SYSTEM, INTERNAL = "42601", "22023", "53000", "28000", "58000", "XX000"
PROTOCOL, TOO_MUCH, NOT_SUPPORTED, READ_ONLY, CANCELLED = "08P01", "54000", "0A000", "25006", "57014"
NO_STATEMENT, TWO_STATEMENTS, NO_PORTAL, NO_DATABASE, NO_SETTING = "26000", "42P05", "34000", "3D000", "42704"
TOO_MANY_CONNECTIONS, STOPPING, NOT_YET = "53300", "57P01", "57P03"

_OF_KINDS = {
    FailureKind.SQL: SYNTAX,
    FailureKind.VALUE: VALUE,
    FailureKind.TABLE: "42P01",
    FailureKind.COLUMN: "42703",
    FailureKind.POLICY: "42501",
    FailureKind.BUDGET: "53400",
    FailureKind.BUSY: BUSY,
    FailureKind.CALLER: LOGIN,
    FailureKind.UNKNOWN_OUTCOME: "08007",
    FailureKind.SYSTEM: SYSTEM,
}
_OF_STATUSES = {
    HTTPStatus.UNAUTHORIZED: "28P01",
    HTTPStatus.FORBIDDEN: LOGIN,
    HTTPStatus.TOO_MANY_REQUESTS: BUSY,
}
_PLACE = re.compile(r"\bline (\d{1,6}), column (\d{1,6}): ?")


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


def error_of(error: GrisError | HttpRefusalError, text: Text | None = None, above: int = 0) -> PostgresError:
    """Return what a client gets for an error.

    Args:
        error: The error.
        text: The statement that it is of, as it was sent; None: it is of none, or of another.
        above: How many lines stood above it where it was asked.
    """
    if isinstance(error, HttpRefusalError):
        return PostgresError(_OF_STATUSES.get(error.status, SYSTEM), error.message)
    sqlstate, message = _OF_KINDS[kind_of(error)], str(error)
    if (found := _PLACE.search(message)) is None:
        return PostgresError(sqlstate, message)
    # Below the first line stands the SQL, whose place clients show themselves.
    message = message.partition("\n")[0]
    if text is None:
        return PostgresError(sqlstate, _PLACE.sub("", message, count=1))
    line, column = int(found[1]) - above, int(found[2])
    place = sum(len(each) + 1 for each in text.sql.split("\n")[: line - 1]) + column
    said = _PLACE.sub(f"line {line}, column {column}: ", message, count=1)
    return PostgresError(sqlstate, said, text.begin + place)


def notice(message: str) -> NoticeResponse:
    """Return what a client may show beside an answer."""
    return NoticeResponse(_fields("NOTICE", "00000", message))


def _fields(severity: str, sqlstate: str, message: str) -> dict[str, str]:
    # A text ends at its first NUL.
    return {"S": severity, "V": severity, "C": sqlstate, "M": message.replace("\0", "")}
