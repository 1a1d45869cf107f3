"""Where gRPC ends: a failed call becomes one of the errors of `errors.py`, here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from gris_api.budget.v1 import budget_pb2
from grpc_status import rpc_status

from pinot_connector.budgets import shortfall_of
from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    DataChanged,
    GrisError,
    IntegrityError,
    InvalidQuestion,
    OutcomeUnknown,
    PlanExpired,
    RefusedByPolicy,
    ReleaseNotRecorded,
    ReservationOver,
    ServiceFailed,
    ServiceRefused,
    ServiceUnavailable,
    Shortfall,
)

_Detail = TypeVar("_Detail", bound=Message)


class Service(StrEnum):
    """The two services, and the gateway before them."""

    DP = "dp_service"
    BUDGET = "budget_service"
    GATEWAY = "gateway"


_DOMAINS = {Service.DP: "gris.dp", Service.BUDGET: "gris.budget", Service.GATEWAY: "gris.app"}

# A call that ends in one of these may have had its effect before the answer was lost.
_LOST_ANSWERS = frozenset(
    (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        # Without a reason of the service's own it is gRPC's word for a line that broke while something was sent.
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.ABORTED,
    )
)


@dataclass(frozen=True)
class _Failure:
    """What a failed call says. `reason` is empty unless the service itself gave it, in its own domain."""

    code: grpc.StatusCode
    text: str
    reason: str
    details: tuple[any_pb2.Any, ...] = field(default=())


def error_of_rpc(service: Service, error: grpc.RpcError) -> GrisError:
    """Returns the error that a failed call means to the connector.

    Nothing that a service did not say on purpose is repeated: the text of a crash can hold anything.
    """
    told = _failure_of(service, error)
    meant = _by_reason(service, told)
    if meant is not None:
        return meant
    if told.code in _LOST_ANSWERS:
        return OutcomeUnknown(service, f"no answer ({told.code.name})")
    if told.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # gRPC itself says this of large messages and of too many calls; a spent budget has a reason.
        return ServiceUnavailable(service, "overloaded, or a message was too large")
    return ServiceRefused(service, f"refused the request ({told.reason or told.code.name})", told.reason)


def _by_reason(service: Service, told: _Failure) -> GrisError | None:
    meaning = _MEANINGS.get((service, told.reason))
    if meaning is not None:
        return meaning(told)
    if told.reason and told.code is grpc.StatusCode.INVALID_ARGUMENT:
        return _invalid(service, told)
    return None


def _invalid(service: Service, told: _Failure) -> GrisError:
    violations = [
        each for bad in _unpacked(told.details, error_details_pb2.BadRequest) for each in bad.field_violations
    ]
    field_name, problem = (violations[0].field, violations[0].description) if violations else ("", told.text)
    # Of what budget_service is sent, only the account is the caller's own.
    if service is Service.BUDGET and not field_name.startswith("account"):
        return ServiceRefused(service, f"refused the request ({told.reason})", told.reason)
    return InvalidQuestion(field_name, problem)


def _exhausted(told: _Failure) -> BudgetExhausted:
    # Only the gateway lists all that is missing; of the ledger's refusal the first is in the ErrorInfo.
    for check in _unpacked(told.details, budget_pb2.CheckBudgetResponse):
        return BudgetExhausted(tuple(map(shortfall_of, check.shortfalls)))
    for info in _unpacked(told.details, error_details_pb2.ErrorInfo):
        said = info.metadata
        # That the budget is spent is said by the reason; what cannot be read besides is left out.
        with suppress(KeyError, ValueError):
            until = datetime.fromisoformat(said["refreshes_at"]) if "refreshes_at" in said else None
            level = tuple(said["level"].split("/"))
            shortfall = Shortfall(level, said["unit"], int(said["requested"]), int(said["remaining"]), until)
            return BudgetExhausted((shortfall,))
    return BudgetExhausted(())


def _failure_of(service: Service, error: grpc.RpcError) -> _Failure:
    if not isinstance(error, grpc.aio.AioRpcError):
        return _Failure(grpc.StatusCode.UNKNOWN, "", "")
    details = _details(error)
    for info in _unpacked(details, error_details_pb2.ErrorInfo):
        if info.domain == _DOMAINS[service]:
            return _Failure(error.code(), error.details() or "", info.reason, details)
    return _Failure(error.code(), "", "")


def _details(error: grpc.aio.AioRpcError) -> tuple[any_pb2.Any, ...]:
    try:
        status: status_pb2.Status | None = rpc_status.from_call(error)  # type: ignore[arg-type]  # it needs what both kinds of call have
    except ValueError:
        return ()  # the details contradict the status, so they are not to be trusted
    return () if status is None else tuple(status.details)


def _unpacked(details: tuple[any_pb2.Any, ...], kind: type[_Detail]) -> Iterator[_Detail]:
    for detail in details:
        message = kind()
        if detail.Unpack(message):
            yield message


_MEANINGS: dict[tuple[Service, str], Callable[[_Failure], GrisError]] = {
    (Service.DP, "REFUSED_BY_POLICY"): lambda told: RefusedByPolicy(told.text),
    (Service.DP, "PLAN_EXPIRED"): lambda _: PlanExpired(Service.DP, "the plan is no longer honoured"),
    (Service.DP, "PLAN_NOT_AUTHENTIC"): lambda _: PlanExpired(Service.DP, "the plan is no longer honoured"),
    (Service.DP, "DATA_CHANGED"): lambda _: DataChanged("the data changed while the question was answered"),
    (Service.DP, "POLICY_UNUSABLE"): lambda told: ServiceRefused(
        Service.DP, "the policy's parameters cannot be used; ask the operator", told.reason
    ),
    (Service.DP, "OVERLOADED"): lambda _: ServiceUnavailable(Service.DP, "too many questions at once"),
    (Service.BUDGET, "OVERLOADED"): lambda _: ServiceUnavailable(
        Service.BUDGET, "too many questions at once"
    ),
    (Service.DP, "INTERNAL"): lambda _: ServiceFailed(Service.DP, "the service failed; its log says where"),
    (Service.BUDGET, "INTERNAL"): lambda _: ServiceFailed(
        Service.BUDGET, "the service failed; its log says where"
    ),
    (Service.BUDGET, "BUDGET_EXHAUSTED"): _exhausted,
    (Service.BUDGET, "ACCOUNT_UNKNOWN"): lambda told: AccountUnknown(told.text),
    (Service.BUDGET, "RESERVATION_OVER"): lambda _: ReservationOver(
        Service.BUDGET, "the reservation is over"
    ),
    (Service.BUDGET, "RELEASE_MISMATCH"): lambda _: ReleaseNotRecorded(),
    (Service.BUDGET, "QUERY_MISMATCH"): lambda _: IntegrityError("the reservation is for another question"),
    (Service.BUDGET, "COST_ABOVE_RESERVATION"): lambda _: IntegrityError(
        "the cost is more than was reserved"
    ),
    (Service.GATEWAY, "REFUSED_BY_POLICY"): lambda told: RefusedByPolicy(told.text),
    (Service.GATEWAY, "BUDGET_EXHAUSTED"): _exhausted,
    (Service.GATEWAY, "ACCOUNT_UNKNOWN"): lambda told: AccountUnknown(told.text),
    (Service.GATEWAY, "INTEGRITY"): lambda told: IntegrityError(told.text),
    (Service.GATEWAY, "INTERNAL"): lambda told: ServiceFailed(Service.GATEWAY, told.text),
    (Service.GATEWAY, "OUTCOME_UNKNOWN"): lambda told: OutcomeUnknown(Service.GATEWAY, told.text),
    (Service.GATEWAY, "UNAVAILABLE"): lambda told: ServiceUnavailable(Service.GATEWAY, told.text),
    (Service.GATEWAY, "RATE_LIMITED"): lambda told: ServiceUnavailable(Service.GATEWAY, told.text),
    (Service.GATEWAY, "TOO_MANY_AT_ONCE"): lambda told: ServiceUnavailable(Service.GATEWAY, told.text),
    (Service.GATEWAY, "REQUEST_IN_PROGRESS"): lambda told: ServiceUnavailable(Service.GATEWAY, told.text),
    (Service.BUDGET, "STORE_UNAVAILABLE"): lambda _: ServiceUnavailable(
        Service.BUDGET, "its store is not available"
    ),
}
