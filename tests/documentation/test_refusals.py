"""The table of docs/ledger.md has every reason that budget_service gives, with what it becomes in the connector."""

from __future__ import annotations

import re

import grpc
import pytest
from google.protobuf.any_pb2 import Any as Packed
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from gris_api.budget.v1 import admin_pb2, budget_pb2, regions_pb2

from budget_service.ledger.outcomes import Exhausted, Held, Reason, Refused, Shortfall
from budget_service.ledger.values import Account, InvalidFieldError, Unit
from budget_service.ledger.windows import DAY
from budget_service.server import rpc_errors
from gris_serving.decoding import UNDECODABLE
from gris_serving.slow_callers import UnreadError, UnsentError
from pinot_connector.rpc_errors import Service, error_of_rpc
from tests.support.pages import quoted, rows, section
from tests.support.paths import ROOT
from tests.support.some import some

TABLE = {quoted(cells[0])[0]: cells for cells in rows(section("ledger.md", "## Every reason"), "reason")}
_ACCOUNT = Account(("acme", "ann"))
_SHORTFALL = Shortfall(depth=1, unit=Unit.CALLS, requested=2, remaining=1, refreshes_at=None)
STANDING_STILL = [
    rpc_errors.exhausted(Exhausted(0, (_SHORTFALL,), DAY), _ACCOUNT),
    rpc_errors.held(Held(0, (_SHORTFALL,), DAY), _ACCOUNT),
]
STATUSES = [
    *(rpc_errors.refused(Refused(reason)) for reason in Reason),
    rpc_errors.exhausted(Exhausted(0, (_SHORTFALL,)), _ACCOUNT),
    rpc_errors.held(Held(0, (_SHORTFALL,)), _ACCOUNT),
    *STANDING_STILL,
    rpc_errors.invalid_field(InvalidFieldError("ttl", "must be shorter")),
    rpc_errors.account_unknown(),
    rpc_errors.ticket_not_authentic(),
    rpc_errors.no_backups(),
    rpc_errors.backup_unwritable("No space left on device"),
    rpc_errors.not_lending(),
    rpc_errors.charged_in_region(),
    rpc_errors.region_taken("north"),
    rpc_errors.caller_unnamed(),
    rpc_errors.no_balances(),
    rpc_errors.too_many_statements(1000),
    rpc_errors.accounts_without_end("acme/*"),
    rpc_errors.ledger_differs(),
    rpc_errors.ledger_damaged("balances", "acme/ann"),
    rpc_errors.store_unavailable(),
    rpc_errors.overloaded(),
    rpc_errors.outcome_unknown(),
    rpc_errors.internal(),
]


def source(path: str) -> str:
    """Return the text of a module."""
    return (ROOT / path).read_text()


def from_gris_serving() -> dict[str, Status]:
    """Return a status for each reason that is given before a method of budget_service runs."""
    found = re.findall(r'StatusCode\.(\w+)[^\n]*reason="(\w+)"', source("gris_serving/authorisation.py"))
    found += [(each.code.name, each.reason) for each in (UnsentError, UnreadError)]
    found.append(("INVALID_ARGUMENT", UNDECODABLE.reason))
    return {reason: with_reason(code, reason) for code, reason in found}


def with_reason(code: str, reason: str) -> Status:
    """Return a status of budget_service."""
    detail = Packed()
    detail.Pack(ErrorInfo(reason=reason, domain=rpc_errors.DOMAIN))
    return Status(code=grpc.StatusCode[code].value[0], details=[detail])


def reason_of(status: Status) -> str:
    """Return the reason in a status."""
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    return str(info.reason)


EVERY = {reason_of(status): status for status in STATUSES} | from_gris_serving()


def test_no_reason_of_the_code_was_forgotten_here() -> None:
    """Whatever the modules name as a reason is among the statuses of this test."""
    named = re.findall(r'_(?:info|bad_request)\("(\w+)"', source("budget_service/server/rpc_errors.py"))
    for path in (ROOT / "gris_serving").glob("*.py"):
        named += re.findall(r'reason ?= ?"(\w+)"', path.read_text())
    assert {*named, *(reason.value for reason in Reason)} == EVERY.keys()


def test_the_table_has_the_reasons_that_there_are() -> None:
    """In both directions: no reason is without its row, and no row without its reason."""
    assert EVERY.keys() == TABLE.keys()


@pytest.mark.parametrize("reason", EVERY)
def test_a_reason_has_the_code_that_the_table_has(reason: str) -> None:
    """GRPC's name of the code."""
    assert [code_pb2.Code.Name(EVERY[reason].code)] == quoted(TABLE[reason][1])


@pytest.mark.parametrize("reason", EVERY)
def test_the_table_names_methods_that_there_are(reason: str) -> None:
    """Of both services; a field of a request may stand among them."""
    services = [
        each
        for file in (admin_pb2, budget_pb2, regions_pb2)
        for each in file.DESCRIPTOR.services_by_name.values()
    ]
    known = {each.name for each in services} | {method.name for each in services for method in each.methods}
    assert {each for each in quoted(TABLE[reason][2]) if each[0].isupper()} <= known


@pytest.mark.parametrize("reason", [each for each in EVERY if TABLE.get(each, [""])[-1]])
def test_a_reason_becomes_the_error_that_the_table_has(reason: str) -> None:
    """As the connector translates it, wherever it calls a method that gives it."""
    status = EVERY[reason]
    error = grpc.aio.AioRpcError(
        next(each for each in grpc.StatusCode if each.value[0] == status.code),
        grpc.aio.Metadata(),
        grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString())),
        details=status.message,
    )
    assert type(error_of_rpc(Service.BUDGET, error, "a:1")).__name__ == quoted(TABLE[reason][-1])[0]


def test_only_what_administrators_call_becomes_no_error() -> None:
    """And regions; the connector calls every method of the other service."""
    others = (admin_pb2.DESCRIPTOR, regions_pb2.DESCRIPTOR)
    administrators = {
        method
        for file in others
        for each in file.services_by_name.values()
        for method in each.methods_by_name
    }
    for reason, cells in some(TABLE.items()):
        assert bool(cells[-1]) == (
            not set(quoted(cells[2])) <= administrators or cells[2].startswith("every")
        ), reason


def test_a_refusal_names_the_command_that_lets_time_continue() -> None:
    """Only where time stands still: waiting for a window's end would be in vain."""
    named = [status for status in STATUSES if "gris budget resume-clock" in status.message]
    assert named == STANDING_STILL
