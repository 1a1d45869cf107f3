"""Errors by the codes that a broker has for them."""

from __future__ import annotations

from http import HTTPStatus

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

SQL, ACCESS, TABLE, TIME_OUT, BUDGET, INTERNAL = 150, 180, 190, 250, 429, 450
VALIDATION, COLUMN = 700, 710
_OF_RULES = {"table": TABLE, "column": COLUMN}

_OF_ERRORS: tuple[tuple[type[GrisError], int], ...] = (
    (BudgetExhausted, BUDGET),
    (BudgetHeld, BUDGET),
    (AccountUnknown, ACCESS),
    (OutcomeUnknown, TIME_OUT),
)
# Of a caller who is refused; whatever else a gateway refuses, its operator has to mend.
_OF_CALLERS = ("TOKEN_REFUSED", "CALLER_UNKNOWN", "CALLER_WITHOUT_ACCOUNT", "ACCOUNT_OUT_OF_REACH")
_OF_STATUSES = {
    HTTPStatus.UNAUTHORIZED: ACCESS,
    HTTPStatus.FORBIDDEN: ACCESS,
    HTTPStatus.TOO_MANY_REQUESTS: BUDGET,
    HTTPStatus.REQUEST_TIMEOUT: TIME_OUT,
}


def code_of(error: GrisError | HttpRefusalError) -> int:
    """Return the code of an error; of a question that is not readable as SQL that of SQL."""
    if isinstance(error, HttpRefusalError):
        return _OF_STATUSES.get(error.status, SQL)
    if isinstance(error, InvalidQuestion):
        return SQL if error.field in ("", "sql") else VALIDATION
    if isinstance(error, RefusedByPolicy):
        return _OF_RULES.get(error.rule, VALIDATION)
    if isinstance(error, ServiceRefused):
        return ACCESS if error.reason in _OF_CALLERS else INTERNAL
    return next((code for kind, code in _OF_ERRORS if isinstance(error, kind)), INTERNAL)
