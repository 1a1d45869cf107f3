"""A proxy that the environment names: this machine is never asked through it, and who may be at fault is said."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from queue import Queue
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc

from budget_service.configuration.region_file import RegionConfiguration
from budget_service.server import home_channel
from budget_service.server.home_client import HomeStatusError
from deploy.image.probe import main
from gris_serving.call_outcome import CallOutcome
from gris_serving.instrumentation import Instrumentation
from gris_serving.tracing import exporting_traces
from pinot_connector import proxies
from pinot_connector.channels import open_channel
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.rpc_errors import Service, error_of_rpc
from tests.support.collector import ENDPOINT, collecting
from tests.support.echo import EchoStub, add_echo, observed_echo

VALUE = "http://someone:secret@127.0.0.1:{}"


@pytest.fixture(params=proxies.VARIABLES)
def variable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The variable that names a proxy, which answers nobody."""
    for name in (*proxies.VARIABLES, "no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv(request.param, VALUE.format(unused.getsockname()[1]))
        yield request.param


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """Serve what answers with what it is sent, and give the address."""
    server = grpc.aio.server()
    add_echo(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "localhost:{}", "ipv4:127.0.0.1:{}", "dns:///localhost:{}"])
@pytest.mark.usefixtures("variable")
async def test_this_machine_is_not_asked_through_a_proxy(form: str) -> None:
    """Whichever variable is set, and in whichever form the address is written."""
    async with served() as address:
        target = form.format(address.rpartition(":")[2])
        async with open_channel(target) as channel:
            assert "text" == await EchoStub(channel).one("text", timeout=10)


@pytest.mark.usefixtures("variable")
async def test_a_home_on_this_machine_is_not_asked_through_a_proxy() -> None:
    """The answer of a server that is no home shows that it was reached."""
    async with served() as address:
        region = RegionConfiguration.model_validate({"name": "eu", "home": address})
        channel = home_channel.open_channel(region)
        with pytest.raises(HomeStatusError) as raised:
            await channel.call("GetBudget", pb.GetBudgetRequest(), pb.GetBudgetResponse)
        await channel.close()
    assert grpc.StatusCode.UNIMPLEMENTED.value[0] == raised.value.status.code


def test_a_home_on_another_machine_names_the_variable_and_not_its_value(
    variable: str, caplog: pytest.LogCaptureFixture
) -> None:
    """When the region starts: a home that does not answer may be behind that proxy."""

    async def opened(home: str) -> None:
        await home_channel.open_channel(
            RegionConfiguration.model_validate({"name": "eu", "home": home, "insecure": True})
        ).close()

    asyncio.run(opened("127.0.0.1:1"))
    assert caplog.records == []
    asyncio.run(opened("192.0.2.1:1"))
    (record,) = caplog.records
    assert ("home.proxied", {"variable": variable}) == (vars(record)["event"], vars(record)["fields"])
    assert "secret" not in str(vars(record))


async def test_a_collector_on_this_machine_is_not_asked_through_a_proxy(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traces that a service sends over HTTP arrive."""
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.address)
        with exporting_traces("local") as traces, monkeypatch.context() as without:
            # The caller of this test is a plain one.
            without.delenv(variable)
            async with observed_echo(Instrumentation(traces=traces)) as echo:
                await echo.one("a")
    assert len(collector.spans("local")) == 1


@pytest.mark.usefixtures("variable")
def test_a_collector_on_this_machine_is_not_asked_by_grpc_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exporter gets the option that every channel here has: what is not reached is not sent."""
    received = Queue[str]()

    def export(request: bytes, context: grpc.ServicerContext) -> bytes:
        received.put(str(context.peer()))
        return b""

    server = grpc.server(ThreadPoolExecutor(1))
    handler = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.trace.v1.TraceService",
        {"Export": grpc.unary_unary_rpc_method_handler(export)},
    )
    server.add_generic_rpc_handlers((handler,))
    monkeypatch.setenv(ENDPOINT, f"http://localhost:{server.add_insecure_port('127.0.0.1:0')}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    server.start()
    with exporting_traces("local") as traces:
        assert traces is not None
        # A span stays that of its task: here, of a context of its own.
        span = copy_context().run(traces.begin, "service", "One", ())
        traces.end(span, CallOutcome("OK", "", 0.0))
    server.stop(None)
    assert received.qsize() == 1


@pytest.mark.usefixtures("variable", "starts_processes")
def test_benchmarks_ask_this_machine_without_a_proxy() -> None:
    """Their clients are plain ones, so the environment itself leaves this machine out."""
    text = "import bench, os; print(os.environ['no_grpc_proxy'], os.environ['no_proxy'])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ["localhost,127.0.0.1"] * 2 == done.stdout.split()


@pytest.mark.usefixtures("variable")
async def test_a_container_asks_about_its_health_without_a_proxy(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer of a server without a health service shows that it was reached."""
    async with served() as address:
        assert 1 == await asyncio.to_thread(main, [address])
    assert "UNIMPLEMENTED" in capsys.readouterr().err


async def test_an_error_of_another_machine_names_the_variable_and_not_its_value(variable: str) -> None:
    """The value may hold a password."""
    async with open_channel("192.0.2.1:50052") as channel:
        stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        with pytest.raises(grpc.RpcError) as raised:
            await stub.GetBudget(pb.GetBudgetRequest(), timeout=10)
    text = str(error_of_rpc(Service.BUDGET, raised.value, "192.0.2.1:50052"))
    assert f"{variable} is set" in text
    assert "secret" not in text


@pytest.mark.usefixtures("variable")
def test_embedded_services_start_where_a_proxy_is_set(not_started: EmbeddedServices) -> None:
    """They are asked about their health on this machine."""
    with not_started:
        not_started.ensure_running()


@pytest.mark.parametrize(
    "target",
    [
        "localhost:1",
        "LOCALHOST:1",
        "127.0.0.1:1",
        "127.9.9.9",
        "[::1]:1",
        "::1",
        "ipv4:127.0.0.1:1,127.0.0.2:2",
        "ipv6:[::1]:1",
        "dns:localhost:1",
        "dns://192.0.2.1/localhost:1",
        "unix:/run/gris",
        "unix-abstract:gris",
    ],
)
def test_addresses_of_this_machine_are_known_in_every_form(target: str) -> None:
    """Each takes the option that keeps gRPC from using a proxy."""
    assert proxies.is_loopback(target)
    assert (("grpc.enable_http_proxy", 0),) == proxies.channel_options(target)


@pytest.mark.parametrize(
    "target",
    [
        "",
        ":1",
        "10.0.0.1:1",
        "0.0.0.0:1",
        "localhost.example.org:1",
        "127.0.0.1.example.org:1",
        "ipv4:127.0.0.1:1,10.0.0.1:1",
        "dns:///budget:1",
        "[2001:db8::1]:1",
    ],
)
def test_all_other_addresses_may_be_behind_a_proxy(target: str) -> None:
    """One replica elsewhere is enough."""
    assert not proxies.is_loopback(target)
    assert () == proxies.channel_options(target)
