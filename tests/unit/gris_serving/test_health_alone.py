"""Health on an address of its own, for probes that speak no TLS: it says what the service says, and nothing else."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.budget_process import NOT_SERVING, SERVING, health, health_becomes, listens, said_ready
from tests.support.budget_process import starting as starting_budget
from tests.support.pki import ISSUER, Authority, Issuer
from tests.support.ports import free_port
from tests.support.processes import budget_command, dp_command, process
from tests.support.redis_server import redis_server


def tls_options(folder: Path) -> list[object]:
    """Return the options of a service that asks for a token."""
    certificate, key = Authority.new(folder).server()
    access, issuer = folder / "access.yaml", Issuer(folder)
    access.write_text(
        f"jwt: {{key_file: {issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: a}}"
    )
    return ["--tls-certificate", certificate, "--tls-key", key, "--access", access]


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("service", "method"),
    [
        ("dp_service", "/gris.dp.v1.DpService/GetCatalog"),
        ("budget_service", "/gris.budget.v1.BudgetService/GetBudget"),
    ],
)
async def test_health_is_told_in_plain_text_and_nothing_else_is(
    tmp_path: Path, service: str, method: str
) -> None:
    """The service itself speaks TLS alone."""
    words = dp_command(tmp_path) if service == "dp_service" else budget_command(tmp_path)
    words += [*tls_options(tmp_path), "--health-listen", "127.0.0.1:0"]
    with process(service, words, tmp_path / "log") as ready:
        await health_becomes(ready["health_address"], SERVING)
        async with grpc.aio.insecure_channel(ready["health_address"]) as channel:
            call: Any = channel.unary_unary(method)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call(b"", timeout=30)
            assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED
        async with grpc.aio.insecure_channel(ready["address"]) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Check(health_pb2.HealthCheckRequest(), timeout=30)


@pytest.mark.usefixtures("starts_redis")
async def test_a_store_that_is_away_is_told_there_too(tmp_path: Path) -> None:
    """From the start on, and while it drains."""
    address = f"127.0.0.1:{free_port()}"
    options = ("--health-listen", address, "--drain-seconds", "3")
    with redis_server(tmp_path) as redis:
        redis.kill()
        with starting_budget(tmp_path, redis.address, *options) as running:
            await listens(address)
            alive = "gris.budget.v1.BudgetService/alive"
            assert [await health(address, each) for each in ("", alive)] == [NOT_SERVING, SERVING]
            redis.start()
            assert said_ready(running)["health_address"] == address
            await health_becomes(address, SERVING)
            running.send_signal(signal.SIGTERM)
            await health_becomes(address, NOT_SERVING)
            assert running.wait(timeout=30) == 0
