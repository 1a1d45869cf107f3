"""What the ledger counts, over real processes: units, reservations, commits, components."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as admin_pb
from gris_api.budget.v1 import admin_pb2_grpc
from gris_api.budget.v1 import budget_pb2 as pb
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from budget_service.ledger.values import Account, Cost
from budget_service.server.metrics import LedgerMetrics
from budget_service.stores.sqlite.store import SqliteStore
from tests.observability.world import scraped
from tests.support.budget_client import account, charging, connected, cost, failure, new_id, reserving
from tests.support.budget_process import command, health, health_becomes, refused
from tests.support.budget_samples import ANALYST, SteppedClock, charge
from tests.support.ledger_stores import empty
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer, redis_server

SERVING = 1
STORE = "gris.budget.v1.BudgetService/store"


class Counted:
    """A service that counts."""

    def __init__(self, folder: Path, store: str, *more: str) -> None:
        arguments = command(folder, store, "--metrics-listen", "127.0.0.1:0", *more)
        with (folder / "log").open("a") as log:
            self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        ready = json.loads(self._process.stdout.readline())
        self.address, self._metrics = ready["address"], ready["metrics_address"]
        self.admin_address = ready.get("admin_address", "")

    def value(self, name: str, **labels: str) -> float:
        """Return a sample, 0 if there is none."""
        for family in text_string_to_metric_families(scraped(self._metrics)):
            for sample in family.samples:
                if (sample.name, sample.labels) == (name, labels):
                    return float(sample.value)
        return 0

    def units(self, operation: str, outcome: str) -> tuple[float, float]:
        """Return information and calls of one operation and outcome."""
        return (
            self.value("gris_budget_units_total", operation=operation, outcome=outcome, unit="information"),
            self.value("gris_budget_units_total", operation=operation, outcome=outcome, unit="calls"),
        )

    async def becomes(self, holds: Callable[[], bool]) -> None:
        """Wait until the metrics say so."""
        async with asyncio.timeout(20):
            while not holds():  # noqa: ASYNC110 - a process cannot set an event
                await asyncio.sleep(0.1)

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        assert self._process.wait(30) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.mark.usefixtures("starts_processes")
async def test_units_are_counted_by_what_became_of_them(tmp_path: Path) -> None:
    """Granted once, replayed as often as repeated, refused, free when paid for, given back."""
    with Counted(tmp_path, f"sqlite:{tmp_path}/ledger.db") as ledger:
        async with connected(ledger.address) as stub:
            hold = reserving(cost(8, 2), query_id="q", request_id="r")
            held = await stub.ReserveBudget(hold)
            await stub.ReserveBudget(hold)
            await ledger.becomes(lambda: ledger.value("gris_budget_open_reservations") == 1)
            settle = charging(cost(5, 1), reservation_id=held.reservation_id, query_id="q", release_id="x")
            await stub.UpdateBudget(settle)
            free = await stub.ReserveBudget(reserving(cost(8, 2), query_id="q"))
            await failure(stub.ReserveBudget(reserving(cost(2_000_000, 0), query_id="other")))
            other = await stub.ReserveBudget(reserving(cost(7, 1), query_id="third"))
            for each in (free, other):
                await stub.ReleaseReservation(
                    pb.ReleaseReservationRequest(
                        account=account(), reservation_id=each.reservation_id, request_id=new_id()
                    )
                )
        assert ledger.units("reserve", "granted") == (8 + 7, 2 + 1)
        assert ledger.units("reserve", "replayed") == (8, 2)
        assert ledger.units("reserve", "already_paid") == (8, 2)
        assert ledger.units("reserve", "refused") == (2_000_000, 0)
        assert ledger.units("charge", "granted") == (5, 1)
        assert ledger.units("release", "granted") == (7, 1)
        await ledger.becomes(lambda: ledger.value("gris_budget_open_reservations") == 0)


async def test_whose_time_stands_still_is_known_from_its_last_change(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """The longest of all roots, whichever was charged last; nothing once it continues."""
    registry = CollectorRegistry()
    metrics = LedgerMetrics(registry)
    seen: asyncio.Queue[float | None] = asyncio.Queue()

    def committed(*commit: Any) -> None:
        metrics.committed(*commit)
        seen.put_nowait(registry.get_sample_value("gris_budget_time_stands_still_seconds"))

    store = SqliteStore.open(tmp_path / "ledger.db", clock=clock, committed=committed)
    other = Account(("other", "bob"))
    charges = ((ANALYST, 40, 0), (ANALYST, -40, 40), (other, 0, 40), (ANALYST, 10, 30), (ANALYST, 31, 0))
    for number, (account_, step, days) in enumerate(charges):
        clock.step(days=step)
        await store.apply(*charge(str(number), Cost(0, 0), account=account_))
        assert await seen.get() == days * 86_400
    await store.close()


@pytest.mark.usefixtures("starts_processes")
async def test_what_administrators_do_is_counted(tmp_path: Path) -> None:
    """Each act by what became of it; those that nobody has asked for are there with a zero."""
    with Counted(tmp_path, f"sqlite:{tmp_path}/ledger.db", "--admin-listen", "127.0.0.1:0") as ledger:

        def acts(act: str) -> list[float]:
            outcomes = ("done", "replayed", "refused")
            return [
                ledger.value("gris_budget_administrator_acts_total", act=act, outcome=each)
                for each in outcomes
            ]

        async with (
            connected(ledger.address) as stub,
            grpc.aio.insecure_channel(ledger.admin_address) as channel,
        ):
            await stub.UpdateBudget(charging())
            admin: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
            named: Any = {"account": account(), "reason": "left"}
            for id_ in ("close", "close"):
                await admin.CloseAccount(admin_pb.CloseAccountRequest(**named, request_id=id_))
            await failure(admin.CloseAccount(admin_pb.CloseAccountRequest(**named, request_id="again")))
            await admin.ReopenAccount(admin_pb.ReopenAccountRequest(**named, request_id="reopen"))
        assert [1, 1, 1] == acts("close")
        assert [1, 0, 0] == acts("reopen")
        assert [0, 0, 0] == acts("refund") == acts("set_limits")


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
async def test_commits_are_counted_with_all_that_they_had(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The sizes add up to at least the charges, which travelled fewer times than there were charges."""
    if kind == "sqlite":
        store = f"sqlite:{tmp_path}/ledger.db"
    else:
        server: RedisServer | PostgresServer = request.getfixturevalue(f"shared_{kind}")
        # What other tests have charged there counts, and an account that they closed is closed.
        if isinstance(server, PostgresServer):
            server.forget()
        else:
            await empty(server.address)
        store = server.address
    with Counted(tmp_path, store) as ledger:
        async with connected(ledger.address) as stub:
            await asyncio.gather(*(stub.UpdateBudget(charging()) for _ in range(200)))
        assert ledger.value("gris_budget_commit_requests_sum") >= 200
        commits = ledger.value("gris_budget_commit_requests_count")
        assert 0 < commits < 200
        assert ledger.value("gris_budget_commit_seconds_count") == commits
        assert ledger.units("charge", "granted") == (200 * cost().information, 200 * cost().calls)


@pytest.mark.usefixtures("starts_redis")
async def test_the_component_that_is_dead_is_named(tmp_path: Path) -> None:
    """By the health check and by the metrics: the store cannot do its part, the server can."""
    with redis_server(tmp_path) as redis, Counted(tmp_path, redis.address) as ledger:
        await health_becomes(ledger.address, SERVING)
        assert await health(ledger.address, STORE) == SERVING
        redis.kill()
        await ledger.becomes(lambda: ledger.value("gris_component_serving", component="store") == 0)
        assert await health(ledger.address, STORE) != SERVING
        assert ledger.value("gris_component_serving", component="server") == 1


@pytest.mark.usefixtures("starts_processes")
def test_metrics_cannot_be_shown_where_somebody_listens(tmp_path: Path) -> None:
    """Exit code 2, one line."""
    with Counted(tmp_path, f"sqlite:{tmp_path}/ledger.db") as ledger:
        more = ("--metrics-listen", ledger.address)
        code, said = refused(tmp_path, f"sqlite:{tmp_path}/other.db", *more)
    assert (code, f"cannot listen on {ledger.address} for metrics" in said) == (2, True)
    assert said.count("\n") == 1
