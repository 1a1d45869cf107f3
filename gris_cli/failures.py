"""Errors as messages and exit codes of the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gris_cli.connection_options import named_account, setting_of
from gris_cli.data.errors import InputError
from gris_cli.inputs import shown
from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    BudgetHeld,
    DataUnreadable,
    ErrorCode,
    GrisError,
    InvalidQuestion,
    RefusedByPolicy,
    ServiceError,
    ServiceMisconfigured,
    ServiceRefused,
    Shortfall,
)
from pinot_connector.json_values import to_json

EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
# What budget_service says of a ledger that another process has: that one may end.
OWNED_LEDGER = "one process owns a ledger"
# Parts of errors of which the reason is often an address.
_OF_ADDRESSES = ("no answer", "another service answers")

_SEGMENT = re.compile(r"account\.path\[(\d+)\]")
_CURRENCIES = (
    "the account counts another currency than the price: the policy's epsilon_per, delta or count_noise are not those "
    "that it began with, or what is published has a currency of its own. Put the policy's earlier values back, or pay "
    "from another account or ledger, with --embedded another --directory; docs/budget.md says how an operator begins a "
    "new currency"
)
# What the library that reads the command line says of values, in our words.
_OF_VALUES = (
    (re.compile(r"Input should be a valid integer\b.*"), "expected a whole number"),
    (re.compile(r"Input should be a valid number\b.*"), "expected a number"),
    (re.compile(r"Input should be (?=less|greater)"), "expected a number "),
    (re.compile(r"Input should be "), "expected "),
    (
        re.compile(r"Value error, (.*) does not match the formats .*"),
        r"expected a day such as 2026-01-31, got \1",
    ),
)

# The option that a message is about: it begins with it.
_OPTION = re.compile(r"(?:Missing option |Invalid value(?: for |: ))?'?(--[a-z][a-z0-9-]*)")

_EXIT_CODES = {
    ErrorCode.UNEXPECTED: EXIT_UNEXPECTED,
    ErrorCode.INVALID_QUESTION: EXIT_USAGE,
    ErrorCode.ACCOUNT_UNKNOWN: EXIT_USAGE,
    ErrorCode.REFUSED_BY_POLICY: 3,
    ErrorCode.BUDGET_EXHAUSTED: 4,
    ErrorCode.UNAVAILABLE: 5,
}


# The extra of the distribution that brings each library; any other that is missing is a fault of ours.
_EXTRAS = {
    "cryptography": "store",
    "duckdb": "duckdb",
    "httpcore": "pinot",
    "httpx": "pinot",
    "jinja2": "page",
    "jwt": "serving",
    "matplotlib": "notebook",
    "mpmath": "dp",
    "msgspec": "budget",
    "numpy": "dp",
    "pinotdb": "pinot",
    "pydantic": "serving",
    "pyspark": "spark",
    "starlette": "page",
    "uvicorn": "page",
    "yaml": "serving",
}


@dataclass(frozen=True)
class Failure:
    """What is reported of an error: if it has them, also the field of the question, shortfalls, and the largest k.

    Of wrong usage, `field` is the option.
    """

    exit_code: int
    code: str
    message: str
    field: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    largest_k: int | None = None
    request_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the failure in terms of JSON."""
        return {"error": to_json(self)}


def failure_of(error: Exception) -> Failure:
    """Return what is reported of an error: of an internal error only its type, because its text can hold anything.

    Of a file that cannot be used, its name and the reason.
    """
    if isinstance(error, OSError) and isinstance(error.filename, str) and error.strerror:
        return Failure(EXIT_UNEXPECTED, ErrorCode.UNEXPECTED.value, f"{error.filename}: {error.strerror}")
    if isinstance(error, ModuleNotFoundError):
        library = (error.name or "").partition(".")[0]
        if extra := _EXTRAS.get(library):
            return Failure(EXIT_USAGE, "usage", f"this needs {library}: pip install 'gris-dp[{extra}]'")
    if not isinstance(error, GrisError):
        return Failure(EXIT_UNEXPECTED, ErrorCode.UNEXPECTED.value, f"unexpected {type(error).__name__}")
    if usage := _usage(error):
        return Failure(EXIT_USAGE, "usage", usage)
    return Failure(
        exit_code=_EXIT_CODES[error.code],
        code=error.code.value,
        message=_message(error),
        field=error.field if isinstance(error, InvalidQuestion) else "",
        shortfalls=error.shortfalls if isinstance(error, BudgetExhausted | BudgetHeld) else (),
        largest_k=error.largest_k if isinstance(error, BudgetExhausted) else None,
        request_id=error.request_id,
    )


def _usage(error: GrisError) -> str:
    """Return what is reported of an error of which a flag or a file is the reason; empty: it is another one."""
    match error:
        case ServiceRefused(reason="UNIT_MISMATCH"):
            return _CURRENCIES
        case ServiceMisconfigured() if OWNED_LEDGER not in str(error):
            return str(error)
        case DataUnreadable():
            return f"--data: {error}"
    return ""


def _message(error: GrisError) -> str:
    """Return the text of an error, with what sets the address, the account or the audience that it is about."""
    if isinstance(error, RefusedByPolicy) and error.rule == "audience":
        return f"{error}; --audience or GRIS_AUDIENCE names it, and of a gateway its configuration"
    if account := named_account():
        if isinstance(error, AccountUnknown):
            return f"{account} has no budget; --account or GRIS_ACCOUNT says whose pays"
        if isinstance(error, InvalidQuestion) and (part := _SEGMENT.fullmatch(error.field)):
            number = int(part[1]) + 1
            return f"--account or GRIS_ACCOUNT, part {number} of {account}: {error.problem}"
    is_elsewhere = any(part in str(error) for part in _OF_ADDRESSES)
    where = setting_of(error.service) if isinstance(error, ServiceError) and is_elsewhere else ""
    return f"{error}{where}"


def usage_failure(error: Exception) -> Failure:
    """Return what is reported of wrong flags, in the message of typer or click."""
    format_message = getattr(error, "format_message", error.__str__)
    message = str(format_message())
    if isinstance(error, InputError):
        of = ", ".join(map(_flag, error.of))
        helps = f" ({_flag(error.remedy)})" if error.remedy else ""
        message = f"{of}{': ' if of else ''}{message}{helps}"
    for theirs, ours in _OF_VALUES:
        message = theirs.sub(ours, message)
    if (typed := _typed(error)) and "got " not in message:
        message = f"{message}, got {shown(typed)}"
    named = _OPTION.match(message)
    return Failure(EXIT_USAGE, "usage", message, named[1] if named else "")


def _typed(error: Exception) -> str:
    """Return what was typed for an option that the command line's library could not read."""
    found: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    typed = found[0].get("input") if found else None
    return typed if isinstance(typed, str) else ""


def _flag(given: str) -> str:
    """Return the flag of an argument: that of its name, unless the command has said another one or has none."""
    return given if given.startswith("--") or given.isupper() else f"--{given.replace('_', '-')}"
