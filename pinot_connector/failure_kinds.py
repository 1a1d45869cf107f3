"""What kind of failure an error is, for protocols that have codes of their own for it."""

from __future__ import annotations

from enum import Enum, auto

from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    BudgetHeld,
    GrisError,
    InvalidQuestion,
    OutcomeUnknown,
    RefusedByPolicy,
    ServiceRefused,
    TooManyCalls,
    TooMuchSql,
)


class FailureKind(Enum):
    """Who has to mend what: the text, a value, who asks, the policy's owner, or an operator."""

    SQL = auto()
    VALUE = auto()
    TABLE = auto()
    COLUMN = auto()
    POLICY = auto()
    BUDGET = auto()
    BUSY = auto()
    CALLER = auto()
    UNKNOWN_OUTCOME = auto()
    SYSTEM = auto()


_OF_RULES = {"table": FailureKind.TABLE, "column": FailureKind.COLUMN}
_OF_ERRORS: tuple[tuple[type[GrisError], FailureKind], ...] = (
    (BudgetExhausted, FailureKind.BUDGET),
    (BudgetHeld, FailureKind.BUDGET),
    (TooManyCalls, FailureKind.BUSY),
    (TooMuchSql, FailureKind.BUSY),
    (AccountUnknown, FailureKind.CALLER),
    (OutcomeUnknown, FailureKind.UNKNOWN_OUTCOME),
)
# Of a caller who is refused; whatever else a gateway refuses, its operator has to mend.
_OF_CALLERS = ("TOKEN_REFUSED", "CALLER_UNKNOWN", "CALLER_WITHOUT_ACCOUNT", "ACCOUNT_OUT_OF_REACH")


def kind_of(error: GrisError) -> FailureKind:
    """Returns the kind of an error; of a question that cannot be read as SQL that of SQL."""
    if isinstance(error, InvalidQuestion):
        return FailureKind.SQL if error.field in ("", "sql") else FailureKind.VALUE
    if isinstance(error, RefusedByPolicy):
        return _OF_RULES.get(error.rule, FailureKind.POLICY)
    if isinstance(error, ServiceRefused):
        return FailureKind.CALLER if error.reason in _OF_CALLERS else FailureKind.SYSTEM
    return next((kind for of, kind in _OF_ERRORS if isinstance(error, of)), FailureKind.SYSTEM)
