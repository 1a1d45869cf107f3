"""Errors as a model reads them: what happened, where, and what to do, in constant texts.

Of what a caller sent, nothing is repeated. Numbers, times and levels of budgets are fields of their own.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field, ValidationError

from gris_mcp.arguments import Arguments
from gris_mcp.results import Instant, view_of
from pinot_connector.errors import (
    BudgetExhausted,
    BudgetHeld,
    EndedBetweenLooks,
    ErrorCode,
    GrisError,
    IntegrityError,
    InvalidQuestion,
    OutcomeUnknown,
    ReleaseNotRecorded,
    RequestInProgress,
)

log = logging.getLogger(__name__)


class Missing(BaseModel):
    """What one level of the budget lacks."""

    account: list[str] = Field(validation_alias="level")
    unit: str
    asked_for: int = Field(validation_alias="requested")
    left: int = Field(validation_alias="remaining")
    refreshes_at: Instant | None = Field(description="None: never.")


class Failure(BaseModel):
    """Why there is no answer."""

    error: str
    message: str
    field: str | None = None
    what_to_do: str
    missing: list[Missing] = Field(default_factory=list)
    refreshes_at: str | None = None
    largest_k: int | None = None

    def result(self) -> CallToolResult:
        """Return the result of the tool."""
        text = self.model_dump_json(exclude_none=True, exclude_defaults=True)
        return CallToolResult(content=[TextContent(text=text)], is_error=True)


_WHAT_TO_DO = {
    ErrorCode.INVALID_QUESTION: "Correct the field and ask again; nothing was charged.",
    ErrorCode.REFUSED_BY_POLICY: (
        "Read the catalogue and ask something that it allows; nothing was charged. Do not retry."
    ),
    ErrorCode.BUDGET_EXHAUSTED: (
        "Stop asking until the budget is refreshed, or ask for something cheaper; nothing was charged. Repeats of paid "
        "questions stay free."
    ),
    ErrorCode.ACCOUNT_UNKNOWN: "The operator has to give this account a budget. Do not retry.",
    ErrorCode.UNAVAILABLE: "Try again later; nothing was charged.",
    ErrorCode.UNEXPECTED: "Tell the operator. Do not retry.",
}
_HELD = (
    "Other questions of this account hold the budget now. Try again in a few seconds; nothing was charged."
)
_UNKNOWN = (
    "It is not known whether the question was charged. Where the catalogue says repeats_are_free, asking exactly the "
    "same again costs nothing if it was."
)
_IN_PROGRESS = (
    "A request of this id is still being answered, and may be charged. Send the same again in a few seconds."
)
_UNREAD = (
    "Nothing of the answer is shown. A question may have been charged: read the budget, and tell the operator. Do not "
    "retry."
)
_FIRST_LOOK = (
    "A part of the question was charged. Read the budget before you ask again: that may be charged too."
)
# Of the kinds that an error is of, the first counts; others say what their code does.
_OF_KINDS: tuple[tuple[type[GrisError], str], ...] = (
    (BudgetHeld, _HELD),
    (RequestInProgress, _IN_PROGRESS),
    (OutcomeUnknown, _UNKNOWN),
    (ReleaseNotRecorded, _WHAT_TO_DO[ErrorCode.UNEXPECTED]),
    (IntegrityError, _UNREAD),
    (EndedBetweenLooks, _FIRST_LOOK),
)

# Fields of a question as a message has them, and as the tools do.
_ARGUMENTS = {
    "dimensions": "by",
    "filters": "where",
    "omit_counts": "counts",
    "aggregates": "sums, averages",
    "ordered_by": "order_by",
    "time_range": "since, until",
}
_PROBLEMS = {
    "missing": "expected this field",
    "extra_forbidden": "expected no further fields",
    "greater_than_equal": "expected a larger number",
    "less_than_equal": "expected a smaller number",
    "less_than": "expected a smaller number",
    "too_long": "expected fewer entries",
    "too_short": "expected at least one entry",
    "string_too_long": "expected a shorter text",
    "literal_error": "expected one of the values in the schema",
}
_TYPES = {
    "string": "expected a text",
    "int": "expected a whole number",
    "bool": "expected true or false",
    "list": "expected a list",
    "model": "expected an object",
}


def failure_of(error: Exception) -> Failure:
    """Return what is reported of an error; of one that nobody expected only that it happened."""
    if isinstance(error, ValidationError):
        return _of_arguments(error)
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
        message=error.problem if isinstance(error, InvalidQuestion) else _message(error),
        field=_field(error) if isinstance(error, InvalidQuestion) else None,
        what_to_do=_what_to_do(error),
        missing=[view_of(Missing, each) for each in shortfalls],
        # The last of them decides; a level that is never refreshed has none.
        refreshes_at=max(known).isoformat() if known and len(known) == len(times) else None,
        largest_k=error.largest_k if isinstance(error, BudgetExhausted) else None,
    )


def _message(error: GrisError) -> str:
    if isinstance(error, BudgetExhausted):
        return "the budget of this account does not hold the question"
    if isinstance(error, BudgetHeld):
        return "questions that run now hold the budget, which is not exhausted"
    return str(error)


def _field(error: InvalidQuestion) -> str | None:
    """Return the argument that is wrong, without what stands behind it: the name of a column comes from the caller."""
    (name, *_) = re.split(r"[.\[]", error.field.removeprefix("question.").removeprefix("structured."))
    return _ARGUMENTS.get(name, name) or None


def _what_to_do(error: GrisError) -> str:
    return next((text for kind, text in _OF_KINDS if isinstance(error, kind)), _WHAT_TO_DO[error.code])


def _of_arguments(error: ValidationError) -> Failure:
    """Return what is wrong with arguments: the field that the schema has, and never a name or value that was sent."""
    first: dict[str, Any] = dict(
        error.errors(include_url=False, include_context=False, include_input=False)[0]
    )
    path = list(first["loc"])
    if first["type"] == "extra_forbidden":
        path = path[:-1]
    known = _known_names()
    field = ".".join(str(part) for part in path if isinstance(part, int) or part in known)
    kind = str(first["type"])
    problem = _PROBLEMS.get(kind) or _TYPES.get(kind.partition("_")[0]) or "expected a value of another type"
    return Failure(
        error=ErrorCode.INVALID_QUESTION.value,
        message=problem,
        field=field or None,
        what_to_do=_WHAT_TO_DO[ErrorCode.INVALID_QUESTION],
    )


def _known_names() -> frozenset[str]:
    """Return the names of all arguments."""
    found: set[str] = set()
    unseen: list[type[Arguments]] = [Arguments]
    while unseen:
        each = unseen.pop()
        found |= each.model_fields.keys()
        unseen += each.__subclasses__()
    return frozenset(found)
