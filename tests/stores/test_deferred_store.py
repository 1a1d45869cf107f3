"""A start whose store does not answer: the process stays, is not ready, and serves once the store is there."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc
from gris_api.budget.v1 import budget_pb2 as pb

from tests.support.budget_client import account, charging, connected, cost, failure
from tests.support.budget_process import (
    NOT_SERVING,
    SERVING,
    health,
    health_becomes,
    listens,
    said_ready,
    starting,
)
from tests.support.ports import free_port
from tests.support.redis_server import DURABLE, RedisServer, redis_server

EVICTING = ("--maxmemory-policy", "allkeys-lru", "--appendonly", "yes")
ALIVE = "gris.budget.v1.BudgetService/alive"


@contextmanager
def absent_redis(folder: Path, options: tuple[str, ...] = DURABLE) -> Iterator[RedisServer]:
    """Give a Redis that has not been started; it is killed in the end."""
    with redis_server(folder, options) as redis:
        redis.kill()
        yield redis


@pytest.mark.usefixtures("starts_redis")
async def test_a_service_waits_for_a_store_that_does_not_answer_yet(tmp_path: Path) -> None:
    """Alive and not serving, every call UNAVAILABLE, each attempt in the log; then it serves without a restart."""
    address = f"127.0.0.1:{free_port()}"
    with (
        absent_redis(tmp_path) as redis,
        starting(tmp_path, redis.address, "--listen", address) as process,
    ):
        await listens(address)
        assert [await health(address, each) for each in ("", ALIVE)] == [NOT_SERVING, SERVING]
        async with connected(address) as stub:
            for call in (
                stub.UpdateBudget(charging()),
                stub.GetBudget(pb.GetBudgetRequest(account=account())),
            ):
                error = await failure(call)
                assert (error.code, error.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert process.poll() is None
        redis.start()
        assert said_ready(process)["address"] == address
        await health_becomes(address, SERVING)
        async with connected(address) as stub:
            assert (await stub.UpdateBudget(charging())).charged == cost()
        process.terminate()
        assert process.wait(timeout=20) == 0
    log = (tmp_path / "log").read_text()
    pauses = [float(each) for each in re.findall(r"event=store\.not_opened .*retry_seconds=([0-9.]+)", log)]
    assert max(pauses) >= 2 * min(pauses)
    assert f"127.0.0.1:{redis.port}" in log


@pytest.mark.usefixtures("starts_redis")
async def test_an_administrator_hears_that_the_store_is_not_there(tmp_path: Path) -> None:
    """UNAVAILABLE for what changes the ledger and for what reads it."""
    address = f"127.0.0.1:{free_port()}"
    with absent_redis(tmp_path) as redis, starting(tmp_path, redis.address, "--admin-listen", address):
        await listens(address)
        async with grpc.aio.insecure_channel(address) as channel:
            stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
            removed = admin_pb2.LimitChange(path=["acme"])
            for call in (
                stub.VerifyLedger(admin_pb2.VerifyLedgerRequest()),
                stub.SetLimits(admin_pb2.SetLimitsRequest(changes=[removed], request_id="s")),
            ):
                assert (await failure(call)).info.reason == "STORE_UNAVAILABLE"


@pytest.mark.usefixtures("starts_redis")
async def test_a_service_that_waits_for_its_store_ends_when_told(tmp_path: Path) -> None:
    """The exit code is 0."""
    address = f"127.0.0.1:{free_port()}"
    with (
        absent_redis(tmp_path) as redis,
        starting(tmp_path, redis.address, "--listen", address) as process,
    ):
        await listens(address)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@pytest.mark.usefixtures("starts_redis")
@pytest.mark.parametrize("late", [False, True])
async def test_a_store_that_must_not_be_used_ends_the_service(tmp_path: Path, late: bool) -> None:
    """At once, or when it comes: the exit code is 2, and the log ends with the reason."""
    address = f"127.0.0.1:{free_port()}"
    with absent_redis(tmp_path, EVICTING) as redis:
        if not late:
            redis.start()
        with starting(tmp_path, redis.address, "--listen", address) as process:
            if late:
                await listens(address)
                redis.start()
            assert process.wait(timeout=20) == 2
            assert process.stdout is not None
            assert process.stdout.read() == ""
    assert "noeviction" in (tmp_path / "log").read_text()
