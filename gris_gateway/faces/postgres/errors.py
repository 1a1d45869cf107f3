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
    from gris_gateway.faces.postgres.texts import Asked

SYNTAX, VALUE, BUSY, LOGIN, SYSTEM, INTERNAL = "42601", "22023", "53000", "28000", "58000", "XX000"
PROTOCOL, TOO_MUCH, NOT_SUPPORTED, READ_ONLY, CANCELLED = "08P01", "54000", "0A000", "25006", "57014"
NO_STATEMENT, TWO_STATEMENTS, NO_PORTAL, NO_DATABASE, NO_SETTING = "26000", "42P05", "34000", "3D000", "42704"
ABORTED, TOO_MANY_CONNECTIONS, STOPPING, NOT_YET = "25P02", "53300", "57P01", "57P03"

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


def error_of(error: GrisError | HttpRefusalError, asked: Asked | None = None) -> PostgresError:
    """Return what a client gets for an error.

    Args:
        error: The error.
        asked: The question that it is of; None: it is of none, or of another.
    """
    if isinstance(error, HttpRefusalError):
        return PostgresError(_OF_STATUSES.get(error.status, SYSTEM), error.message)
    message = str(error)
    found = _PLACE.search(message)
    place = None if asked is None or found is None else asked.place(int(found[1]), int(found[2]))
    if asked is not None and place is not None:
        # Clients show the place themselves.
        said = _PLACE.sub(_place_in(asked.sent, place), message.partition("\n")[0], count=1)
        return PostgresError(_OF_KINDS[kind_of(error)], said, asked.begin + place + 1)
    return PostgresError(_OF_KINDS[kind_of(error)], message)


def notice(message: str) -> NoticeResponse:
    """Return what a client may show beside an answer."""
    return NoticeResponse(_fields("NOTICE", "00000", message))


def _place_in(sql: str, place: int) -> str:
    """Return how messages name a character of a statement."""
    before = sql[:place].split("\n")
    return f"line {len(before)}, column {len(before[-1]) + 1}:"


def _fields(severity: str, sqlstate: str, message: str) -> dict[str, str]:
    # A text ends at its first NUL.
    return {"S": severity, "V": severity, "C": sqlstate, "M": message.replace("\0", "")}
