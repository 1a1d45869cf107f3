"""How the gateway reports errors: google.rpc.Status with details, domain `gris.app`.

Callers see nothing of an engine's error, and of the services' only what is meant for analysts; the log has the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, QuotaFailure, RequestInfo, RetryInfo
from google.rpc.status_pb2 import Status
from gris_api.budget.v1 import budget_pb2
from grpc_status import rpc_status

from gris_gateway.accounts import OutOfReachError
from gris_gateway.rate_limits import TooManyError
from gris_serving.admission import status_of
from gris_serving.identity import Context
from gris_serving.internal_errors import log_internal_error
from pinot_connector import errors
from pinot_connector.views import message_of

DOMAIN = "gris.app"
PUSHBACK = "grpc-retry-pushback-ms"
# The gateway has waited already, as long as the call allowed.
HELD_MILLISECONDS = 1000
# An answer that is meant for analysts, though its code is UNAVAILABLE.
LOG_LEVELS = {"BUDGET_HELD": logging.INFO}

log = logging.getLogger(__name__)


class RequestError(Exception):
    """A request that is malformed in `field`; the message says what was expected."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def status_of_error(error: Exception) -> grpc.Status:
    """Return the status that a caller sees for an error, and log what only the operator may know."""
    for kind, report in _REPORTS:
        if isinstance(error, kind):
            return report(error)
    log_internal_error(log, "The gateway failed.", error)
    return _status(grpc.StatusCode.INTERNAL, "INTERNAL", "the gateway failed; its log says where")


def named(status: grpc.Status, request_id: str) -> grpc.Status:
    """Return a status with the id of the question that was not answered."""
    ((_, packed),) = status.trailing_metadata
    said = Status.FromString(packed)
    said.details.add().Pack(RequestInfo(request_id=request_id))
    return rpc_status.to_status(said)


def invalid(field: str, problem: str) -> grpc.Status:
    """Return the status that names the field of a request that is wrong."""
    violation = BadRequest.FieldViolation(field=field, description=problem)
    message = f"{field}: {problem}" if field else problem
    info = ErrorInfo(reason="INVALID_ARGUMENT", domain=DOMAIN, metadata={"field": field})
    return status_of(
        grpc.StatusCode.INVALID_ARGUMENT, message, info, BadRequest(field_violations=[violation])
    )


def too_many(error: TooManyError) -> grpc.aio.AioRpcError:
    """Return the refusal of a caller over its limits, with the time of a retry, also for gRPC's own retries."""
    wait = Duration()
    wait.FromMilliseconds(error.wait_milliseconds)
    info = ErrorInfo(reason=error.reason, domain=DOMAIN)
    status = status_of(grpc.StatusCode.UNAVAILABLE, str(error), info, RetryInfo(retry_delay=wait))
    return refusal(status, (PUSHBACK, str(error.wait_milliseconds)))


def refusal(status: grpc.Status, *trailing: tuple[str, str]) -> grpc.aio.AioRpcError:
    """Return what a call is refused by, as it is raised at callers in any process."""
    metadata = grpc.aio.Metadata(*status.trailing_metadata, *trailing)
    return grpc.aio.AioRpcError(status.code, grpc.aio.Metadata(), metadata, details=status.details)


async def end_call(context: Context, refused: grpc.aio.AioRpcError) -> NoReturn:
    """End a call of gRPC by a refusal."""
    await context.abort(refused.code(), refused.details() or "", tuple(refused.trailing_metadata()))
    raise AssertionError("abort always raises")


def _held(error: errors.BudgetHeld) -> grpc.Status:
    wait = Duration()
    wait.FromMilliseconds(HELD_MILLISECONDS)
    info = ErrorInfo(reason="BUDGET_HELD", domain=DOMAIN, metadata=_metadata(error.shortfalls))
    return status_of(grpc.StatusCode.UNAVAILABLE, str(error), info, RetryInfo(retry_delay=wait))


def _too_much_sql(error: errors.TooMuchSql) -> grpc.Status:
    wait = Duration()
    wait.FromMilliseconds(HELD_MILLISECONDS)
    info = ErrorInfo(reason="TOO_MUCH_SQL", domain=DOMAIN)
    return status_of(grpc.StatusCode.RESOURCE_EXHAUSTED, error.problem, info, RetryInfo(retry_delay=wait))


def _metadata(shortfalls: Sequence[errors.Shortfall]) -> dict[str, str]:
    """Return the first of the shortfalls; nothing if none is known."""
    if not shortfalls:
        return {}
    first = shortfalls[0]
    metadata = {"level": "/".join(first.level), "unit": first.unit}
    metadata |= {"requested": str(first.requested), "remaining": str(first.remaining)}
    if first.refreshes_at is not None:
        metadata["refreshes_at"] = first.refreshes_at.isoformat().replace("+00:00", "Z")
    return metadata


def _exhausted(error: errors.BudgetExhausted) -> grpc.Status:
    metadata = _metadata(error.shortfalls)
    if error.largest_k is not None:
        metadata["largest_k"] = str(error.largest_k)
    quota = QuotaFailure(
        violations=[
            QuotaFailure.Violation(subject=f"{each.name}:{each.unit}", description=str(each))
            for each in error.shortfalls
        ]
    )
    shortfalls = [message_of(budget_pb2.Shortfall, each) for each in error.shortfalls]
    check = budget_pb2.CheckBudgetResponse(shortfalls=shortfalls)
    info = ErrorInfo(reason="BUDGET_EXHAUSTED", domain=DOMAIN, metadata=metadata)
    return status_of(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error), info, quota, check)


def _service_refused(error: errors.ServiceRefused) -> grpc.Status:
    if error.reason == "CATALOG_CHANGED":
        message = "page_token: the policy has been replaced since the first page; begin again"
        return _status(grpc.StatusCode.FAILED_PRECONDITION, "CATALOG_CHANGED", message)
    return _logged(
        grpc.StatusCode.FAILED_PRECONDITION, "REFUSED", "the question cannot be answered; ask the operator"
    )(error)


def _charged_unanswered(error: errors.ChargedUnanswered) -> grpc.Status:
    fields = {"error": type(error).__name__, "problem": str(error)}
    log.warning("A question failed.", extra={"event": "question.failed", "fields": fields})
    if error.__cause__ is not None:
        log_internal_error(log, "The gateway failed.", error.__cause__)
    information, calls = error.charged
    # What ended it, which the first part of the error's text says, only the operator may know.
    shown = errors.ChargedUnanswered("the question cannot be answered now", information, calls)
    metadata = {"information": str(information), "calls": str(calls)}
    info = ErrorInfo(reason="CHARGED_UNANSWERED", domain=DOMAIN, metadata=metadata)
    # Not UNAVAILABLE, which clients retry: each try would be charged.
    return status_of(grpc.StatusCode.ABORTED, str(shown), info)


def _not_recorded(error: errors.ReleaseNotRecorded) -> grpc.Status:
    # The text says what the owner of the table can do.
    return _logged(grpc.StatusCode.INTERNAL, "INTEGRITY", str(error))(error)


def _logged(code: grpc.StatusCode, reason: str, message: str) -> Callable[[Any], grpc.Status]:
    def report(error: Exception) -> grpc.Status:
        # These texts contain no secrets, but name the upstream that failed, which only the operator may know.
        fields = {"error": type(error).__name__, "problem": str(error)}
        log.warning("A question failed.", extra={"event": "question.failed", "fields": fields})
        return _status(code, reason, message)

    return report


def _status(code: grpc.StatusCode, reason: str, message: str) -> grpc.Status:
    return status_of(code, message, ErrorInfo(reason=reason, domain=DOMAIN))


_UNAVAILABLE = _logged(
    grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "the question cannot be answered now; nothing was charged"
)

# Of an account that a caller may not name, whether or not it exists.
_OUT_OF_REACH = _status(
    grpc.StatusCode.PERMISSION_DENIED,
    "ACCOUNT_OUT_OF_REACH",
    "account: expected the caller's own account, or one below it where the gateway's rules allow that; name no "
    "account (leave out --account) to ask for your own",
)

# The first kind that fits counts.
_REPORTS: tuple[tuple[type[Exception], Callable[[Any], grpc.Status]], ...] = (
    (RequestError, lambda error: invalid(error.field, str(error))),
    (OutOfReachError, lambda _: _OUT_OF_REACH),
    (errors.InvalidQuestion, lambda error: invalid(error.field, error.problem)),
    (
        errors.RefusedByPolicy,
        lambda error: status_of(
            grpc.StatusCode.PERMISSION_DENIED,
            str(error),
            ErrorInfo(reason="REFUSED_BY_POLICY", domain=DOMAIN, metadata={"rule": error.rule}),
        ),
    ),
    (errors.BudgetExhausted, _exhausted),
    (errors.BudgetHeld, _held),
    (errors.ChargedUnanswered, _charged_unanswered),
    (
        errors.AccountUnknown,
        lambda _: _status(grpc.StatusCode.NOT_FOUND, "ACCOUNT_UNKNOWN", "this account has no budget"),
    ),
    (
        errors.OutcomeUnknown,
        _logged(
            grpc.StatusCode.UNAVAILABLE,
            "OUTCOME_UNKNOWN",
            "there is no result, and the question may have been charged; where answers repeat, asking again is free",
        ),
    ),
    (errors.TooMuchSql, _too_much_sql),
    (errors.ServiceRefused, _service_refused),
    (errors.ServiceError, _UNAVAILABLE),
    (errors.ReleaseStoreFailed, _UNAVAILABLE),
    (
        errors.EngineRefused,
        _logged(
            grpc.StatusCode.FAILED_PRECONDITION,
            "REFUSED",
            "the question cannot be answered; ask the operator",
        ),
    ),
    (
        errors.DataChanged,
        _logged(
            grpc.StatusCode.UNAVAILABLE,
            "UNAVAILABLE",
            "the data are being replaced; nothing was charged, ask again later",
        ),
    ),
    (errors.EngineError, _UNAVAILABLE),
    (errors.ReleaseNotRecorded, _not_recorded),
    (
        errors.IntegrityError,
        _logged(grpc.StatusCode.INTERNAL, "INTEGRITY", "the answer could not be trusted; ask the operator"),
    ),
)
