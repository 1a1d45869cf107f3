"""Errors as a model reads them: what happened, where, and what to do, in constant texts.

Of what a caller sent, no value is repeated; names of fields, tables and columns are if they are plain words. Numbers,
times and levels of budgets are fields of their own. `refusals` adds what only the catalogue says.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from pydantic import ValidationError

from gris_gateway.faces.mcp.arguments import Arguments
from gris_serving.schema_words import expected
from pinot_connector.errors import (
    BudgetExhausted,
    BudgetHeld,
    ChargedUnanswered,
    ErrorCode,
    GrisError,
    IntegrityError,
    InvalidQuestion,
    OutcomeUnknown,
    RefusedByPolicy,
    ReleaseNotRecorded,
    ServiceUntrusted,
    Shortfall,
)
from pinot_connector.json_values import to_json

log = logging.getLogger(__name__)

_WHAT_TO_DO = {
    ErrorCode.INVALID_QUESTION: "Correct the field and ask again; nothing was charged.",
    ErrorCode.REFUSED_BY_POLICY: (
        "Read the catalogue and ask something that it allows; nothing was charged. The same question is refused again."
    ),
    ErrorCode.BUDGET_EXHAUSTED: (
        "Stop asking until the budget is refreshed, or ask for something cheaper; nothing was charged. Repeats of paid "
        "questions stay free."
    ),
    ErrorCode.ACCOUNT_UNKNOWN: "The operator has to give this account a budget; until then every question is refused.",
    ErrorCode.UNAVAILABLE: "Try again later; nothing was charged.",
    ErrorCode.UNEXPECTED: "Tell the operator. Do not retry.",
}
# Of the kinds that an error is of, the first counts; others say what their code does.
_OF_KINDS: tuple[tuple[type[GrisError], str], ...] = (
    (
        BudgetHeld,
        "Other questions of this account hold the budget now. Try again in a few seconds; nothing was charged.",
    ),
    (
        OutcomeUnknown,
        "It is not known whether the question was charged. Of a table whose consistency is keyed, asking exactly the "
        "same again costs nothing if it was.",
    ),
    (ReleaseNotRecorded, _WHAT_TO_DO[ErrorCode.UNEXPECTED]),
    (
        IntegrityError,
        "Nothing of the answer is shown. A question may have been charged: read the budget, and tell the operator. Do "
        "not retry.",
    ),
    (
        ChargedUnanswered,
        "The question was charged. Read the budget before you ask again: that is charged too.",
    ),
    (
        ServiceUntrusted,
        "Tell who started gris mcp: --ca-file or GRIS_CA_FILE names the authority that signs the gateway's "
        "certificate. Do not retry; nothing was charged.",
    ),
)
_MAX_COST = "max_cost"
_CHEAPER = (
    "Ask for something cheaper, or find out whether the question may cost that much; nothing was charged."
)
# Arguments beside the SQL.
_BESIDES = ("table", "most", "confidence", _MAX_COST)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


def failure_of(error: Exception, takes: type[Arguments] = Arguments) -> dict[str, Any]:
    """Return what is reported of an error of a tool; of one that nobody expected only that it happened.

    Args:
        error: What the tool raised.
        takes: Its arguments.
    """
    if isinstance(error, ValidationError):
        return _of_arguments(error, takes)
    if not isinstance(error, GrisError):
        fields = {"error": type(error).__name__}
        log.error("A tool failed.", extra={"event": "mcp.failed", "fields": fields})
        return _failure(ErrorCode.UNEXPECTED.value, "the server failed", _WHAT_TO_DO[ErrorCode.UNEXPECTED])
    shortfalls = error.shortfalls if isinstance(error, BudgetExhausted | BudgetHeld) else ()
    times = [each.refreshes_at for each in shortfalls]
    known = [each for each in times if each is not None]
    return _failure(
        "budget_held" if isinstance(error, BudgetHeld) else error.code.value,
        # Below the first line stands the SQL.
        (error.problem if isinstance(error, InvalidQuestion) else str(error)).split("\n")[0],
        _what_to_do(error),
        field=_field(error, takes),
        missing=[_missing(each) for each in shortfalls] or None,
        # The last of them decides; a level that is never refreshed has none.
        refreshes_at=to_json(max(known)) if known and len(known) == len(times) else None,
        largest_k=error.largest_k if isinstance(error, BudgetExhausted) else None,
        request_id=error.request_id or None,
    )


def _failure(error: str, message: str, what_to_do: str, **more: Any) -> dict[str, Any]:
    known = {name: each for name, each in more.items() if each is not None}
    return {"error": error, "message": message, "what_to_do": what_to_do, **known}


def _missing(lacking: Shortfall) -> dict[str, Any]:
    return {
        "account": list(lacking.level),
        "unit": lacking.unit,
        "asked_for": to_json(lacking.requested),
        "left": to_json(lacking.remaining),
        "refreshes_at": to_json(lacking.refreshes_at),
    }


def _field(error: GrisError, takes: type[Arguments]) -> str | None:
    """Return the argument that is wrong: of a question its SQL, whose place the message says."""
    if not isinstance(error, InvalidQuestion | RefusedByPolicy):
        return None
    if isinstance(error, InvalidQuestion) and error.field in _BESIDES:
        return error.field
    return next((each for each in ("sql", "table") if each in takes.model_fields), None)


def _what_to_do(error: GrisError) -> str:
    if isinstance(error, InvalidQuestion) and error.field == _MAX_COST:
        return _CHEAPER
    return next((text for kind, text in _OF_KINDS if isinstance(error, kind)), _WHAT_TO_DO[error.code])


def _of_arguments(error: ValidationError, takes: type[Arguments]) -> dict[str, Any]:
    """Return what is wrong with arguments: the field, what was expected there and the kind of what was got.

    Of what was sent, only names of fields that are none are repeated, and of these only plain words.
    """
    first: dict[str, Any] = dict(error.errors(include_url=False)[0])
    field: str | None = str(first["loc"][0])
    match first["type"]:
        case "extra_forbidden":
            named = field if _PLAIN.fullmatch(field or "") else "of that name"
            problem = f"there is no field {named}; the fields are {', '.join(takes.model_fields) or 'none'}"
            field = None
        case "missing":
            problem = "expected this field"
        case kind:
            # Never the value.
            problem = f"{expected(kind, first['msg'])}, got {type(first['input']).__name__}"
    what_to_do = _WHAT_TO_DO[ErrorCode.INVALID_QUESTION]
    return _failure(ErrorCode.INVALID_QUESTION.value, problem, what_to_do, field=field)
