"""Requests of which something is missing: how many calls may wait for it, how long, and what is held of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry

from budget_service.server.admin_service import MAX_REQUEST_BYTES as ADMIN_BYTES
from budget_service.server.hosting import CALLS_OF_A_CONNECTION
from budget_service.server.service import MAX_REQUEST_BYTES as BUDGET_BYTES
from dp_service.server.process import UNFINISHED_CALLS
from gris_serving.instrumentation import Instrumentation
from gris_serving.metrics import CallMetrics
from gris_serving.unfinished_requests import PART_AT_EASE, UnfinishedRequests
from tests.support.echo import SERVICE, EchoStub, add_echo
from tests.support.processes import budget_command, dp_command, process
from tests.support.raw_connection import RawConnection, raw_connection
from tests.support.rings import needs

INVALID_ARGUMENT = str(grpc.StatusCode.INVALID_ARGUMENT.value[0])
ONE, MANY = f"/{SERVICE}/One", f"/{SERVICE}/Many"
MOST = 8
# A quarter of them are served as they come.
AT_EASE = 2
WHOLE = StringValue(value="x" * 100).SerializeToString()


@dataclass(frozen=True)
class Echo:
    """An echo that lets so many calls wait for the rest of their request."""

    address: str
    registry: CollectorRegistry

    async def answers(self) -> bool:
        """Say whether an honest call is answered."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            return bool(await EchoStub(channel).one("a", timeout=20))

    def refused(self) -> float:
        """Return how many calls were counted as refused because their request was not there."""
        labels = {"grpc_service": SERVICE, "grpc_method": "One"}
        labels |= {"code": "INVALID_ARGUMENT", "reason": "REQUEST_UNFINISHED"}
        return self.registry.get_sample_value("gris_rpc_failures_total", labels) or 0.0


@asynccontextmanager
async def echo(seconds: float) -> AsyncIterator[Echo]:
    """Serve it in this process."""
    registry = CollectorRegistry()
    instrumentation = Instrumentation(CallMetrics(registry))
    unfinished = UnfinishedRequests("gris.test", instrumentation, most=MOST, seconds=seconds)
    server = grpc.aio.server(interceptors=(unfinished,))
    add_echo(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield Echo(f"127.0.0.1:{port}", registry)
    finally:
        await server.stop(None)


def begun(connection: RawConnection, many: int, method: str = ONE) -> list[int]:
    """Begin so many calls, one after the other, without the last byte of their requests."""
    streams = []
    for _ in range(many):
        streams.append(connection.begin(method))
        connection.send(streams[-1:], WHOLE, withheld=1)
        # The server takes up one call after the other.
        connection.listen(0.05)
    return streams


def ended(connection: RawConnection, many: int) -> list[int]:
    """Return the calls that have ended, as soon as there are so many."""
    deadline = time.monotonic() + 20
    while len(connection.ended) < many and time.monotonic() < deadline:
        connection.listen(0.05)
    return list(connection.ended)


async def test_the_oldest_calls_give_way_and_honest_ones_are_answered() -> None:
    """Beyond so many each newcomer ends the one that has waited longest, by name; what is finished is answered."""
    async with echo(seconds=30) as server:
        opened = ExitStack()

        def attack() -> list[int]:
            connection = opened.enter_context(raw_connection(server.address))
            streams = begun(connection, 20)
            refused = sorted(ended(connection, 20 - MOST))
            assert {INVALID_ARGUMENT} == {connection.status(stream) for stream in refused}
            last = streams[-1]
            connection.http.send_data(last, WHOLE[-1:])
            connection.begin(ONE)
            assert connection.status(last) == "0"
            return [streams.index(stream) for stream in refused]

        with opened:
            assert list(range(AT_EASE, 20 - MOST + AT_EASE)) == await asyncio.to_thread(attack)
            assert await server.answers()
        assert server.refused() >= 20 - MOST


@pytest.mark.slow
async def test_a_call_that_waits_too_long_for_its_request_is_refused_by_name() -> None:
    """All but the quarter that is served as it comes."""
    async with echo(seconds=0.5) as server:

        def attack() -> list[str]:
            with raw_connection(server.address) as connection:
                streams = begun(connection, MOST)
                found = [connection.status(stream) for stream in streams[AT_EASE:]]
                assert not connection.ended.keys() & set(streams[:AT_EASE])
                return found

        assert [INVALID_ARGUMENT] * (MOST - AT_EASE) == await asyncio.to_thread(attack)


@pytest.mark.slow
async def test_calls_that_were_taken_back_wait_no_more() -> None:
    """Whether the call is reset or its connection is lost; calls that come then may take their places."""
    async with echo(seconds=30) as server:

        def attack() -> set[int]:
            with raw_connection(server.address) as connection:
                for stream in begun(connection, MOST):
                    connection.reset(stream)
                connection.listen(0.5)
            with raw_connection(server.address) as connection:
                begun(connection, MOST)
            with raw_connection(server.address) as connection:
                begun(connection, MOST)
                return set(connection.ended)

        assert set() == await asyncio.to_thread(attack)


async def test_streams_are_bounded_and_answered_alike() -> None:
    """Those that send nothing give way to newcomers; one that goes on is answered to its end, even when many wait."""
    async with echo(seconds=30) as server, grpc.aio.insecure_channel(server.address) as channel:
        going_on: Any = channel.stream_stream(MANY)()
        await going_on.write(WHOLE)
        assert WHOLE == await going_on.read()

        def attack() -> int:
            with raw_connection(server.address) as connection:
                begun(connection, 20, MANY)
                return len(ended(connection, 20 - MOST))

        assert await asyncio.to_thread(attack) == 20 - MOST
        await going_on.write(WHOLE)
        assert WHOLE == await going_on.read()
        await going_on.done_writing()
        assert await going_on.code() is grpc.StatusCode.OK


@pytest.mark.usefixtures("starts_processes")
async def test_half_sent_questions_give_way_where_nobody_is_asked_who_they_are(tmp_path: Path) -> None:
    """A dp_service without an access file ends the oldest of too many, and answers others meanwhile."""
    with (
        process("dp_service", dp_command(tmp_path), tmp_path / "log") as started,
        raw_connection(started["address"]) as connection,
    ):
        streams = [
            connection.begin("/gris.dp.v1.DpService/TranslateQuery") for _ in range(UNFINISHED_CALLS + 1)
        ]
        connection.send(streams, b"x" * 1000, withheld=1, quiet_seconds=0.5)
        first_that_can_be_ended = streams[UNFINISHED_CALLS // PART_AT_EASE]
        assert INVALID_ARGUMENT == await asyncio.to_thread(connection.status, first_that_can_be_ended)
        async with grpc.aio.insecure_channel(started["address"]) as channel:
            stub: Any = dp_pb2_grpc.DpServiceStub(channel)
            catalog = await stub.GetCatalog(dp_pb2.GetCatalogRequest(), timeout=20)
        assert catalog.tables


@dataclass(frozen=True)
class Running:
    """A budget_service that asks nobody who they are."""

    address: str
    admin_address: str
    pid: str

    def mebibytes(self) -> float:
        """Return how much memory it holds now."""
        return psutil.Process(int(self.pid)).memory_info().rss / 2**20


@pytest.fixture
@needs("process")
def running(tmp_path: Path) -> Iterator[Running]:
    """Run it without an access file."""
    words = [*budget_command(tmp_path), "--admin-listen", "127.0.0.1:0"]
    with process("budget_service", words, tmp_path / "log") as started:
        yield Running(started["address"], started["admin_address"], started["pid"])


@pytest.mark.parametrize(
    ("method", "most_bytes", "connections", "calls"),
    [
        ("/gris.budget.v1.BudgetService/UpdateBudget", BUDGET_BYTES, 65, CALLS_OF_A_CONNECTION),
        # A stream to the others; no other service has one that is open to everybody.
        ("/grpc.health.v1.Health/Watch", BUDGET_BYTES, 65, CALLS_OF_A_CONNECTION),
        ("/gris.budget.v1.BudgetAdminService/SetLimits", ADMIN_BYTES, 5, 60),
    ],
)
async def test_half_sent_requests_are_hardly_held(
    running: Running, method: str, most_bytes: int, connections: int, calls: int
) -> None:
    """Of 250 to 300 MiB of requests without their last byte it keeps a small part, and it serves meanwhile."""
    address = running.admin_address if "Admin" in method else running.address
    before = running.mebibytes()
    with ExitStack() as opened:

        def attack() -> None:
            for _ in range(connections):
                connection = opened.enter_context(raw_connection(address))
                streams = [connection.begin(method) for _ in range(calls)]
                connection.send(streams, b"\n" + b"x" * (most_bytes - 100), withheld=1, quiet_seconds=0.5)

        await asyncio.to_thread(attack)
        held = running.mebibytes() - before
        async with grpc.aio.insecure_channel(running.address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=20)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert held < 160
