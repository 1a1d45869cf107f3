"""Errors by the codes that a broker has for them."""

from __future__ import annotations

from http import HTTPStatus

from gris_serving.refusals import HttpRefusalError
from pinot_connector.errors import GrisError
from pinot_connector.failure_kinds import FailureKind, kind_of

SQL, ACCESS, TIME_OUT, BUDGET, INTERNAL = 150, 180, 250, 429, 450
_OF_KINDS = {
    FailureKind.SQL: SQL,
    FailureKind.VALUE: 700,
    FailureKind.TABLE: 190,
    FailureKind.COLUMN: 710,
    FailureKind.POLICY: 700,
    FailureKind.BUDGET: BUDGET,
    FailureKind.BUSY: BUDGET,
    FailureKind.CALLER: ACCESS,
    FailureKind.UNKNOWN_OUTCOME: TIME_OUT,
    FailureKind.SYSTEM: INTERNAL,
}
_OF_STATUSES = {
    HTTPStatus.UNAUTHORIZED: ACCESS,
    HTTPStatus.FORBIDDEN: ACCESS,
    HTTPStatus.TOO_MANY_REQUESTS: BUDGET,
    HTTPStatus.REQUEST_TIMEOUT: TIME_OUT,
}


def code_of(error: GrisError | HttpRefusalError) -> int:
    """Return the code of an error."""
    return (
        _OF_STATUSES.get(error.status, SQL)
        if isinstance(error, HttpRefusalError)
        else _OF_KINDS[kind_of(error)]
    )
