"""Every error of the connector.

    GrisError
    ├── InvalidQuestion        the question itself is wrong: `field`
    ├── RefusedByPolicy        the policy forbids the question
    ├── BudgetExhausted        the budget does not hold the worst case: `shortfalls`
    ├── AccountUnknown         this account has no budget
    ├── IntegrityError         an answer contradicts the protocol; nothing is shown
    │   └── ReleaseNotRecorded the ledger holds another release of this question
    ├── ServiceError           a service failed: `service`
    │   ├── ServiceUnavailable it cannot be reached, or reported that it had no effect
    │   ├── ServiceFailed      it has an internal error
    │   ├── OutcomeUnknown     a change may have happened; its answer is lost
    │   ├── ServiceRefused     it refused what the connector sent: `reason`
    │   ├── PlanExpired        dp_service asks for a new translation
    │   └── ReservationOver    the reservation lapsed before it was settled
    └── EngineError            the engine failed
        ├── EngineUnavailable  it cannot be reached, or took too long
        ├── IncompleteAnswer   it answered on part of the data, or in another shape than asked
        ├── DataChanged        its data changed while the question ran, or are being replaced
        └── EngineRefused      it refused the query, or its configuration is not safe

No message holds SQL, a literal of a question, a count or an engine's statistic, so it may be shown to an analyst.
After one of these errors there is no result and no budget was spent, except after `OutcomeUnknown`, when that is not
known: everything of a result that can fail is prepared before it is charged.
"""
# ruff: noqa: N818  (these names say what happened; the suffix would add nothing that the base class does not say)

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """Kinds of errors for programs; the command line gives each code an exit status."""

    INVALID_QUESTION = "invalid_question"
    REFUSED_BY_POLICY = "refused_by_policy"
    BUDGET_EXHAUSTED = "budget_exhausted"
    ACCOUNT_UNKNOWN = "account_unknown"
    UNAVAILABLE = "unavailable"
    UNEXPECTED = "unexpected"


@dataclass(frozen=True)
class Shortfall:
    """One unit of one level that cannot pay.

    `level` is the path of the level, `unit` "information" or "calls"; `requested` and `remaining` are in that
    unit. `refreshes_at` is None where the budget is never refreshed.
    """

    level: tuple[str, ...]
    unit: str
    requested: int
    remaining: int
    refreshes_at: datetime | None

    def __str__(self) -> str:
        level = "/".join(self.level)
        refresh = "never" if self.refreshes_at is None else self.refreshes_at.isoformat()
        return f"{level}, {self.unit}: {self.requested} asked for, {self.remaining} left, refreshed {refresh}"


class GrisError(Exception):
    """Base of all errors here. `code` says what kind it is; the message may be shown to an analyst."""

    code: ClassVar[ErrorCode] = ErrorCode.UNEXPECTED

    def __reduce__(self) -> tuple[object, ...]:
        """Lets errors be copied, and sent from one process to another."""
        return rebuilt_error, (type(self), self.args, vars(self))


def rebuilt_error(
    kind: type[Exception], args: tuple[object, ...], attributes: dict[str, object]
) -> Exception:
    """Rebuilds a pickled error, whose constructor does not take the message that Python would pass by default."""
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


class InvalidQuestion(GrisError):
    """The question is malformed in `field`, in the protos' words (empty: as a whole); `problem` says how."""

    code = ErrorCode.INVALID_QUESTION

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.problem = message


class RefusedByPolicy(GrisError):
    """The policy forbids the question; the message names the rule."""

    code = ErrorCode.REFUSED_BY_POLICY


class BudgetExhausted(GrisError):
    """The worst case of the question does not fit; `shortfalls` says where, by how much and until when.

    `largest_k` is the largest k, in SQL the largest LIMIT, with which the question would fit now; None where none
    would, or the price does not depend on k.
    """

    code = ErrorCode.BUDGET_EXHAUSTED

    def __init__(self, shortfalls: tuple[Shortfall, ...], largest_k: int | None = None) -> None:
        details = "; ".join(map(str, shortfalls)) or "no details were given"
        smaller = "" if largest_k is None else f"; with LIMIT {largest_k} (k) it would fit now"
        super().__init__(f"the budget does not hold this question ({details}){smaller}")
        self.shortfalls = shortfalls
        self.largest_k = largest_k


class AccountUnknown(GrisError):
    """The account has no budget, so it may ask nothing."""

    code = ErrorCode.ACCOUNT_UNKNOWN


class IntegrityError(GrisError):
    """An answer contradicts the protocol, or cannot be recorded; nothing is shown."""


class ReleaseNotRecorded(IntegrityError):
    """The ledger has recorded another release of this question, as where it was once answered on other data.

    It stays so until the owner of the table declares a new `data_version` in the policy, which makes another question
    of it. The reason is for the operator only: it would reveal something about the data.
    """

    def __init__(self) -> None:
        super().__init__(
            "the release could not be recorded; a new data_version of the table in the policy, which is for its owner "
            "to declare, lets the question be asked again"
        )


class ServiceError(GrisError):
    """A service failed; `service` is "dp_service", "budget_service" or "gateway"."""

    def __init__(self, service: str, message: str) -> None:
        super().__init__(f"{service}: {message}")
        self.service = service


class ServiceUnavailable(ServiceError):
    """The service cannot be reached in time, or reported that nothing happened."""

    code = ErrorCode.UNAVAILABLE


class ServiceFailed(ServiceError):
    """The service has an internal error, and nothing was changed; its log says more."""

    code = ErrorCode.UNAVAILABLE


class OutcomeUnknown(ServiceError):
    """A change may or may not have happened: no readable answer came, even after retries.

    If it was a charge, the budget may have been spent on a result that was never shown. With the policy's consistency
    `keyed`, asking the same question again then costs nothing; with `fresh`, it is charged again.
    """

    code = ErrorCode.UNAVAILABLE


class ServiceRefused(ServiceError):
    """The service refused what the connector sent; `reason` is its reason for machines, or empty."""

    def __init__(self, service: str, message: str, reason: str) -> None:
        super().__init__(service, message)
        self.reason = reason


class PlanExpired(ServiceError):
    """dp_service no longer accepts the plan: the question must be translated again."""

    code = ErrorCode.UNAVAILABLE


class ReservationOver(ServiceError):
    """A reservation ended before it was settled."""

    code = ErrorCode.UNAVAILABLE


class EngineError(GrisError):
    """An engine gave no answer that may be used."""


class EngineUnavailable(EngineError):
    """The engine cannot be reached, or did not answer in time."""

    code = ErrorCode.UNAVAILABLE


class IncompleteAnswer(EngineError):
    """The answer covers only part of the data, or does not have the shape that was asked for."""

    code = ErrorCode.UNAVAILABLE


class DataChanged(EngineError):
    """The data changed while the question ran, or are being replaced; asking later gets an answer on the new data."""

    code = ErrorCode.UNAVAILABLE


class EngineRefused(EngineError):
    """The engine refused the query, or is configured in a way that makes its counts untrustworthy."""
