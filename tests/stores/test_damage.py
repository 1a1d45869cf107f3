"""A ledger that holds what nobody may have written: the store is at fault, never its caller, and health says so."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
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

from budget_service.server.hosting import LEDGER, STORE, administering, serving
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import Store
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from gris_serving.instrumentation import Instrumentation
from gris_serving.metrics import Readiness
from tests.support.budget_client import charging, connected, failure
from tests.support.budget_process import NOT_SERVING, SERVING, health, health_becomes
from tests.support.budget_samples import SteppedClock
from tests.support.ledger_stores import UNHURRIED
from tests.support.log_events import everything_logged, logged_events
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer
from tests.unit.budget_service.served import SETTINGS, Stub

PAGE_BYTES = 4096
COPY = "INSERT INTO journal SELECT ?1, root, ?1, json_set(text, '$.cost[0]', ?2) FROM journal WHERE entry = 1"
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
    ledger, registry = Ledger(store), CollectorRegistry()
    instrumentation = Instrumentation(readiness=Readiness(registry))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        serving_ = serving(ledger, SETTINGS, "127.0.0.1:0", instrumentation=instrumentation)
        address = await stack.enter_async_context(serving_)
        administering_ = administering(ledger, SETTINGS, "127.0.0.1:0")
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


def changed(path: Path, statement: str, *values: int | str) -> None:
    """Change a ledger by hand."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def unreadable_in(server: PostgresServer, statement: str) -> None:
    """Change a ledger in PostgreSQL by hand; its journal refuses it otherwise."""
    server.execute("ALTER TABLE gris.journal DISABLE TRIGGER USER")
    server.execute(statement)


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
    await asyncio.to_thread(zeroed, path, "rows")
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
    changed(path, "UPDATE rows SET text = json_set(text, '$[3][1]', -31337) WHERE key = 'balances\tacme/ann'")
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


TRIM = pb.TrimJournalRequest(account=budget_pb2.Account(path=["acme"]), exported="1")


async def test_a_journal_that_adds_up_to_no_sum_differs(tmp_path: Path) -> None:
    """Entries whose sum is beyond 64 bits are no fault of who verifies or trims it."""
    path = tmp_path / "ledger.db"
    await charged(path, ANN)
    for number in (10, 11):
        changed(path, COPY, number, 2**63 - 2)
    async with served(SqliteStore.open(path, SteppedClock())) as running:
        assert (await running.admin.VerifyLedger(pb.VerifyLedgerRequest())).different > 0
        refused = await failure(running.admin.TrimJournal(TRIM))
    assert (refused.code, refused.info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "LEDGER_DIFFERS")


FORGED = {
    "a currency without its beginning": ("kind", "currency"),
    "a move to nowhere": ("kind", "move"),
    "a limit that is none": ("kind", "limit"),
    "another kind": ("kind", "gift"),
    "no account's level": ("holds", [[0, 1]]),
    "a level below": ("holds", [[3, 1]]),
    "twice on one level": ("holds", [[1, 1], [1, 2]]),
    "no list": ("holds", 7),
}


@pytest.mark.slow
@pytest.mark.parametrize("forged", list(FORGED.values()), ids=list(FORGED))
async def test_an_entry_that_the_rules_cannot_have_written_is_named(
    tmp_path: Path, forged: tuple[str, Any]
) -> None:
    """Verifying, reading and trimming report its number, and the log says that the ledger is damaged."""
    path, (column, value) = tmp_path / "ledger.db", forged
    await charged(path, ANN, BOB)
    changed(path, "DROP TRIGGER journal_is_not_changed")
    forging = "UPDATE journal SET text = json_set(text, ?, json(?)) WHERE entry = 2"
    changed(path, forging, f"$.{column}", json.dumps(value))
    root = budget_pb2.Account(path=["acme"])
    async with served(SqliteStore.open(path, SteppedClock())) as running:
        for call in (
            running.admin.VerifyLedger(pb.VerifyLedgerRequest()),
            running.admin.TrimJournal(TRIM),
            running.admin.ReadJournal(pb.ReadJournalRequest(under=root)),
        ):
            found = await failure(call)
            assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
            assert found.info.metadata == {"table": "journal", "key": "2"}
        assert running.component("ledger") == 0
        await running.stub.UpdateBudget(charging(path=ANN, request_id="goes on"))


UNREADABLE_IN_SQLITE = {
    "balances": "UPDATE rows SET text = json_set(text, '$[2][0]', 'fortnight') WHERE key LIKE 'balances%'",
    "outcomes": "UPDATE rows SET text = json_set(text, '$.outcome', json('[]')) WHERE key LIKE 'outcomes%'",
    "limits": "INSERT INTO rows VALUES ('acme', 'limits\tacme/ann', '\"plenty\"', NULL)",
    "days": "INSERT INTO rows VALUES ('acme', 'days\tacme/ann\t1', '{\"start\":1,\"end\":2,\"spent\":[-1,0]}', NULL)",
    "bases": "INSERT INTO rows VALUES ('acme', 'bases', 'x', NULL)",
}


@pytest.mark.slow
@pytest.mark.parametrize("table", list(UNREADABLE_IN_SQLITE))
async def test_a_row_that_cannot_be_read_is_named_whatever_table_it_is_in(tmp_path: Path, table: str) -> None:
    """A caller whose request needs the row gets no answer and no details."""
    path = tmp_path / "ledger.db"
    await charged(path, ANN)
    changed(path, UNREADABLE_IN_SQLITE[table])
    changed(path, "UPDATE rows SET text = json_set(text, '$.record.limits_version', 7) WHERE key = 'roots'")
    async with served(SqliteStore.open(path, SteppedClock())) as running:
        verifying = running.admin.VerifyLedger(pb.VerifyLedgerRequest())
        if table == "outcomes":
            # Nothing that is verified rests on them.
            verifying = running.admin.RefundCharge(
                pb.RefundChargeRequest(
                    account=budget_pb2.Account(path=ANN), release_id="rel", reason="wrong", request_id="ann"
                )
            )
        found = await failure(verifying)
        assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
        assert table == found.info.metadata["table"]
        assert running.component("ledger") == 0
        if table not in {"days", "bases"}:
            request_id = "ann" if table == "outcomes" else "again"
            refused = await failure(running.stub.UpdateBudget(charging(path=ANN, request_id=request_id)))
            assert (refused.code, refused.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")


UNREADABLE_IN_REDIS = {
    "balances": "acme/ann",
    "reservations": "r",
    "limits": "acme/ann",
    "days": "acme/ann\t1",
    "journal": "",
    "bases": "",
}


@pytest.mark.parametrize("table", list(UNREADABLE_IN_REDIS))
async def test_a_row_of_redis_that_cannot_be_read_is_named(own_redis: RedisServer, table: str) -> None:
    """Verification says which; it is no fault of the service."""
    client: Any = Redis.from_url(own_redis.address, decode_responses=True)
    async with served(await RedisStore.open(own_redis.address, clock=SteppedClock())) as running:
        await running.stub.UpdateBudget(charging(path=ANN, request_id="first"))
        name = f"{table}\t{UNREADABLE_IN_REDIS[table]}".strip()
        if table == "journal":
            await client.xadd("gris:{acme}:journal", {"entry": "damaged"}, id="2-0")
        else:
            await client.set(f"gris:{{acme}}:row:{name}", "damaged")
            await client.zadd("gris:{acme}:names", {name: 0})
        found = await failure(running.admin.VerifyLedger(pb.VerifyLedgerRequest()))
        assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
        assert table == found.info.metadata["table"]
        assert running.component("ledger") == 0
    await client.aclose()


UNREADABLE_IN_POSTGRES = {
    "balances": "UPDATE gris.rows SET text = jsonb_set(text::jsonb, '{2,0}', '7') WHERE key LIKE 'balances%'",
    "limits": "INSERT INTO gris.rows VALUES ('acme', E'limits\\tacme/ann', 'plenty')",
    "journal": "UPDATE gris.journal SET text = replace(text, '\"direct\"', '\"gift\"')",
    "bases": "INSERT INTO gris.rows VALUES ('acme', 'bases', 'x')",
}


@pytest.mark.parametrize("table", list(UNREADABLE_IN_POSTGRES))
async def test_a_row_of_postgresql_that_cannot_be_read_is_named(
    shared_postgres: PostgresServer, table: str
) -> None:
    """Verification says which; it is no fault of the service."""
    shared_postgres.forget()
    store = await PostgresStore.open(shared_postgres.address, clock=SteppedClock(), tuning=UNHURRIED)
    async with served(store) as running:
        await running.stub.UpdateBudget(charging(path=ANN, request_id="first"))
        await asyncio.to_thread(unreadable_in, shared_postgres, UNREADABLE_IN_POSTGRES[table])
        found = await failure(running.admin.VerifyLedger(pb.VerifyLedgerRequest()))
        assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
        assert table == found.info.metadata["table"]
        assert running.component("ledger") == 0


async def test_a_negative_balance_in_redis_is_no_fault_of_who_asks(own_redis: RedisServer) -> None:
    """Verification names the balance that cannot be read; a caller gets no answer, and the metric says so."""
    client: Any = Redis.from_url(own_redis.address, decode_responses=True)
    async with served(await RedisStore.open(own_redis.address, clock=SteppedClock())) as running:
        await running.stub.UpdateBudget(charging(path=ANN, request_id="first"))
        balance = json.loads(await client.get("gris:{acme}:row:balances\tacme/ann"))
        balance[3][0] = -5
        await client.set("gris:{acme}:row:balances\tacme/ann", json.dumps(balance))
        found = await failure(running.admin.VerifyLedger(pb.VerifyLedgerRequest()))
        assert (found.code, found.info.reason) == (grpc.StatusCode.DATA_LOSS, "LEDGER_DAMAGED")
        assert found.info.metadata == {"table": "balances", "key": "acme/ann"}
        asked = running.stub.GetBudget(budget_pb2.GetBudgetRequest(account=budget_pb2.Account(path=ANN)))
        refused = await failure(asked)
        assert (refused.code, refused.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        refused = await failure(running.stub.UpdateBudget(charging(path=ANN, request_id="second")))
        assert (refused.code, refused.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert running.component("ledger") == 0
    await client.aclose()
