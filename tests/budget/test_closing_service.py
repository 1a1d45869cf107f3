"""Closing and moving accounts over real servers: what administrators are answered, and what callers then get."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
import pytest_asyncio
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2
from gris_api.budget.v1.budget_pb2 import Account, CheckBudgetRequest, GetBudgetRequest

from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import administering, serving
from budget_service.stores.interface import Store
from budget_service.tuning import Tuning
from tests.budget.served import SETTINGS
from tests.support.budget_client import account, cancelling, charging, connected, cost, failure, reserving

EVE = ("acme", "eve")
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


@dataclass(frozen=True)
class Servers:
    """The service for callers, and the administrator's."""

    budget: Any
    admin: Any


@pytest_asyncio.fixture
async def servers(any_store: Store, tuning: Tuning) -> AsyncIterator[Servers]:
    """Serve both on each store."""
    detector = FailureDetector(any_store)
    async with (
        serving(any_store, SETTINGS, "127.0.0.1:0") as address,
        administering(any_store, SETTINGS, "127.0.0.1:0", detector=detector, tuning=tuning) as admin_address,
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


def moving(**fields: Any) -> pb.MoveAccountRequest:
    """Return a request to move."""
    given: dict[str, Any] = {"account": account(), "target": Account(path=EVE), "reason": "new ids"}
    return pb.MoveAccountRequest(**(given | {"request_id": "move"} | fields))


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


async def test_a_moved_account_is_asked_under_its_new_name(servers: Servers) -> None:
    """It has spent what it had, and paid for what it had; the old name is refused."""
    budget, admin = servers.budget, servers.admin
    await budget.UpdateBudget(charging(cost(8, 2), release_id="rel"))
    held = await budget.ReserveBudget(reserving(cost(1, 1)))
    assert not (await admin.MoveAccount(moving())).replayed
    assert (await admin.MoveAccount(moving())).replayed
    late = budget.UpdateBudget(charging(cost(1, 1), reservation_id=held.reservation_id))
    assert "ACCOUNT_CLOSED" == await refused(late)
    old = await budget.GetBudget(GetBudgetRequest(account=account()))
    assert (["acme", "ann"], cost(0, 0)) == (list(old.closed_level), old.levels[-1].spent)
    settled = charging(cost(1, 1), path=EVE, reservation_id=held.reservation_id)
    assert cost(9, 3) == (await budget.UpdateBudget(settled)).levels[-1].spent
    assert (await budget.UpdateBudget(charging(cost(8, 2), path=EVE, release_id="rel"))).already_paid
    error = await failure(budget.UpdateBudget(charging(cost(2, 1), path=EVE)))
    assert "BUDGET_EXHAUSTED" == error.info.reason
    listed = (await admin.ListCharges(pb.ListChargesRequest(account={"path": EVE}))).charges
    assert [
        (pb.CHARGE_KIND_DIRECT, ["acme", "ann"], "", []),
        (pb.CHARGE_KIND_MOVE, ["acme", "ann"], "new ids", ["acme", "eve"]),
        (pb.CHARGE_KIND_SETTLED, ["acme", "eve"], "", []),
    ] == [(each.kind, list(each.account.path), each.reason, list(each.moved_to.path)) for each in listed]
    back = pb.RefundChargeRequest(account={"path": EVE}, release_id="rel", reason="wrong", request_id="b")
    assert cost(8, 2) == (await admin.RefundCharge(back)).refunded
    assert 0 == (await admin.VerifyLedger(pb.VerifyLedgerRequest())).different
    for call in (
        admin.CloseAccount(closing()),
        admin.ReopenAccount(reopening()),
        admin.MoveAccount(moving(request_id="home")),
    ):
        assert "ACCOUNT_MOVED" == await refused(call)


async def test_a_move_that_is_refused_says_why(servers: Servers) -> None:
    """Each by its reason; a fault names its field."""
    budget, admin = servers.budget, servers.admin
    assert "NOTHING_TO_MOVE" == await refused(admin.MoveAccount(moving()))
    await budget.UpdateBudget(charging(cost(1, 1)))
    await budget.UpdateBudget(charging(cost(1, 1), path=EVE))
    assert "TARGET_USED" == await refused(admin.MoveAccount(moving(request_id="used")))
    limit = pb.Limit(information=1, calls=1, mode=budget_pb2.MODE_ENFORCE, period=pb.PERIOD_MONTH)
    below = pb.LimitChange(path=["acme", "ann", "below"], limit=limit)
    await admin.SetLimits(pb.SetLimitsRequest(changes=[below], request_id="below"))
    other = Account(path=["acme", "other"])
    assert "HAS_ACCOUNTS_BELOW" == await refused(
        admin.MoveAccount(moving(target=other, request_id="below m"))
    )
    unknown = moving(
        account=Account(path=["acme", "ann", "below"]),
        target=Account(path=["acme", "ann", "x"]),
        request_id="limit",
    )
    # Its stored limit makes the account, whatever it is called.
    assert not (await admin.MoveAccount(unknown)).replayed
    for field, wrong in (
        ("target.path", {"target": Account(path=["acme"])}),
        ("target.path", {"target": Account(path=["other", "ann"])}),
        ("target.path", {"target": account()}),
        ("target.path[1]", {"target": Account(path=["acme", "*"])}),
        ("target.path[1]", {"target": Account(path=["acme", "ev/e"])}),
        ("target.path[1]", {"target": Account(path=["acme", "eve\ufe0f"])}),
        ("account.path", {"account": Account(path=["acme"]), "target": Account(path=["acne"])}),
        ("reason", {"reason": ""}),
        ("reason", {"reason": "two\nlines"}),
        ("reason", {"reason": "x" * 257}),
        ("request_id", {"request_id": ""}),
    ):
        error = await failure(admin.MoveAccount(moving(**({"request_id": "wrong"} | wrong))))
        assert (grpc.StatusCode.INVALID_ARGUMENT, (field,)) == (error.code, error.fields), wrong
    for field, request in (
        ("reason", closing(reason="")),
        ("reason", closing(reason="\u202e")),
        ("request_id", closing(request_id="")),
        ("account.path[1]", closing("acme", "*")),
        # Its budget could not be read, and no audit exported.
        ("account.path[1]", closing("acme", "\ufe0f")),
    ):
        error = await failure(admin.CloseAccount(request))
        assert (grpc.StatusCode.INVALID_ARGUMENT, (field,)) == (error.code, error.fields)


@pytest.mark.parametrize("any_store", ["memory"], indirect=True)
async def test_an_account_moves_only_to_a_name_that_is_known(servers: Servers) -> None:
    """Else nobody could use what it has left."""
    await servers.budget.UpdateBudget(charging(cost(1, 1), path=("watched",)))
    limit = pb.Limit(information=1, calls=1, mode=budget_pb2.MODE_ENFORCE, period=pb.PERIOD_MONTH)
    setting = pb.LimitChange(path=["watched", "ann"], limit=limit)
    await servers.admin.SetLimits(pb.SetLimitsRequest(changes=[setting], request_id="set"))
    ann, eve = ("watched", "ann"), ("watched", "eve")
    await servers.budget.UpdateBudget(charging(cost(1, 1), path=ann))
    removal = pb.LimitChange(path=ann)
    await servers.admin.SetLimits(pb.SetLimitsRequest(changes=[removal], request_id="remove"))
    request = moving(account=Account(path=ann), target=Account(path=eve))
    error = await failure(servers.admin.MoveAccount(request))
    assert (grpc.StatusCode.NOT_FOUND, "ACCOUNT_UNKNOWN", "target") == (
        error.code,
        error.info.reason,
        error.info.metadata["field"],
    )
