"""Every error of dp_service as a gRPC status with details; no other module knows both.

Messages name the field and what was expected. They never contain a count, an element, a literal of a question, a key or
the text of an engine's error.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import grpc
from google.protobuf import any_pb2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.releases.histogram import HistogramError
from dp_service.releases.kinds import UnusableParametersError
from dp_service.releases.plan import PlanError
from dp_service.server.admission import RETRY_SECONDS, OverloadedError
from dp_service.server.sql_admission import TooMuchSqlError

DOMAIN = "gris.dp"


class RequestError(Exception):
    """A request that is malformed in `field`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class DataChangedError(Exception):
    """The data changed between translation and query."""

    reason = "DATA_CHANGED"

    def __init__(self) -> None:
        super().__init__(
            "header.data_version: expected the version that was translated for; translate the question again"
        )


class UnitMismatchError(Exception):
    """A budget in another currency than this deployment's."""

    reason = "UNIT_MISMATCH"

    def __init__(self) -> None:
        super().__init__("unit_id: expected the currency of this deployment's policy")


class CatalogChangedError(Exception):
    """A page of a catalogue that has been replaced since its first page."""

    reason = "CATALOG_CHANGED"

    def __init__(self) -> None:
        super().__init__("page_token: the policy has been replaced since the first page; begin again")


class ReleaseNotAuthenticError(Exception):
    """A kept release that is not the plan's, or that this deployment did not make."""

    reason = "RELEASE_NOT_AUTHENTIC"

    def __init__(self) -> None:
        super().__init__("release: expected the release of the plan's question, with its charge_ticket")


EXPECTED_ERRORS = (
    QuestionError,
    RefusedByPolicyError,
    HistogramError,
    RequestError,
    PlanError,
    DataChangedError,
    UnusableParametersError,
    UnitMismatchError,
    CatalogChangedError,
    ReleaseNotAuthenticError,
    OverloadedError,
    TooMuchSqlError,
)


_BUSY = {
    OverloadedError: (code_pb2.UNAVAILABLE, "OVERLOADED"),
    TooMuchSqlError: (code_pb2.RESOURCE_EXHAUSTED, "TOO_MUCH_SQL"),
}


def is_expected_error(error: Exception) -> bool:
    """Whether an error has a text that was written for clients."""
    return isinstance(error, EXPECTED_ERRORS)


def status_of(error: Exception) -> grpc.Status:
    """Return the status that a client sees for an error; an internal error shows nothing of its text."""
    match error:
        case QuestionError() | HistogramError() | RequestError():
            return _invalid(error.field, str(error))
        case RefusedByPolicyError():
            return _status(code_pb2.PERMISSION_DENIED, "REFUSED_BY_POLICY", str(error), {"rule": error.rule})
        case (
            UnusableParametersError()
            | UnitMismatchError()
            | CatalogChangedError()
            | DataChangedError()
            | ReleaseNotAuthenticError()
        ):
            return _status(code_pb2.FAILED_PRECONDITION, error.reason, str(error))
        case PlanError():
            return _status(code_pb2.FAILED_PRECONDITION, error.fault.value, str(error))
        case OverloadedError() | TooMuchSqlError():
            retry = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS))
            return _status(*_BUSY[type(error)], str(error), {}, retry)
        case _:
            return _status(code_pb2.INTERNAL, "INTERNAL", "dp_service failed; its log says where")


def _invalid(field: str, message: str) -> grpc.Status:
    violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=message)
    return _status(
        code_pb2.INVALID_ARGUMENT,
        "INVALID_ARGUMENT",
        f"{field}: {message}",
        {"field": field},
        error_details_pb2.BadRequest(field_violations=[violation]),
    )


def _status(
    code: int,
    reason: str,
    message: str,
    metadata: Mapping[str, str] = MappingProxyType({}),
    *details: Message,
) -> grpc.Status:
    info = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=dict(metadata))
    packed = [_packed(info), *(_packed(detail) for detail in details)]
    return rpc_status.to_status(status_pb2.Status(code=code, message=message, details=packed))


def _packed(detail: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
