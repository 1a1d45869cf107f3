"""Closing accounts over real servers: what administrators are answered, and what callers then get."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest_asyncio
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc
from gris_api.budget.v1.budget_pb2 import Account, CheckBudgetRequest, GetBudgetRequest

from budget_service.server.hosting import administering, serving
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import Store
from budget_service.tuning import Tuning
from tests.support.budget_client import account, cancelling, charging, connected, cost, failure, reserving
from tests.unit.budget_service.served import SETTINGS

PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


@dataclass(frozen=True)
class Servers:
    """The service for callers, and the administrator's."""

    budget: Any
    admin: Any


@pytest_asyncio.fixture
async def servers(any_store: Store, tuning: Tuning) -> AsyncIterator[Servers]:
    """Serve both on each store."""
    ledger = Ledger(any_store)
    async with (
        serving(ledger, SETTINGS, "127.0.0.1:0") as address,
        administering(ledger, SETTINGS, "127.0.0.1:0", tuning=tuning) as admin_address,
        connected(address) as budget,
        grpc.aio.insecure_channel(admin_address) as channel,
    ):
        yield Servers(budget, admin_pb2_grpc.BudgetAdminServiceStub(channel))


def closing(*path: str, **fields: Any) -> pb.CloseAccountRequest:
    """Return a request to close."""
    given: dict[str, Any] = {"account": Account(path=path or ("acme", "ann")), "reason": "left"}
    return pb.CloseAccountRequest(**(given | {"request_id": "close"} | fields))


def reopening(*path: str, **fields: Any) -> pb.ReopenAccountRequest:
    """Return a request to open again."""
    given: dict[str, Any] = {"account": Account(path=path or ("acme", "ann")), "reason": "is back"}
    return pb.ReopenAccountRequest(**(given | {"request_id": "reopen"} | fields))


async def refused(call: Any) -> str:
    """Return the reason of a precondition that failed."""
    error = await failure(call)
    assert error.code is PRECONDITION
    return str(error.info.reason)


async def test_a_closed_account_is_refused_and_still_read(servers: Servers) -> None:
    """In every call that begins anything; a reservation that is open is settled, and another is cancelled."""
    budget, admin = servers.budget, servers.admin
    held = await budget.ReserveBudget(reserving(cost(2, 1)))
    other = await budget.ReserveBudget(reserving(cost(1, 1)))
    assert not (await admin.CloseAccount(closing())).replayed
    assert (await admin.CloseAccount(closing())).replayed
    assert "ACCOUNT_CLOSED" == await refused(admin.CloseAccount(closing(request_id="again")))
    error = await failure(budget.ReserveBudget(reserving(cost(1, 1))))
    assert (PRECONDITION, "ACCOUNT_CLOSED", "gris.budget") == (
        error.code,
        error.info.reason,
        error.info.domain,
    )
    assert "ACCOUNT_CLOSED" == await refused(budget.UpdateBudget(charging(cost(1, 1))))
    checked = await budget.CheckBudget(CheckBudgetRequest(account=account(), cost=cost(1, 1)))
    assert (False, [], ["acme", "ann"]) == (
        checked.allowed,
        list(checked.shortfalls),
        list(checked.closed_level),
    )
    settled = await budget.UpdateBudget(charging(cost(2, 1), reservation_id=held.reservation_id))
    assert cost(2, 1) == settled.charged
    returned = await budget.ReleaseReservation(cancelling(other.reservation_id))
    assert cost(1, 1) == returned.returned
    found = await budget.GetBudget(GetBudgetRequest(account=account()))
    assert ["acme", "ann"] == list(found.closed_level)
    assert [cost(2, 1)] * 2 == [level.spent for level in found.levels]
    await admin.ReopenAccount(reopening())
    assert "ACCOUNT_NOT_CLOSED" == await refused(admin.ReopenAccount(reopening(request_id="open again")))
    await budget.UpdateBudget(charging(cost(1, 1)))
    again = await budget.GetBudget(GetBudgetRequest(account=account()))
    assert [] == list(again.closed_level)
    assert pb.VerifyLedgerResponse(entries=4, balances=2) == await admin.VerifyLedger(
        pb.VerifyLedgerRequest()
    )


async def test_a_closed_company_closes_its_analysts(servers: Servers) -> None:
    """Also one that nobody has used yet; one that the configuration does not know cannot be closed."""
    budget, admin = servers.budget, servers.admin
    await budget.UpdateBudget(charging(cost(1, 1)))
    await admin.CloseAccount(closing("acme"))
    for path in (("acme", "ann"), ("acme", "new")):
        assert "ACCOUNT_CLOSED" == await refused(budget.ReserveBudget(reserving(cost(1, 1), path=path)))
        found = await budget.GetBudget(GetBudgetRequest(account=account(path)))
        assert ["acme"] == list(found.closed_level)
    for unknown in (("acmee",), ("acmee", "ann"), ("acme", "ann", "below")):
        error = await failure(admin.CloseAccount(closing(*unknown, request_id="x")))
        assert (grpc.StatusCode.NOT_FOUND, "ACCOUNT_UNKNOWN") == (error.code, error.info.reason)
    error = await failure(admin.ReopenAccount(reopening("acmee", "ann")))
    assert (grpc.StatusCode.NOT_FOUND, "ACCOUNT_UNKNOWN") == (error.code, error.info.reason)
    verified = await admin.VerifyLedger(pb.VerifyLedgerRequest())
    assert (2, 2) == (verified.entries, verified.balances)


async def test_a_faulty_request_names_its_field(servers: Servers) -> None:
    """And changes nothing."""
    for field, request in (
        ("reason", closing(reason="")),
        ("reason", closing(reason="\u202e")),
        ("request_id", closing(request_id="")),
        ("account.path[1]", closing("acme", "*")),
        # Its budget could not be read, and no audit exported.
        ("account.path[1]", closing("acme", "\ufe0f")),
    ):
        error = await failure(servers.admin.CloseAccount(request))
        assert (grpc.StatusCode.INVALID_ARGUMENT, (field,)) == (error.code, error.fields)
