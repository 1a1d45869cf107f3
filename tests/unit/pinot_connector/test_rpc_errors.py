"""gRPC errors as the connector's own: only what a service says on purpose counts."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from gris_gateway.faces.mcp.failures import failure_of
from gris_gateway.rpc_errors import status_of_error
from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    DataChanged,
    ErrorCode,
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
    TooManyCalls,
)
from pinot_connector.rpc_errors import Service, error_of_rpc

Code = grpc.StatusCode
TEXT_OF_A_CRASH = "count was 4711"


ADDRESS = "ledger.example:50052"


def translated(service: Service, error: grpc.RpcError) -> GrisError:
    """Return the error of a call to an address."""
    return error_of_rpc(service, error, ADDRESS)


def _error(code: grpc.StatusCode, domain: str = "", reason: str = "", *more: Message) -> grpc.aio.AioRpcError:
    """Returns the error that a client gets for such a status."""
    details = [error_details_pb2.ErrorInfo(domain=domain, reason=reason), *more] if domain else []
    status = status_pb2.Status(code=code.value[0], message=TEXT_OF_A_CRASH)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, TEXT_OF_A_CRASH)


@pytest.mark.parametrize(
    ("service", "code", "reason", "expected"),
    [
        (Service.BUDGET, Code.RESOURCE_EXHAUSTED, "BUDGET_EXHAUSTED", BudgetExhausted),
        (Service.BUDGET, Code.NOT_FOUND, "ACCOUNT_UNKNOWN", AccountUnknown),
        (Service.BUDGET, Code.FAILED_PRECONDITION, "RESERVATION_OVER", ReservationOver),
        (Service.BUDGET, Code.FAILED_PRECONDITION, "RELEASE_MISMATCH", ReleaseNotRecorded),
        (Service.BUDGET, Code.INVALID_ARGUMENT, "COST_ABOVE_RESERVATION", IntegrityError),
        (Service.BUDGET, Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED", ServiceRefused),
        (Service.BUDGET, Code.FAILED_PRECONDITION, "UNIT_MISMATCH", ServiceRefused),
        (Service.BUDGET, Code.UNAVAILABLE, "STORE_UNAVAILABLE", ServiceUnavailable),
        (Service.BUDGET, Code.UNAVAILABLE, "HOME_UNAVAILABLE", HomeUnavailable),
        (Service.BUDGET, Code.UNAVAILABLE, "OVERLOADED", ServiceUnavailable),
        (Service.DP, Code.UNAVAILABLE, "OVERLOADED", TooManyCalls),
        (Service.BUDGET, Code.UNAVAILABLE, "OUTCOME_UNKNOWN", OutcomeUnknown),
        (Service.DP, Code.PERMISSION_DENIED, "REFUSED_BY_POLICY", RefusedByPolicy),
        (Service.DP, Code.INVALID_ARGUMENT, "INVALID_ARGUMENT", InvalidQuestion),
        (Service.DP, Code.FAILED_PRECONDITION, "PLAN_EXPIRED", PlanExpired),
        (Service.DP, Code.FAILED_PRECONDITION, "PLAN_NOT_AUTHENTIC", PlanExpired),
        (Service.DP, Code.FAILED_PRECONDITION, "DATA_CHANGED", DataChanged),
        (Service.DP, Code.FAILED_PRECONDITION, "POLICY_UNUSABLE", ServiceRefused),
        (Service.DP, Code.INTERNAL, "INTERNAL", ServiceFailed),
        (Service.BUDGET, Code.INTERNAL, "INTERNAL", ServiceFailed),
        # Nothing was begun, so the outcome is known.
        (Service.GATEWAY, Code.UNAVAILABLE, "OVERLOADED", TooManyCalls),
        (Service.GATEWAY, Code.UNAVAILABLE, "RATE_LIMITED", TooManyCalls),
        (Service.GATEWAY, Code.UNAVAILABLE, "TOO_MANY_AT_ONCE", TooManyCalls),
    ],
)
def test_a_reason_in_the_services_own_domain_has_one_meaning(
    service: Service, code: grpc.StatusCode, reason: str, expected: type[GrisError]
) -> None:
    """Each reason of the contract becomes one class."""
    domain = {Service.DP: "gris.dp", Service.BUDGET: "gris.budget", Service.GATEWAY: "gris.app"}[service]
    assert type(translated(service, _error(code, domain, reason))) is expected


@pytest.mark.parametrize(
    ("service", "domain"), [(Service.BUDGET, ""), (Service.BUDGET, "gris.dp"), (Service.DP, "gris.budget")]
)
def test_only_the_ledger_can_say_that_a_budget_is_exhausted(service: Service, domain: str) -> None:
    """gRPC says RESOURCE_EXHAUSTED of a large message; that, or another's word, is no spent budget."""
    error = translated(service, _error(Code.RESOURCE_EXHAUSTED, domain, "BUDGET_EXHAUSTED"))
    assert type(error) is ServiceUnavailable


@pytest.mark.parametrize("code", [Code.UNKNOWN, Code.INTERNAL, Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED])
def test_a_lost_answer_leaves_the_outcome_unknown_and_repeats_no_text(code: grpc.StatusCode) -> None:
    """The text of a crash can hold anything, so none of it is repeated."""
    error = translated(Service.BUDGET, _error(code))
    assert type(error) is OutcomeUnknown
    assert TEXT_OF_A_CRASH not in str(error)


@pytest.mark.parametrize(("service", "domain"), [(Service.DP, "gris.dp"), (Service.BUDGET, "gris.budget")])
def test_a_service_that_failed_is_told_from_one_that_does_not_answer(service: Service, domain: str) -> None:
    """An operator looks into its log then, not at the network."""
    error = translated(service, _error(Code.INTERNAL, domain, "INTERNAL"))
    assert f"{service}: the service failed; its log says where" == str(error)
    assert error.code is ErrorCode.UNAVAILABLE


def test_a_policy_that_cannot_be_used_is_named() -> None:
    """The question is not at fault, and no new translation would help."""
    error = translated(Service.DP, _error(Code.FAILED_PRECONDITION, "gris.dp", "POLICY_UNUSABLE"))
    assert "the policy's parameters cannot be used" in str(error)


def test_a_release_that_cannot_be_recorded_tells_nothing_of_the_data() -> None:
    """That the answer is another than the one before would say that the data differ."""
    error = translated(Service.BUDGET, _error(Code.FAILED_PRECONDITION, "gris.budget", "RELEASE_MISMATCH"))
    assert str(error).startswith("the release could not be recorded; ")
    assert not any(word in str(error) for word in ("differ", "changed", "another", "before", "the data "))


def test_a_release_that_cannot_be_recorded_tells_the_owners_way_out() -> None:
    """Without it an account would be locked out of the question for good, and nobody would know what helps."""
    error = translated(Service.BUDGET, _error(Code.FAILED_PRECONDITION, "gris.budget", "RELEASE_MISMATCH"))
    assert "a new data_version of the table in the policy" in str(error)
    status = status_of_error(error)
    assert (status.code, status.details) == (Code.INTERNAL, str(error))


def test_data_that_are_being_replaced_are_told_through_a_gateway() -> None:
    """It is worth another attempt, and nothing is said of which data."""
    status = status_of_error(
        DataChanged("the servers of Pinot are still loading a new version of the table; ask again later")
    )
    assert Code.UNAVAILABLE == status.code
    assert "the data are being replaced; nothing was charged, ask again later" == status.details


def test_a_refusal_whose_details_cannot_be_read_is_still_a_refusal() -> None:
    """The reason says that the budget is spent; a date or a number that is none is left out."""
    info = error_details_pb2.ErrorInfo(
        domain="gris.budget",
        reason="BUDGET_EXHAUSTED",
        metadata={"level": "a", "unit": "calls", "requested": "1", "remaining": "0", "refreshes_at": "soon"},
    )
    error = translated(
        Service.BUDGET, _error(Code.RESOURCE_EXHAUSTED, "gris.budget", "BUDGET_EXHAUSTED", info)
    )
    assert isinstance(error, BudgetExhausted)
    assert error.shortfalls == ()


def test_an_invalid_question_names_its_field() -> None:
    """The error names the first violation of the BadRequest."""
    violation = error_details_pb2.BadRequest.FieldViolation(field="k", description="expected 1 to 100,000")
    bad = error_details_pb2.BadRequest(field_violations=[violation])
    error = translated(Service.DP, _error(Code.INVALID_ARGUMENT, "gris.dp", "INVALID_ARGUMENT", bad))
    assert isinstance(error, InvalidQuestion)
    assert (error.field, str(error)) == ("k", "k: expected 1 to 100,000")


def test_details_that_contradict_the_status_are_not_believed() -> None:
    """A status in the details must be the status of the call."""
    status = status_pb2.Status(code=Code.NOT_FOUND.value[0], message="other")
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    error = grpc.aio.AioRpcError(Code.UNAVAILABLE, grpc.aio.Metadata(), trailing, TEXT_OF_A_CRASH)
    assert type(translated(Service.BUDGET, error)) is OutcomeUnknown


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("failed to connect to all addresses; CERTIFICATE_VERIFY_FAILED: count was 4711", "see ca_file"),
        (
            "failed to connect to all addresses; Hostname Verification Check failed.",
            "another name of the host",
        ),
        ("failed to connect to all addresses; count was 4711", f"gateway: no answer at {ADDRESS}"),
        # As where a service dies.
        ("Socket closed", f"gateway: no answer at {ADDRESS}"),
    ],
)
def test_a_connection_that_was_never_made_says_what_to_look_at(said: str, expected: str) -> None:
    """In words of its own, whatever else gRPC or a server says."""
    error = grpc.aio.AioRpcError(Code.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), said)
    found = translated(Service.GATEWAY, error)
    assert isinstance(found, ServiceUntrusted) is not expected.endswith(ADDRESS)
    assert ("--ca-file" in failure_of(found)["what_to_do"]) is isinstance(found, ServiceUntrusted)
    text = str(found)
    assert text.removesuffix(")").endswith(expected)
    assert "4711" not in text


@pytest.mark.parametrize(("service", "domain"), [(Service.BUDGET, "gris.budget"), (Service.DP, "gris.dp")])
def test_a_role_that_is_missing_is_named(service: Service, domain: str) -> None:
    """Those words are the service's own; of any other reason it has, none are repeated."""
    named = translated(service, _error(Code.PERMISSION_DENIED, domain, "ROLE_MISSING"))
    assert f"{service}: refused the request (ROLE_MISSING): {TEXT_OF_A_CRASH}" == str(named)
    other = translated(service, _error(Code.PERMISSION_DENIED, domain, "TOKEN_REFUSED"))
    assert TEXT_OF_A_CRASH not in str(other)
