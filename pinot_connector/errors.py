"""Every error of the connector.

    GrisError
    ├── InvalidQuestion        the question itself is wrong: `field`
    ├── RefusedByPolicy        the policy forbids the question
    ├── BudgetExhausted        the budget does not hold the worst case: `shortfalls`
    ├── BudgetHeld             questions that run now hold the budget; it is not exhausted: `shortfalls`
    ├── AccountUnknown         this account has no budget
    ├── IntegrityError         an answer contradicts the protocol; nothing is shown
    │   └── ReleaseNotRecorded the ledger holds another release of this question
    ├── ReleaseStoreFailed     what was released before cannot be looked up or kept
    ├── ChargedUnanswered      the question ended after noise was drawn; it was charged in full: `charged`
    ├── ServiceError           a service failed: `service`
    │   ├── ServiceUnavailable it cannot be reached, or reported that it had no effect
    │   │   ├── ServiceUntrusted its certificate is signed by no authority that is trusted here, or for another name
    │   │   ├── ServiceGone    the connection to it is refused, or broke
    │   │   ├── TooManyCalls   it has as many calls of this caller, or of all, as it takes
    │   │   ├── TooMuchSql     it reads as much SQL of this caller, or of all, as it may at a time
    │   │   └── HomeUnavailable  the ledger is a region's, and its home, which alone knows the answer, is away
    │   ├── ServiceFailed      it has an internal error
    │   ├── OutcomeUnknown     a change may have happened; its answer is lost
    │   ├── ServiceRefused     it refused what the connector sent: `reason`
    │   ├── PlanExpired        dp_service asks for a new translation
    │   └── ReservationOver    the reservation lapsed before it was settled
    └── EngineError            the engine failed
        ├── EngineUnavailable  it cannot be reached, or took too long
        │   └── EngineGone     the connection to it is refused, or broke; its data cannot be found
        ├── IncompleteAnswer   it answered on part of the data, or in another shape than asked
        ├── DataChanged        its data changed while the question ran, or are being replaced
        └── EngineRefused      it refused the query, or its configuration is not safe
            └── DataUnreadable its data are not what their name says, or not all in their file

No message holds SQL, a literal of a question, a count or an engine's statistic, so it may be shown to an analyst.
After one of these errors there is no result and no budget was spent. There are exceptions. After `OutcomeUnknown` it is
not known, nor after an `IntegrityError` of a gateway's client, which gets what was paid for. And a question that ends
once noise may have been drawn is charged in full (`ChargedUnanswered`, or a cancellation), because noise may have
decided how it ended.
"""
# ruff: noqa: N818  (these names say what happened; the suffix would add nothing that the base class does not say)

from __future__ import annotations

from dataclasses import dataclass, field
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

    # `views.called`, which this module cannot use: a message has it as `path`.
    level: tuple[str, ...] = field(metadata={"called": "path"})
    unit: str
    requested: int
    remaining: int
    refreshes_at: datetime | None

    @property
    def name(self) -> str:
        """The path of the level in one text."""
        return "/".join(self.level)

    def __str__(self) -> str:
        refresh = "never" if self.refreshes_at is None else self.refreshes_at.isoformat()
        return f"{self.name}, {self.unit}: {self.requested} asked for, {self.remaining} left, refreshed {refresh}"


class GrisError(Exception):
    """Base of all errors here. `code` says what kind it is; the message may be shown to an analyst.

    `request_id` is the id under which a gateway says why a question was not answered; empty: none does.
    """

    code: ClassVar[ErrorCode] = ErrorCode.UNEXPECTED
    request_id: str = ""

    def __reduce__(self) -> tuple[object, ...]:
        """Lets errors be copied, and sent from one process to another."""
        return rebuilt_error, (type(self), self.args, vars(self))

    def with_request(self) -> str:
        """Returns the message, with the request's id if there is one."""
        if not self.request_id:
            return str(self)
        # Below the first line of a message stands SQL, with a mark below that.
        apart = "\n" if "\n" in str(self) else " "
        return f"{self}{apart}(request {self.request_id})"


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
    """The policy forbids the question; the message names the rule, and `rule` is its word: table, column, measure, ..

    Empty: nobody said.
    """

    code = ErrorCode.REFUSED_BY_POLICY

    def __init__(self, message: str, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule


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


class BudgetHeld(GrisError):
    """Questions that run now hold the budget, which is not exhausted; ask again when they have ended.

    `shortfalls` says where, as far as it is known; on a level above the account it does not count what others hold.
    """

    code = ErrorCode.UNAVAILABLE

    def __init__(self, shortfalls: tuple[Shortfall, ...]) -> None:
        details = "; ".join(
            f"{'/'.join(each.level)}, {each.unit}: {each.requested} asked for" for each in shortfalls
        )
        where = f" ({details})" if details else ""
        super().__init__(
            f"questions that run now hold the budget, which is not exhausted; ask again soon{where}"
        )
        self.shortfalls = shortfalls


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


class ReleaseStoreFailed(GrisError):
    """The release store cannot be read, so nothing is charged or shown."""

    code = ErrorCode.UNAVAILABLE


class ChargedUnanswered(GrisError):
    """A question ended once noise may have been drawn, and was charged in full.

    `charged` are the information units and calls. The other error, in the message, says what ended it.
    """

    code = ErrorCode.UNAVAILABLE

    def __init__(self, problem: str, information: int, calls: int) -> None:
        super().__init__(
            f"{problem}; noise had been drawn by then, so the question was charged: {information} information and "
            f"{calls} {'call' if calls == 1 else 'calls'}"
        )
        self.charged = (information, calls)


class ServiceError(GrisError):
    """A service failed; `service` is "dp_service", "budget_service" or "gateway"."""

    def __init__(self, service: str, message: str) -> None:
        super().__init__(f"{service}: {message}")
        self.service = service
        self.problem = message


class ServiceUnavailable(ServiceError):
    """The service cannot be reached in time, or reported that nothing happened."""

    code = ErrorCode.UNAVAILABLE


class ServiceMisconfigured(ServiceUnavailable):
    """A service that this program started cannot use what it was started with; another start changes nothing."""


class ServiceUntrusted(ServiceUnavailable):
    """The service's certificate is not trusted here; that is for who set up this program, and no retry mends it."""


class ServiceGone(ServiceUnavailable):
    """The connection to the service is refused, or broke; the call was not answered."""


class TooManyCalls(ServiceUnavailable):
    """The service has as many calls of this caller, or of all callers, as it takes; nothing was begun."""


class TooMuchSql(ServiceUnavailable):
    """The service reads as many bytes of SQL of this caller, or of all callers, as it may at a time."""


class HomeUnavailable(ServiceUnavailable):
    """A region's ledger answered that its home does not: nobody states balances, or whether an account is closed."""


class ServiceFailed(ServiceError):
    """The service has an internal error; its log says more.

    Nothing was changed, unless it is a gateway: there a question may have been paid for, and is then free.
    """

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


class EngineGone(EngineUnavailable):
    """The connection to the engine is refused or broke, or the file of its data is gone."""


class IncompleteAnswer(EngineError):
    """The answer covers only part of the data, or does not have the shape that was asked for."""

    code = ErrorCode.UNAVAILABLE


class DataChanged(EngineError):
    """The data changed while the question ran, or are being replaced; asking later gets an answer on the new data."""

    code = ErrorCode.UNAVAILABLE


class EngineRefused(EngineError):
    """The engine refused the query, or is configured in a way that makes its counts untrustworthy."""


class DataUnreadable(EngineRefused):
    """A file or table is not what its name or the policy says: a Parquet file that ends early, or no bounded copy.

    Asking again does not help.
    """
