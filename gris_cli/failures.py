"""Errors as messages and exit codes of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gris_cli.connection_options import address_of
from pinot_connector.errors import (
    BudgetExhausted,
    ErrorCode,
    GrisError,
    InvalidQuestion,
    ServiceError,
    Shortfall,
)
from pinot_connector.json_values import to_json

EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
NO_ANSWER = "no answer"

_EXIT_CODES = {
    ErrorCode.UNEXPECTED: EXIT_UNEXPECTED,
    ErrorCode.INVALID_QUESTION: EXIT_USAGE,
    ErrorCode.ACCOUNT_UNKNOWN: EXIT_USAGE,
    ErrorCode.REFUSED_BY_POLICY: 3,
    ErrorCode.BUDGET_EXHAUSTED: 4,
    ErrorCode.UNAVAILABLE: 5,
}


@dataclass(frozen=True)
class Failure:
    """What is reported of an error: if it has them, also the field of the question, shortfalls, and the largest k."""

    exit_code: int
    code: str
    message: str
    field: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    largest_k: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the failure in terms of JSON."""
        return {"error": to_json(self)}


def failure_of(error: Exception) -> Failure:
    """Return what is reported of an error: of an internal error only its type, because its text can hold anything."""
    if not isinstance(error, GrisError):
        return Failure(EXIT_UNEXPECTED, ErrorCode.UNEXPECTED.value, f"unexpected {type(error).__name__}")
    return Failure(
        exit_code=_EXIT_CODES[error.code],
        code=error.code.value,
        message=_message(error),
        field=error.field if isinstance(error, InvalidQuestion) else "",
        shortfalls=error.shortfalls if isinstance(error, BudgetExhausted) else (),
        largest_k=error.largest_k if isinstance(error, BudgetExhausted) else None,
    )


def _message(error: GrisError) -> str:
    """Return the text of an error; of a service that does not answer also where it was expected."""
    is_silent = isinstance(error, ServiceError) and NO_ANSWER in str(error)
    where = address_of(error.service) if isinstance(error, ServiceError) and is_silent else ""
    return f"{error} {where}" if where else str(error)


def usage_failure(error: Exception) -> Failure:
    """Return what is reported of wrong flags, in the message of typer or click."""
    format_message = getattr(error, "format_message", error.__str__)
    return Failure(EXIT_USAGE, "usage", str(format_message()))
