"""Translates failed calls of gRPC into the errors of `errors.py`; no other module does."""

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

from pinot_connector import proxies
from pinot_connector.budgets import shortfall_of
from pinot_connector.endpoints import silent
from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    BudgetHeld,
    ChargedUnanswered,
    DataChanged,
    GrisError,
    HomeUnavailable,
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
    ServiceUntrusted,
    Shortfall,
    TooManyCalls,
    TooMuchSql,
)

_Detail = TypeVar("_Detail", bound=Message)


class Service(StrEnum):
    """The two services, and the gateway before them."""

    DP = "dp_service"
    BUDGET = "budget_service"
    GATEWAY = "gateway"


_DOMAINS = {Service.DP: "gris.dp", Service.BUDGET: "gris.budget", Service.GATEWAY: "gris.app"}

# The account.
_FROM_CALLERS = frozenset(("account", "path"))

# A call that ends in one of these may have had its effect before the answer was lost.
_LOST_ANSWERS = frozenset(
    (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        # Without a reason of the service's own it is how gRPC reports a connection that broke while something was sent.
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.ABORTED,
    )
)

# What gRPC itself says of a connection that was never made begins so; parts of it, and what they mean.
_NEVER_MADE = (
    "failed to connect to all addresses",
    "connections to all backends failing",
    "errors resolving",
)
_OF_TRUST = ("CERTIFICATE_VERIFY_FAILED", "Hostname Verification Check failed")
_OF_CONNECTIONS = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is signed by no authority that is trusted here: see ca_file",
    "Hostname Verification Check failed": "its certificate is for another name of the host",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "Socket closed": "it closed the connection, as it does if it expects a certificate: see certificate_file",
    "address lookup failed": "no host is known by this name",
}

# What the gateway says of a caller whom it does not admit is for that caller: such as that the token has expired. Which
# role is missing each service says, in words of its own alone.
_SAYS_WHO = frozenset(
    (
        *(
            (Service.GATEWAY, reason)
            for reason in (
                "TOKEN_REFUSED",
                "CALLER_UNKNOWN",
                "CALLER_WITHOUT_ACCOUNT",
                "ACCOUNT_OUT_OF_REACH",
            )
        ),
        *((service, "ROLE_MISSING") for service in Service),
    )
)


@dataclass(frozen=True)
class _Failure:
    """What a failed call reports. `reason` is empty unless the service itself gave it, in its own domain."""

    code: grpc.StatusCode
    text: str
    reason: str
    details: tuple[any_pb2.Any, ...] = field(default=())


def error_of_rpc(service: Service, error: grpc.RpcError, address: str) -> GrisError:
    """Returns the connector's error for a failed call.

    It repeats only what a service said on purpose: the text of a crash can hold anything.

    Args:
        service: the service that was called.
        error: what gRPC raised.
        address: where the service was looked for.
    """
    failure = _failure_of(service, error)
    known = _by_reason(service, failure)
    if known is not None:
        for info in _unpacked(failure.details, error_details_pb2.RequestInfo):
            known.request_id = info.request_id
        return known
    if was_never_sent(error):
        kind = ServiceUntrusted if _is_untrusted(error) else ServiceUnavailable
        return kind(service, no_answer(error, address))
    if failure.code in _LOST_ANSWERS:
        return OutcomeUnknown(service, no_answer(error, address))
    if failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # gRPC itself uses this code for large messages and too many calls; a spent budget has a reason.
        return ServiceUnavailable(service, "overloaded, or a message was too large")
    if failure.code is grpc.StatusCode.UNIMPLEMENTED and not failure.reason:
        return ServiceRefused(service, f"another service answers at {address}", "")
    said = f": {failure.text}" if (service, failure.reason) in _SAYS_WHO else ""
    return ServiceRefused(
        service, f"refused the request ({failure.reason or failure.code.name}){said}", failure.reason
    )


def was_never_sent(error: grpc.RpcError) -> bool:
    """Returns whether a call had no connection to be sent by, so that it can have had no effect.

    Of a call that gRPC itself tries again this is true of its last attempt alone; none that charges is.
    """
    return (
        isinstance(error, grpc.aio.AioRpcError)
        and error.code() is grpc.StatusCode.UNAVAILABLE
        and (error.details() or "").startswith(_NEVER_MADE)
    )


def _is_untrusted(error: grpc.RpcError) -> bool:
    said = (error.details() or "") if isinstance(error, grpc.aio.AioRpcError) else ""
    return any(part in said for part in _OF_TRUST)


def no_answer(error: grpc.RpcError, address: str) -> str:
    """Returns that there is no answer and, where gRPC says why no connection was made, what to look at."""
    if not isinstance(error, grpc.aio.AioRpcError):
        return silent(address)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return silent(address, "not in time")
    if not was_never_sent(error):
        return silent(address)
    said = error.details() or ""
    meaning = next((meaning for part, meaning in _OF_CONNECTIONS.items() if part in said), "")
    # Through a proxy, what is said can be about the proxy.
    why = "; ".join(filter(None, (meaning, _through_a_proxy())))
    return silent(address, why)


def _through_a_proxy() -> str:
    # Only the name of the variable: its value may hold a password.
    variable = proxies.proxy_variable()
    return (
        variable
        and f"{variable} is set: other machines that no_proxy does not list are asked through a proxy"
    )


def _by_reason(service: Service, failure: _Failure) -> GrisError | None:
    meaning = _MEANINGS.get((service, failure.reason))
    if meaning is not None:
        return meaning(failure)
    if failure.reason and failure.code is grpc.StatusCode.INVALID_ARGUMENT:
        return _invalid(service, failure)
    return None


def _invalid(service: Service, failure: _Failure) -> GrisError:
    violations = [
        each
        for bad in _unpacked(failure.details, error_details_pb2.BadRequest)
        for each in bad.field_violations
    ]
    field_name, problem = (
        (violations[0].field, violations[0].description) if violations else ("", failure.text)
    )
    # Of a request to budget_service, only this comes from the caller.
    if service is Service.BUDGET and field_name.split(".")[0] not in _FROM_CALLERS:
        return ServiceRefused(service, f"refused the request ({failure.reason})", failure.reason)
    return InvalidQuestion(field_name, problem)


def _exhausted(failure: _Failure) -> BudgetExhausted:
    return BudgetExhausted(_shortfalls(failure), _largest_k(failure))


def _charged_unanswered(failure: _Failure) -> GrisError:
    for info in _unpacked(failure.details, error_details_pb2.ErrorInfo):
        with suppress(KeyError, ValueError):
            charged = int(info.metadata["information"]), int(info.metadata["calls"])
            return ChargedUnanswered("the question cannot be answered now", *charged)
    return IntegrityError("the gateway does not say what it charged")


def _held(failure: _Failure) -> BudgetHeld:
    return BudgetHeld(_shortfalls(failure))


def _shortfalls(failure: _Failure) -> tuple[Shortfall, ...]:
    # Only the gateway lists every shortfall; the ledger's ErrorInfo has the first.
    for check in _unpacked(failure.details, budget_pb2.CheckBudgetResponse):
        return tuple(map(shortfall_of, check.shortfalls))
    for info in _unpacked(failure.details, error_details_pb2.ErrorInfo):
        fields = info.metadata
        # The reason says what is wrong; details that cannot be read are left out.
        with suppress(KeyError, ValueError):
            until = datetime.fromisoformat(fields["refreshes_at"]) if "refreshes_at" in fields else None
            level = tuple(fields["level"].split("/"))
            amounts = int(fields["requested"]), int(fields["remaining"])
            return (Shortfall(level, fields["unit"], *amounts, until),)
    return ()


def _largest_k(failure: _Failure) -> int | None:
    # Only the gateway states it, and only where there is one.
    for info in _unpacked(failure.details, error_details_pb2.ErrorInfo):
        with suppress(KeyError, ValueError):
            return int(info.metadata["largest_k"])
    return None


def _refused_by_policy(failure: _Failure) -> GrisError:
    rules = (
        info.metadata.get("rule", "") for info in _unpacked(failure.details, error_details_pb2.ErrorInfo)
    )
    return RefusedByPolicy(failure.text, next(rules, ""))


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
    (Service.DP, "REFUSED_BY_POLICY"): _refused_by_policy,
    (Service.DP, "PLAN_EXPIRED"): lambda _: PlanExpired(Service.DP, "the plan is no longer honoured"),
    (Service.DP, "PLAN_NOT_AUTHENTIC"): lambda _: PlanExpired(Service.DP, "the plan is no longer honoured"),
    (Service.DP, "DATA_CHANGED"): lambda _: DataChanged("the data changed while the question was answered"),
    (Service.DP, "POLICY_UNUSABLE"): lambda failure: ServiceRefused(
        Service.DP, "the policy's parameters cannot be used; ask the operator", failure.reason
    ),
    (Service.DP, "OVERLOADED"): lambda _: TooManyCalls(Service.DP, "too many questions at once"),
    (Service.DP, "TOO_MUCH_SQL"): lambda failure: TooMuchSql(Service.DP, failure.text),
    (Service.GATEWAY, "TOO_MUCH_SQL"): lambda failure: TooMuchSql(Service.GATEWAY, failure.text),
    (Service.BUDGET, "OVERLOADED"): lambda _: ServiceUnavailable(
        Service.BUDGET, "too many questions at once"
    ),
    (Service.DP, "INTERNAL"): lambda _: ServiceFailed(Service.DP, "the service failed; its log says where"),
    (Service.BUDGET, "INTERNAL"): lambda _: ServiceFailed(
        Service.BUDGET, "the service failed; its log says where"
    ),
    (Service.BUDGET, "BUDGET_EXHAUSTED"): _exhausted,
    (Service.BUDGET, "BUDGET_HELD"): _held,
    (Service.BUDGET, "ACCOUNT_UNKNOWN"): lambda failure: AccountUnknown(failure.text),
    (Service.BUDGET, "RESERVATION_OVER"): lambda _: ReservationOver(
        Service.BUDGET, "the reservation is over"
    ),
    (Service.BUDGET, "RELEASE_MISMATCH"): lambda _: ReleaseNotRecorded(),
    (Service.BUDGET, "QUERY_MISMATCH"): lambda _: IntegrityError("the reservation is for another question"),
    (Service.BUDGET, "BLOCKS_MISMATCH"): lambda failure: IntegrityError(failure.text),
    (Service.BUDGET, "COST_ABOVE_RESERVATION"): lambda _: IntegrityError(
        "the cost is more than was reserved"
    ),
    (Service.GATEWAY, "REFUSED_BY_POLICY"): _refused_by_policy,
    (Service.GATEWAY, "BUDGET_EXHAUSTED"): _exhausted,
    (Service.GATEWAY, "BUDGET_HELD"): _held,
    (Service.GATEWAY, "ACCOUNT_UNKNOWN"): lambda failure: AccountUnknown(failure.text),
    (Service.GATEWAY, "CHARGED_UNANSWERED"): _charged_unanswered,
    (Service.GATEWAY, "INTEGRITY"): lambda failure: IntegrityError(failure.text),
    (Service.GATEWAY, "INTERNAL"): lambda failure: ServiceFailed(Service.GATEWAY, failure.text),
    (Service.GATEWAY, "OUTCOME_UNKNOWN"): lambda failure: OutcomeUnknown(Service.GATEWAY, failure.text),
    (Service.GATEWAY, "UNAVAILABLE"): lambda failure: ServiceUnavailable(Service.GATEWAY, failure.text),
    (Service.GATEWAY, "OVERLOADED"): lambda failure: TooManyCalls(Service.GATEWAY, failure.text),
    (Service.GATEWAY, "RATE_LIMITED"): lambda failure: TooManyCalls(Service.GATEWAY, failure.text),
    (Service.GATEWAY, "TOO_MANY_AT_ONCE"): lambda failure: TooManyCalls(Service.GATEWAY, failure.text),
    (Service.BUDGET, "STORE_UNAVAILABLE"): lambda _: ServiceUnavailable(
        Service.BUDGET, "its store is not available"
    ),
    (Service.BUDGET, "HOME_UNAVAILABLE"): lambda _: HomeUnavailable(
        Service.BUDGET, "the home of its region is not available"
    ),
}
