"""Errors as a model reads them: what happened, where, and what to do, in constant texts.

Of what a caller sent, no value is repeated; names of fields, tables and columns are if they are plain words. Numbers,
times and levels of budgets are fields of their own. `refusals` adds what only the catalogue says.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field, ValidationError

from gris_gateway.faces.mcp.arguments import Arguments
from gris_gateway.faces.mcp.naming import no_such
from gris_gateway.faces.mcp.results import Instant, Whole, only_seen, view_of
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
)

log = logging.getLogger(__name__)


class Missing(BaseModel):
    """What one level of the budget lacks."""

    account: list[str] = Field(validation_alias="level")
    unit: str
    asked_for: Whole = Field(validation_alias="requested")
    left: Whole = Field(validation_alias="remaining")
    refreshes_at: Instant | None = Field(description="None: never.")


class Failure(BaseModel):
    """Why there is no answer."""

    error: str
    message: str
    field: str | None = None
    example: str | None = None
    what_to_do: str
    missing: list[Missing] = Field(default_factory=list)
    refreshes_at: str | None = None
    largest_k: int | None = None
    request_id: str = ""

    def result(self) -> CallToolResult:
        """Return the result of the tool."""
        content = only_seen(self.model_dump(exclude_none=True, exclude_defaults=True))
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(content=[TextContent(text=text)], is_error=True)


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
_MAX_COST = "max_cost"
_CHEAPER = (
    "Ask for something cheaper, or find out whether the question may cost that much; nothing was charged."
)
_HELD = (
    "Other questions of this account hold the budget now. Try again in a few seconds; nothing was charged."
)
_UNKNOWN = (
    "It is not known whether the question was charged. Where the catalogue says repeats_are_free, asking exactly the "
    "same again costs nothing if it was."
)
_UNREAD = (
    "Nothing of the answer is shown. A question may have been charged: read the budget, and tell the operator. Do not "
    "retry."
)
_UNTRUSTED = (
    "Tell who started gris mcp: --ca-file or GRIS_CA_FILE names the authority that signs the gateway's "
    "certificate. Do not retry; nothing was charged."
)
_UNANSWERED = "The question was charged. Read the budget before you ask again: that is charged too."
# Of the kinds that an error is of, the first counts; others say what their code does.
_OF_KINDS: tuple[tuple[type[GrisError], str], ...] = (
    (BudgetHeld, _HELD),
    (OutcomeUnknown, _UNKNOWN),
    (ReleaseNotRecorded, _WHAT_TO_DO[ErrorCode.UNEXPECTED]),
    (IntegrityError, _UNREAD),
    (ChargedUnanswered, _UNANSWERED),
    (ServiceUntrusted, _UNTRUSTED),
)

# Arguments beside the SQL.
_BESIDES = ("table", "most", "confidence", _MAX_COST)


def failure_of(error: Exception, takes: type[Arguments] = Arguments) -> Failure:
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
        return Failure(
            error=ErrorCode.UNEXPECTED.value,
            message="the server failed",
            what_to_do=_WHAT_TO_DO[ErrorCode.UNEXPECTED],
        )
    shortfalls = error.shortfalls if isinstance(error, BudgetExhausted | BudgetHeld) else ()
    times = [each.refreshes_at for each in shortfalls]
    known = [each for each in times if each is not None]
    return Failure(
        error="budget_held" if isinstance(error, BudgetHeld) else error.code.value,
        message=_message(error),
        field=_field(error, takes),
        what_to_do=_what_to_do(error),
        missing=[view_of(Missing, each) for each in shortfalls],
        # The last of them decides; a level that is never refreshed has none.
        refreshes_at=max(known).isoformat() if known and len(known) == len(times) else None,
        largest_k=error.largest_k if isinstance(error, BudgetExhausted) else None,
        request_id=error.request_id,
    )


def _message(error: GrisError) -> str:
    if isinstance(error, BudgetExhausted):
        return "the budget of this account does not hold the question"
    if isinstance(error, BudgetHeld):
        return "questions that run now hold the budget, which is not exhausted"
    # Below the first line stands the SQL.
    return (error.problem if isinstance(error, InvalidQuestion) else str(error)).split("\n")[0]


def _field(error: GrisError, takes: type[Arguments]) -> str | None:
    """Return the argument that is wrong: of a question its SQL, whose place the message says."""
    if isinstance(error, InvalidQuestion) and error.field in _BESIDES:
        return error.field
    is_of_question = isinstance(error, InvalidQuestion | RefusedByPolicy)
    return (
        next((each for each in ("sql", "table") if each in takes.model_fields), None)
        if is_of_question
        else None
    )


def _what_to_do(error: GrisError) -> str:
    if isinstance(error, InvalidQuestion) and error.field == _MAX_COST:
        return _CHEAPER
    return next((text for kind, text in _OF_KINDS if isinstance(error, kind)), _WHAT_TO_DO[error.code])


def _of_arguments(error: ValidationError, takes: type[Arguments]) -> Failure:
    """Return what is wrong with arguments: the field, what was expected there and the kind of what was got.

    Of what was sent, only names of fields that are none are repeated, and of these only plain words.
    """
    first: dict[str, Any] = dict(error.errors(include_url=False)[0])
    field = str(first["loc"][0]) if first["loc"] else None
    if first["type"] == "extra_forbidden":
        problem, field = no_such("field", field or "", list(takes.model_fields)), None
    else:
        problem = _problem(first)
    return Failure(
        error=ErrorCode.INVALID_QUESTION.value,
        message=problem,
        field=field,
        what_to_do=_WHAT_TO_DO[ErrorCode.INVALID_QUESTION],
    )


def _problem(first: dict[str, Any]) -> str:
    """Return what was expected, and the type of what was got; never the value."""
    if first["type"] == "missing":
        return "expected this field"
    return f"{expected(first['type'], first['msg'])}, got {type(first['input']).__name__}"
