"""A ledger that holds what nobody may have written: the store is at fault, never its caller, and health says so."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2
from prometheus_client import CollectorRegistry
from redis.asyncio import Redis

from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import LEDGER, STORE, administering, serving
from budget_service.stores.interface import Store
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from gris_serving.instrumentation import Instrumentation
from gris_serving.metrics import Readiness
from tests.budget.served import SETTINGS, Stub
from tests.support.budget_client import charging, connected, failure
from tests.support.budget_process import NOT_SERVING, SERVING, health, health_becomes
from tests.support.budget_samples import SteppedClock
from tests.support.log_events import everything_logged, logged_events
from tests.support.redis_server import RedisServer

PAGE_BYTES = 4096
COPY = (
    "INSERT INTO journal SELECT ?, kind, account, ?, calls, unit_id, request_id, release_id, query_id, time, holds, "
    "policy_statement, NULL, NULL, reason FROM journal WHERE entry = 1"
)
ANN, BOB = ("acme", "ann"), ("acme", "bob")


@dataclass
class Served:
    """A ledger that is served to callers and administrators."""

    address: str
    stub: Stub
    admin: Any
    registry: CollectorRegistry

    def component(self, name: str) -> float | None:
        """Return a component's metric."""
        return self.registry.get_sample_value("gris_component_serving", {"component": name})


@asynccontextmanager
async def served(store: Store) -> AsyncIterator[Served]:
    """Serve a ledger, and close it in the end."""
    detector, registry = FailureDetector(store), CollectorRegistry()
    instrumentation = Instrumentation(readiness=Readiness(registry))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        serving_ = serving(store, SETTINGS, "127.0.0.1:0", detector=detector, instrumentation=instrumentation)
        address = await stack.enter_async_context(serving_)
        administering_ = administering(store, SETTINGS, "127.0.0.1:0", detector=detector)
        admin_address = await stack.enter_async_context(administering_)
        stub = await stack.enter_async_context(connected(address))
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(admin_address))
        await health_becomes(address, SERVING)
        yield Served(address, stub, admin_pb2_grpc.BudgetAdminServiceStub(channel), registry)


async def charged(path: Path, *accounts: tuple[str, ...]) -> None:
    """Charge each account once in a ledger in SQLite."""
    async with served(SqliteStore.open(path, SteppedClock())) as running:
        for account in accounts:
            await running.stub.UpdateBudget(charging(path=account, request_id=account[-1]))


def changed(path: Path, statement: str, *values: int) -> None:
    """Change a ledger by hand."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def zeroed(path: Path, table: str) -> None:
    """Write zeros over the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(query, (table,)).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))


async def test_a_page_that_is_lost_while_it_serves_stops_the_service(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Played by a start that does not look: charges are unavailable, health, metric and log say why."""
    path = tmp_path / "ledger.db"
    await charged(path, ANN)
    await asyncio.to_thread(zeroed, path, "outcomes")
    async with served(
        SqliteStore.open(path, SteppedClock(), tuning=Tuning(start_check_seconds=0))
    ) as running:
        assert (1, 1) == (running.component("store"), running.component("ledger"))
        for _ in range(2):
            refused = await failure(running.stub.UpdateBudget(charging(request_id="late")))
            assert (refused.code, refused.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        await health_becomes(running.address, NOT_SERVING)
        assert (NOT_SERVING, SERVING) == (
            await health(running.address, LEDGER),
            await health(running.address, STORE),
        )
        assert running.component("ledger") == 0
    damaged = [fields for event, fields in logged_events(caplog) if event == "ledger.damaged"]
    assert damaged == [{"problem": "the ledger is damaged: database disk image is malformed"}]


async def test_a_row_that_cannot_be_right_is_named_to_administrators_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A negative balance: its account gets nothing, others go on; verification names the row and no amount."""
    path = tmp_path / "ledger.db"
    await charged(path, ANN, BOB)
    changed(path, "UPDATE balances SET spent_calls = -31337 WHERE level = 'acme/ann'")
    async with served(SqliteStore.open(path, SteppedClock())) as running:
        refused = await failure(running.stub.UpdateBudget(charging(path=ANN, request_id="again")))
        assert (refused.code, refused.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert "ann" not in refused.message
        await running.stub.UpdateBudget(charging(path=BOB, request_id="other"))
        await health_becomes(running.address, NOT_SERVING, LEDGER)
        assert (SERVING, 0, 1) == (
            await health(running.address),
            running.component("ledger"),
            running.component("store"),
        )
        found = await failure(running.admin.VerifyLedger(pb.VerifyLedgerRequest()))
    assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
    assert found.info.metadata == {"table": "balances", "key": "acme/ann"}
    assert "31337" not in found.message
    logged = everything_logged(caplog)
    assert "'the ledger is damaged, in balances'" in logged
    assert "acme" not in logged
    assert "31337" not in logged


Method = Callable[[Any], Any]


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.VerifyLedger(pb.VerifyLedgerRequest()),
        lambda admin: admin.SealJournal(pb.SealJournalRequest(account=budget_pb2.Account(path=["acme"]))),
    ],
    ids=["verify", "seal"],
)
async def test_a_journal_that_adds_up_to_no_sum_is_no_fault_of_who_verifies_it(
    tmp_path: Path, call: Method
) -> None:
    """Entries whose sum is beyond 64 bits."""
    path = tmp_path / "ledger.db"
    await charged(path, ANN)
    for number in (10, 11):
        changed(path, COPY, number, 2**63 - 2)
    async with served(SqliteStore.open(path, SteppedClock())) as running:
        found = await failure(call(running.admin))
    assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
    assert found.info.metadata == {"table": "journal", "key": "acme"}


async def test_a_negative_balance_in_redis_is_no_fault_of_who_asks(own_redis: RedisServer) -> None:
    """Verification names the root whose balances cannot be read; a caller gets no answer, and the metric says so."""
    client: Any = Redis.from_url(own_redis.address, decode_responses=True)
    async with served(await RedisStore.open(own_redis.address, clock=SteppedClock())) as running:
        await running.stub.UpdateBudget(charging(path=ANN, request_id="first"))
        parts = (await client.hget("gris:{acme}:balances", "acme/ann")).split(":")
        parts[2] = "-5"
        await client.hset("gris:{acme}:balances", "acme/ann", ":".join(parts))
        found = await failure(running.admin.VerifyLedger(pb.VerifyLedgerRequest()))
        assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
        assert found.info.metadata == {"table": "balances", "key": "acme"}
        asked = running.stub.GetBudget(budget_pb2.GetBudgetRequest(account=budget_pb2.Account(path=ANN)))
        refused = await failure(asked)
        assert (refused.code, refused.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        refused = await failure(running.stub.UpdateBudget(charging(path=ANN, request_id="second")))
        assert (refused.code, refused.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert running.component("ledger") == 0
    await client.aclose()
