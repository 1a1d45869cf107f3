"""Callers who keep the gateway waiting: half a request, an answer that nobody reads, and a great many of both."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry

from gris_gateway.admission import GatewayAdmission
from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits
from gris_gateway.rate_limits import CallerLimits, Limiter
from gris_serving.instrumentation import NOTHING, Instrumentation
from gris_serving.metrics import CallMetrics
from gris_serving.slow_callers import keepalive_options
from tests.support.echo import SERVICE, EchoStub, add_echo
from tests.support.pki import ISSUER, Issuer
from tests.support.ports import free_port
from tests.support.raw_connection import RawConnection, raw_connection
from tests.support.world import write_small
from tests.unit.gris_gateway.token_world import AUDIENCE, known_by_tokens

INVALID_ARGUMENT, UNAVAILABLE = "3", "14"
ONE = f"/{SERVICE}/One"
WATCH = "/grpc.health.v1.Health/Watch"
MIB = 2**20


@dataclass(frozen=True)
class Impatient:
    """A server in this process that lets one call in, or one of each caller, and waits for nobody for long."""

    address: str
    issuer: Issuer

    def metadata(self, name: str) -> list[tuple[str, str]]:
        """Return what makes a call one of this caller's."""
        return [("authorization", f"Bearer {self.issuer.token(AUDIENCE, sub=name)}")]

    async def refusal(self, name: str) -> str:
        """Return the reason for which a call of this caller is refused, empty if it is answered."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            try:
                await EchoStub(channel).one("a", metadata=self.metadata(name))
            except grpc.aio.AioRpcError as error:
                return error.details() or "?"
        return ""

    async def lets_in(self, name: str) -> None:
        """Wait until a call of this caller is answered."""
        async with asyncio.timeout(20):
            while await self.refusal(name):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.1)


@asynccontextmanager
async def impatient(
    folder: Path,
    *,
    most: int,
    options: Sequence[tuple[str, int]] = (),
    caller_timeout_seconds: float = 0.3,
    instrumentation: Instrumentation = NOTHING,
) -> AsyncIterator[Impatient]:
    """Serve an echo to callers with tokens, one call at a time for each and so many for all."""
    issuer = Issuer(folder)
    limits = GatewayLimits(running_calls=most, caller_timeout_seconds=caller_timeout_seconds)
    limiter = Limiter(CallerLimits(100, 100, 1, 0), clock=time.monotonic, limits=limits)
    admission = GatewayAdmission(known_by_tokens(issuer), limiter, instrumentation, limits)
    server = grpc.aio.server(interceptors=(admission,), options=options)
    add_echo(instrumentation.before(server))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield Impatient(f"127.0.0.1:{port}", issuer)
    finally:
        await server.stop(None)


def begun(connection: RawConnection, metadata: list[tuple[str, str]], text: str, *, withheld: int) -> int:
    """Begin a call of the echo and send its request but for the last bytes."""
    stream = connection.begin(ONE, metadata)
    connection.send([stream], StringValue(value=text).SerializeToString(), withheld=withheld)
    return stream


@pytest.mark.slow
async def test_callers_who_leave_before_their_request_is_there_are_counted(tmp_path: Path) -> None:
    """Each once, as cancelled, whether it takes back its call or its connection is gone."""
    registry = CollectorRegistry()

    def calls(metric: str, **labels: str) -> float:
        labels |= {"grpc_service": SERVICE, "grpc_method": "One"}
        return registry.get_sample_value(f"gris_rpc_{metric}", labels) or 0.0

    def leave(metadata: Sequence[list[tuple[str, str]]]) -> None:
        with raw_connection(server.address) as connection:
            streams = [begun(connection, each, "x", withheld=1) for each in metadata]
            time.sleep(0.5)
            for stream in streams[::2]:
                connection.reset(stream)
            time.sleep(0.5)

    instrumentation = Instrumentation(CallMetrics(registry))
    async with impatient(
        tmp_path, most=100, caller_timeout_seconds=30, instrumentation=instrumentation
    ) as server:
        await server.lets_in("ana")
        await asyncio.to_thread(leave, [server.metadata(f"leaver-{number}") for number in range(20)])
        async with asyncio.timeout(20):
            while calls("duration_seconds_count") < 21:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.05)
    assert calls("failures_total", code="CANCELLED", reason="") == 20
    assert calls("duration_seconds_count") == 21


async def test_a_request_that_is_never_finished_ends_and_gives_its_place_back(tmp_path: Path) -> None:
    """INVALID_ARGUMENT after the time-out; the caller's next call is let in."""
    async with impatient(tmp_path, most=1) as server:

        def ends() -> str:
            with raw_connection(server.address) as connection:
                return connection.status(begun(connection, server.metadata("ana"), "x" * 100, withheld=1))

        assert INVALID_ARGUMENT == await asyncio.to_thread(ends)
        assert "" == await server.refusal("ana")


async def test_an_answer_that_nobody_reads_holds_up_its_own_caller_alone(tmp_path: Path) -> None:
    """There is one place for all: others get it after the time-out, the caller that does not read when it leaves."""
    async with impatient(tmp_path, most=1) as server:
        with ExitStack() as opened:

            def unread() -> None:
                connection = opened.enter_context(raw_connection(server.address, window=10))
                begun(connection, server.metadata("ana"), "x" * MIB, withheld=0)

            await asyncio.to_thread(unread)
            await server.lets_in("bob")
            assert "expected at most 1 calls at a time and 0 that wait" == await server.refusal("ana")
        await server.lets_in("ana")


@pytest.mark.slow
async def test_whoever_reads_nothing_at_all_is_disconnected(tmp_path: Path) -> None:
    """Where the connection itself is full not even a refusal can be sent; others get in once it is given up."""
    async with impatient(
        tmp_path, most=8, options=keepalive_options(16.0), caller_timeout_seconds=2.0
    ) as server:

        def filled(connection: RawConnection) -> None:
            streams = [connection.begin(ONE, server.metadata(f"filling-{number}")) for number in range(4)]
            content = StringValue(value="x" * 3 * MIB).SerializeToString()
            connection.send(streams, content, withheld=1, quiet_seconds=0.2)
            for stream in streams:
                connection.http.send_data(stream, content[-1:])
            # What is sent goes with the next call. Until the connection is full, and the four have timed out.
            connection.begin(ONE)
            time.sleep(4.0)
            for number in range(8):
                holding = connection.begin(ONE, server.metadata(f"holding-{number}"))
                connection.http.send_data(holding, b"\0\0\0\0\x08\n\x06refuse")
            connection.begin(ONE)
            time.sleep(0.5)

        with raw_connection(server.address, window=2**31 - 1, buffered=4096) as connection:
            await asyncio.to_thread(filled, connection)
            assert "too many calls at once; nothing was begun" == await server.refusal("bob")
            await server.lets_in("bob")


async def test_a_call_without_a_request_is_told_so(tmp_path: Path) -> None:
    """Its stream ends before a message has come."""
    async with impatient(tmp_path, most=1) as server, grpc.aio.insecure_channel(server.address) as channel:
        call: Any = channel.stream_unary(ONE)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call(iter(()), metadata=server.metadata("ana"), timeout=20)
    assert grpc.StatusCode.INVALID_ARGUMENT is error.value.code()


@dataclass(frozen=True)
class Running:
    """A gateway as a process."""

    address: str
    process: subprocess.Popen[str]

    def mebibytes(self) -> float:
        """Return how much memory it holds now."""
        return psutil.Process(self.process.pid).memory_info().rss / 2**20


@contextmanager
def open_to_tokens(folder: Path) -> Iterator[Running]:
    """Run a gateway that asks nobody for a certificate."""
    issuer, nowhere = Issuer(folder), f"127.0.0.1:{free_port()}"
    write_small(folder / "small.parquet", 10)
    (folder / "gateway.yaml").write_text(f"""
listen: 127.0.0.1:0
dp: {{address: "{nowhere}"}}
budget: {{address: "{nowhere}"}}
engine: {{duckdb: {{small: {folder}/small.parquet}}}}
identity:
  jwt:
    {{key_file: {issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: {AUDIENCE},
      accounts: [{{claim: iss, equals: {ISSUER}, prefix: [app], append: sub}}]}}
""")
    command = [sys.executable, "-m", "gris_gateway", "--config", str(folder / "gateway.yaml")]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield Running(json.loads(process.stdout.readline())["address"], process)
        finally:
            process.terminate()


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("/gris.app.v1.PrivateQueryService/Ask", None),
        ("/grpc.health.v1.Health/Check", None),
        (WATCH, b""),
    ],
)
async def test_half_sent_calls_of_strangers_are_hardly_held(
    tmp_path: Path, method: str, first: bytes | None
) -> None:
    """Of 180 requests of 2 MiB without their last byte, or behind one that is whole, it keeps a few; and it serves."""
    with open_to_tokens(tmp_path) as running, ExitStack() as opened:
        before = running.mebibytes()

        def attack() -> None:
            for _ in range(3):
                connection = opened.enter_context(raw_connection(running.address))
                streams = [connection.begin(method) for _ in range(60)]
                if first is not None:
                    connection.send(streams, first)
                connection.send(
                    streams, b"\n" + b"x" * (DEFAULT_LIMITS.request_bytes - 10), withheld=1, quiet_seconds=0.5
                )

        await asyncio.to_thread(attack)
        held = running.mebibytes() - before
        async with grpc.aio.insecure_channel(running.address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=20)
    assert health_pb2.HealthCheckResponse.SERVING == answer.status
    # 64 of them may be under way; gRPC needs as much again while they come and go. All of them would be 360 MiB.
    assert 300 > held


@pytest.mark.usefixtures("starts_processes")
async def test_whoever_watches_the_health_makes_room_for_newcomers(tmp_path: Path) -> None:
    """Beyond so many calls of strangers the one that began first ends, so that none of them is kept out."""
    with open_to_tokens(tmp_path) as running, ExitStack() as opened:

        def connection() -> RawConnection:
            return opened.enter_context(raw_connection(running.address))

        def watched() -> tuple[int, str, int]:
            first = connection()
            (stream,) = watching(first, 1)
            left = DEFAULT_LIMITS.open_calls - 1
            while left:
                left -= len(watching(connection(), min(left, DEFAULT_LIMITS.connection_calls)))
            first.listen(0.5)
            ended = len(first.ended)
            watching(connection(), 1)
            return ended, first.status(stream), len(first.ended)

        assert (0, UNAVAILABLE, 1) == await asyncio.to_thread(watched)


def watching(connection: RawConnection, many: int) -> list[int]:
    """Begin so many watches, each when the one before is answered: what waits is overtaken, or in the way of others."""
    streams = []
    for _ in range(many):
        streams.append(connection.begin(WATCH))
        connection.send(streams[-1:], b"")
        connection.hear(streams[-1])
    assert not connection.ended, "a watch was refused"
    return streams


@pytest.mark.usefixtures("starts_processes")
async def test_one_connection_is_told_how_many_calls_it_may_have(tmp_path: Path) -> None:
    """Each call that cannot be answered on it takes memory, no matter who began it."""
    with open_to_tokens(tmp_path) as running:

        def reported() -> int:
            with raw_connection(running.address) as connection:
                return connection.http.remote_settings.max_concurrent_streams

        assert DEFAULT_LIMITS.connection_calls == await asyncio.to_thread(reported)
