"""Errors as pages say them: what happened, whether anything was paid, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_connector.errors import (
    AccountUnknown,
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
    ServiceRefused,
    Shortfall,
)

_STATUS = {
    ErrorCode.INVALID_QUESTION: 422,
    ErrorCode.REFUSED_BY_POLICY: 403,
    ErrorCode.BUDGET_EXHAUSTED: 429,
    ErrorCode.ACCOUNT_UNKNOWN: 404,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.UNEXPECTED: 502,
}
_TITLES = {
    ErrorCode.INVALID_QUESTION: "This cannot be asked in this form",
    ErrorCode.REFUSED_BY_POLICY: "The policy does not allow this",
    ErrorCode.BUDGET_EXHAUSTED: "The budget does not hold this",
    ErrorCode.ACCOUNT_UNKNOWN: "This account has no budget",
    ErrorCode.UNAVAILABLE: "There is no answer now",
    ErrorCode.UNEXPECTED: "Something went wrong",
}
_LOG_IN_OVER = frozenset(("TOKEN_REFUSED", "CALLER_UNKNOWN"))


@dataclass(frozen=True)
class Problem:
    """What a page says of an error.

    `is_retried`: whether the same form may be sent again; by its request id it is paid once.
    """

    status: int
    title: str
    text: str
    advice: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    largest_k: int | None = None
    is_retried: bool = False
    request_id: str = ""

    @property
    def asks_for_more(self) -> bool:
        """Whether more budget would help, which may be asked for."""
        return self.status == _STATUS[ErrorCode.BUDGET_EXHAUSTED] and bool(self.shortfalls)


def problem_of(error: GrisError) -> Problem:
    """Return what a page says of an error; no message of the connector holds data."""
    return Problem(
        status=_STATUS[error.code],
        title=_TITLES[error.code],
        text=_text(error),
        advice=_advice(error),
        shortfalls=error.shortfalls if isinstance(error, BudgetExhausted | BudgetHeld) else (),
        largest_k=error.largest_k if isinstance(error, BudgetExhausted) else None,
        is_retried=error.code is ErrorCode.UNAVAILABLE or _is_unread(error),
        request_id=error.request_id,
    )


def ends_log_in(error: GrisError) -> bool:
    """Return whether an error says that the person's token is no longer accepted."""
    return isinstance(error, ServiceRefused) and error.reason in _LOG_IN_OVER


def _text(error: GrisError) -> str:
    if isinstance(error, BudgetExhausted | BudgetHeld):
        # The page shows the shortfalls in a table of their own.
        return "What is missing:" if error.shortfalls else str(error)
    return str(error)


def _is_unread(error: GrisError) -> bool:
    """Return whether an answer came that cannot be shown, perhaps after it was paid for."""
    return isinstance(error, IntegrityError) and not isinstance(error, ReleaseNotRecorded)


_NOTHING_CHARGED = "Nothing was charged."
# Of the kinds that an error is of, the first counts.
_ADVICE: tuple[tuple[type[GrisError], str], ...] = (
    (BudgetExhausted, "Ask for fewer elements or without counts, or wait until the budget is refreshed."),
    (BudgetHeld, "Questions that run now hold the budget. Nothing was charged; ask again in a little while."),
    (
        RequestInProgress,
        "This form was sent before, and its question is still being answered; it may be charged. Send the same form "
        "again in a little while: it gets that answer, and is not charged twice.",
    ),
    (ReleaseNotRecorded, _NOTHING_CHARGED),
    (
        IntegrityError,
        "Nothing of it is shown. If a question was asked, it may have been charged; the budget says so.",
    ),
    (
        OutcomeUnknown,
        "The question may have been charged. Send the same form again: it is answered from what was paid for, and is "
        "not charged twice.",
    ),
    (EndedBetweenLooks, "Asking again is charged again."),
    (AccountUnknown, "Ask the owner of the data to give your account a budget."),
    (InvalidQuestion, "Nothing was charged. Change what is wrong, and try again."),
)


def _advice(error: GrisError) -> str:
    if isinstance(error, BudgetExhausted) and error.largest_k is not None:
        return f"With at most {error.largest_k} elements it would fit now."
    found = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
    if found or error.code is not ErrorCode.UNAVAILABLE:
        return found or _NOTHING_CHARGED
    return f"{_NOTHING_CHARGED} Try again in a little while; what you had entered is kept."
