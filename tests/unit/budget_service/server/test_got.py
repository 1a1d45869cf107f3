"""An error of a field says what the field held, and quotes no name, reason or ticket."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

from budget_service.server.failure_detector import FailureDetector
from budget_service.server.got import got
from budget_service.server.hosting import administering, serving
from tests.support.budget_client import connected, failure
from tests.support.budget_samples import SteppedClock
from tests.unit.budget_service.limit_settings import SETTINGS
from tests.unit.budget_service.memory_store import MemoryStore

NAME = "SECRET" * 20


def changed(**fields: Any) -> admin_pb2.SetLimitsRequest:
    """Return a change of one limit."""
    limit = admin_pb2.Limit(mode="MODE_ENFORCE", period="PERIOD_MONTH", zone="Europe/Belin")
    change = admin_pb2.LimitChange(path=["acme", NAME], limit=limit)
    return admin_pb2.SetLimitsRequest(**({"request_id": "r", "reason": NAME, "changes": [change]} | fields))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("changes", "1 entry"),
        ("changes[0].path", "2 entries"),
        ("changes[0].path[1]", "120 characters"),
        ("changes[0].limit.zone", "Europe/Belin"),
        ("changes[0].limit.mode", "MODE_ENFORCE"),
        ("changes[0].limit.sliding_days", "0"),
        ("changes[0].limit", ""),
        ("reason", "120 characters"),
        ("changes[7].path", ""),
        ("changes[0].nothing.path", ""),
        ("no such field", ""),
    ],
)
def test_what_stands_at_a_path_is_described(path: str, said: str) -> None:
    """Numbers and what a table of choices has are quoted; texts that may be names are counted."""
    assert said == got(changed(), path)


def test_durations_bytes_and_other_alphabets_are_described() -> None:
    """Also those that cannot be written as text."""
    request = budget_pb2.ReserveBudgetRequest(
        account={"path": ["größe"]}, ttl={"seconds": 10**12, "nanos": 5}
    )
    charge = budget_pb2.UpdateBudgetRequest(charge_ticket=b"SECRET")
    assert ("1e+12 seconds", "5 characters, 7 bytes") == (
        got(request, "ttl"),
        got(request, "account.path[0]"),
    )
    assert ("6 bytes", "nothing") == (got(charge, "charge_ticket"), got(charge, "cost"))
    unknown = changed()
    unknown.changes[0].limit.mode = 9  # type: ignore[assignment]  # a newer client's
    unknown.changes[0].limit.zone = "no\nzone"
    assert ("9", "7 characters") == (
        got(unknown, "changes[0].limit.mode"),
        got(unknown, "changes[0].limit.zone"),
    )


async def test_callers_and_administrators_hear_it(clock: SteppedClock) -> None:
    """In the message and in the violation of the field alike."""
    store = MemoryStore(clock)
    async with serving(store, SETTINGS, "127.0.0.1:0") as address, connected(address) as stub:
        account = {"path": ["acme", f"{NAME}/"]}
        refused = await failure(stub.GetBudget(budget_pb2.GetBudgetRequest(account=account)))
    assert refused.message.endswith("; got 121 characters")
    assert NAME not in refused.message
    async with (
        administering(store, SETTINGS, "127.0.0.1:0", detector=FailureDetector(store)) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        admin: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        empty = await failure(admin.SetLimits(changed(changes=[])))
        page = await failure(admin.ListCharges(admin_pb2.ListChargesRequest(page_size=-1)))
        report = admin_pb2.GetUsageReportRequest(
            account={"path": ["acme"]}, depth=1, days=1, call_limits=[3, -5]
        )
        curve = await failure(admin.GetUsageReport(report))
    assert empty.message.endswith("; got 0 entries")
    assert (curve.fields, curve.message.endswith("; got -5")) == (("call_limits[1]",), True)
    assert (page.fields, page.message.endswith("; got -1")) == (("page_size",), True)
