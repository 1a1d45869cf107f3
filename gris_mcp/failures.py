"""Errors as a model reads them: what happened, where, and what to do, in constant texts.

Of what a caller sent, no value is repeated; names of fields, tables and columns are if they are plain words. Numbers,
times and levels of budgets are fields of their own. `refusals` adds what only the catalogue says.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field, ValidationError

from gris_mcp import descriptions, lenient
from gris_mcp.arguments import Arguments, ColumnCondition, ColumnQuantiles
from gris_mcp.naming import no_such
from gris_mcp.results import Instant, Whole, only_seen, view_of
from pinot_connector.errors import (
    BudgetExhausted,
    BudgetHeld,
    EndedBetweenLooks,
    ErrorCode,
    GrisError,
    IntegrityError,
    InvalidQuestion,
    OutcomeUnknown,
    RefusedByPolicy,
    ReleaseNotRecorded,
    RequestInProgress,
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
    wants: str = Field(default="", exclude=True)
    """Of which field an example helps; empty: none does."""
    without: str = Field(default="", exclude=True)
    """An argument that is none."""
    is_large: bool = Field(default=False, exclude=True)
    """Whether an integer is to be a text."""

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
_IN_PROGRESS = (
    "A request of this id is still being answered, and may be charged. Send the same again in a few seconds."
)
_UNREAD = (
    "Nothing of the answer is shown. A question may have been charged: read the budget, and tell the operator. Do not "
    "retry."
)
_UNTRUSTED = (
    "Tell who started gris-mcp: --ca-file or GRIS_CA_FILE names the authority that signs the gateway's "
    "certificate. Do not retry; nothing was charged."
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
    (ServiceUntrusted, _UNTRUSTED),
)

# Fields of a question as a message has them, and as the tools do.
_ARGUMENTS = {
    "dimensions": "by",
    "filters": "where",
    "omit_counts": "counts",
    "aggregates": "sums, averages, numbers",
    "ordered_by": "order_by",
    "time_range": "since, until",
}
_LIMITS = {
    "missing": "expected this field",
    "greater_than": "expected a number above {gt}",
    "greater_than_equal": "expected a number of at least {ge}",
    "less_than_equal": "expected a number of at most {le}",
    "less_than": "expected a number below {lt}",
    "too_long": "expected at most {max_length} entries",
    "too_short": "expected at least one entry",
    "string_too_long": "expected at most {max_length} characters",
}
_TYPES = {
    "string": "expected a text",
    "int": "expected a whole number",
    "float": "expected a number",
    "bool": "expected true or false",
    "list": "expected a list",
    "model": "expected an object",
}
_KINDS = {
    "NoneType": "null",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "list": "a list",
    "dict": "an object",
}
# Which argument a rule of the policy is about.
_OF_RULES = {
    "table": ("table",),
    "measure": ("measure",),
    "group_by": ("by", "bucket"),
    "filter": ("where", "condition"),
    "time_column": ("since", "until", "bucket"),
}


def failure_of(
    error: Exception, takes: type[Arguments] = Arguments, arguments: Mapping[str, Any] | None = None
) -> Failure:
    """Return what is reported of an error of a tool; of one that nobody expected only that it happened.

    Args:
        error: What the tool raised.
        takes: Its arguments.
        arguments: What they were given as.
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
    given = arguments or {}
    field, in_sql = _field(error, given), bool(given.get("sql"))
    shortfalls = error.shortfalls if isinstance(error, BudgetExhausted | BudgetHeld) else ()
    times = [each.refreshes_at for each in shortfalls]
    known = [each for each in times if each is not None]
    return Failure(
        error="budget_held" if isinstance(error, BudgetHeld) else error.code.value,
        message=_asked_badly(error, in_sql=in_sql) if isinstance(error, InvalidQuestion) else _message(error),
        field=field,
        what_to_do=_what_to_do(error),
        missing=[view_of(Missing, each) for each in shortfalls],
        # The last of them decides; a level that is never refreshed has none.
        refreshes_at=max(known).isoformat() if known and len(known) == len(times) else None,
        largest_k=error.largest_k if isinstance(error, BudgetExhausted) else None,
        request_id=error.request_id,
        wants="" if field == _MAX_COST else _first_word(field),
    )


def _message(error: GrisError) -> str:
    if isinstance(error, BudgetExhausted):
        return "the budget of this account does not hold the question"
    if isinstance(error, BudgetHeld):
        return "questions that run now hold the budget, which is not exhausted"
    # Below the first line stands the SQL.
    return str(error).split("\n")[0]


def _field(error: GrisError, given: Mapping[str, Any]) -> str | None:
    """Return the argument that is wrong, without what stands behind it: the name of a column comes from the caller."""
    if isinstance(error, RefusedByPolicy):
        if given.get("sql"):
            return "sql"
        fields = _OF_RULES.get(error.rule, ())
        return next((each for each in fields if given.get(each)), next(iter(fields), None))
    if not isinstance(error, InvalidQuestion):
        return None
    if error.field.startswith("where["):
        return error.field
    (name, *_) = re.split(r"[.\[]", error.field.removeprefix("question.").removeprefix("structured."))
    if name == "condition" and not given.get("condition"):
        # It was SQL in where.
        return "where"
    means = _ARGUMENTS.get(name, name)
    return ", ".join(each for each in means.split(", ") if given.get(each)) or means or None


def _first_word(field: str | None) -> str:
    return re.split(r"[,.\[]", field or "")[0]


def _asked_badly(error: InvalidQuestion, *, in_sql: bool) -> str:
    """Return what is wrong: without the SQL, which stands below the first line, and in the words of the form used."""
    (problem, *_) = error.problem.split("\n")
    return problem if in_sql or error.field == "condition" else re.sub(r" \(in SQL[^)]*\)", "", problem)


def _what_to_do(error: GrisError) -> str:
    if isinstance(error, InvalidQuestion) and error.field == _MAX_COST:
        return _CHEAPER
    return next((text for kind, text in _OF_KINDS if isinstance(error, kind)), _WHAT_TO_DO[error.code])


def _of_arguments(error: ValidationError, takes: type[Arguments]) -> Failure:
    """Return what is wrong with arguments: the field, what was expected there and the kind of what was got.

    Of what was sent, only names of fields that are none are repeated, and of these only plain words.
    """
    first: dict[str, Any] = dict(error.errors(include_url=False)[0])
    path = list(first["loc"])
    sent, wants = "", ""
    if first["type"] == "extra_forbidden":
        sent = str(path.pop())
        problem, wants = _no_such_field(sent, _NESTED.get(path[0], takes) if path else takes)
    else:
        problem = _problem(first)
    # What else stands in a path is the type that pydantic tried.
    known = {each for kind in (takes, *_NESTED.values()) for each in kind.model_fields}
    named = (
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for part in path
        if isinstance(part, int) or part in known
    )
    field = "".join(named).removeprefix(".") or None
    return Failure(
        error=ErrorCode.INVALID_QUESTION.value,
        message=problem,
        field=field,
        what_to_do=_WHAT_TO_DO[ErrorCode.INVALID_QUESTION],
        wants=_first_word(field) or wants,
        without="" if field else sent,
        is_large=first["type"] == lenient.LARGE,
    )


def _problem(first: dict[str, Any]) -> str:
    """Return what was expected, and the kind of what was got, where that says more."""
    kind, context = str(first["type"]), first.get("ctx", {})
    if kind in _LIMITS:
        return _LIMITS[kind].format(**context)
    expected = _TYPES.get(kind.partition("_")[0], "expected a value of another type")
    if kind in (lenient.FORM, lenient.LARGE):
        expected = str(first["msg"])
    elif kind == "literal_error":
        expected = f"expected {context['expected']}"
    return f"{expected}, got {_KINDS.get(type(first['input']).__name__, 'something else')}"


def _no_such_field(name: str, kind: type[Arguments]) -> tuple[str, str]:
    """Return that a field is none, and what is meant: a field by a usual other name, or what it is called elsewhere."""
    fields, word = list(kind.model_fields), name.lower()
    meant = next((each for each in descriptions.OTHER_NAMES.get(word, ()) if each in fields), "")
    more = "; other conditions are SQL in the field condition" if kind is ColumnCondition else ""
    problem = no_such("field", name, fields, meant=meant)
    return problem + more, word if word in descriptions.FUNCTIONS else meant


_NESTED: dict[Any, type[Arguments]] = {"where": ColumnCondition, "quantiles": ColumnQuantiles}
