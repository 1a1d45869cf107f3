"""What operators see of the gateway: numbers, health by part, and a log with request ids; and how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, CollectorRegistry

from gris_gateway.metrics import QuestionMetrics
from pinot_connector import AsyncGatewayClient, Credentials, Endpoint, telemetry
from pinot_connector.channels import open_channel
from pinot_connector.errors import BudgetExhausted, GrisError, ServiceRefused
from pinot_connector.questions import structured_question
from tests.support.gateways import GatewayWorld, write_configuration
from tests.support.pki import Authority, Issuer, email, uri
from tests.support.ports import free_port

REQUEST_ID = "4711-of-the-application"
SERVICE = "gris.app.v1.PrivateQueryService"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
TIMEOUT_SECONDS = 30.0
QUESTION = structured_question("feedback", "article_id", k=3)


@dataclass(frozen=True)
class Watched:
    """A gateway that is watched in every way there is."""

    process: subprocess.Popen[str]
    ready: dict[str, str]
    authority: Authority
    log: Path

    def caller(self, name: str) -> Endpoint:
        """Return the gateway as somebody with this name in their certificate reaches it."""
        return Endpoint(self.ready["address"], self.authority.client(email(f"{name}@example.org"), file=name))

    def ana(self) -> Endpoint:
        """Return the gateway as Ana reaches it."""
        shown: Credentials = self.authority.client(uri("spiffe://example.org/ana"), file="ana")
        return Endpoint(self.ready["address"], shown)

    def metrics(self) -> str:
        """Return what Prometheus would read."""
        with urllib.request.urlopen(f"http://{self.ready['metrics_address']}/metrics") as answer:
            return str(answer.read().decode())

    def lines(self) -> list[dict[str, Any]]:
        """Return the log's own lines; gRPC's library has a form of its own."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@contextmanager
def watched(folder: Path, world: GatewayWorld, dp: str, drain_seconds: float = 0.0) -> Iterator[Watched]:
    """Run a gateway on the tables of another."""
    for name in ("wide.parquet", "small.parquet"):
        (folder / name).symlink_to(world.folder / name)
    authority = Authority.new(folder)
    config = write_configuration(folder, authority, Issuer(folder), dp, world.budget)
    command = [sys.executable, "-m", "gris_gateway", "--config", str(config)]
    command += ["--metrics-listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug"]
    command += ["--drain-seconds", str(drain_seconds)]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            yield Watched(process, json.loads(process.stdout.readline()), authority, folder / "log")
        finally:
            process.terminate()
            assert process.wait(60) == 0


async def health_becomes(endpoint: Endpoint, expected: int, name: str = "") -> None:
    """Wait until the gateway says this of a name."""
    async with open_channel(endpoint) as channel, asyncio.timeout(TIMEOUT_SECONDS):
        stub: Any = health_pb2_grpc.HealthStub(channel)
        async for reported in stub.Watch(health_pb2.HealthCheckRequest(service=name)):
            if reported.status == expected:
                return


async def refusal(endpoint: Endpoint) -> GrisError:
    """Return how a question is refused."""
    async with AsyncGatewayClient(endpoint) as client:
        with pytest.raises(GrisError) as refused:
            await client.ask(QUESTION)
    return refused.value


async def test_calls_and_questions_are_counted_and_nobody_is_named(
    gateway: GatewayWorld, tmp_path: Path
) -> None:
    """Rate, failures by reason, questions, calls to the engine and parts; in all of it no account and no element."""
    with watched(tmp_path, gateway, gateway.dp) as seen:
        async with AsyncGatewayClient(seen.ana()) as ana:
            result = await ana.ask(QUESTION)
        assert isinstance(await refusal(seen.caller("stranger")), ServiceRefused)
        assert isinstance(await refusal(seen.caller("poor")), BudgetExhausted)
        await health_becomes(seen.ana(), SERVING, f"{SERVICE}/budget_service")
        shown = seen.metrics()
        lines = seen.lines()
    ask = f'grpc_method="Ask",grpc_service="{SERVICE}"'
    assert f"gris_rpc_duration_seconds_count{{{ask}}} 3.0" in shown
    for code, reason in (
        ("PERMISSION_DENIED", "CALLER_WITHOUT_ACCOUNT"),
        ("RESOURCE_EXHAUSTED", "BUDGET_EXHAUSTED"),
    ):
        assert f'gris_rpc_failures_total{{code="{code}",{ask},reason="{reason}"}} 1.0' in shown
    for outcome in ("answered", "budget_exhausted"):
        assert f'gris_questions_total{{outcome="{outcome}"}} 1.0' in shown
    assert 'gris_engine_calls_total{engine="duckdb",outcome="answered",step="run"}' in shown
    for part in ("server", "dp_service", "budget_service", "engine"):
        assert f'gris_component_serving{{component="{part}"}} 1.0' in shown
    everything = shown + json.dumps(lines)
    named = (
        "acme",
        "example.org",
        "spiffe",
        "poor",
        "alone",
        "SELECT",
        "feedback",
        *(str(row.element[0]) for row in result.rows),
    )
    assert [each for each in named if each in everything] == []


async def test_a_callers_request_id_goes_through_to_the_services(
    gateway: GatewayWorld, tmp_path: Path
) -> None:
    """It is in the gateway's log and in budget_service's; a call without one is given one."""
    with watched(tmp_path, gateway, gateway.dp) as seen:
        with telemetry.request_id(REQUEST_ID):
            await refusal(seen.caller("poor"))
        await refusal(seen.caller("poor"))

        def ended_calls() -> list[Any]:
            return [line for line in seen.lines() if line.get("event") == "rpc.finished"]

        # The caller has its answer before the gateway has written its line.
        async with asyncio.timeout(10):
            while len(ended := ended_calls()) < 2:  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(0.01)
    assert [line["request_id"] == REQUEST_ID for line in ended] == [True, False]
    assert all(line["request_id"] for line in ended)
    assert REQUEST_ID in (gateway.services.directory / "state" / "budget_service.log").read_text()


async def test_a_dead_part_is_named_and_the_gateway_serves_on(gateway: GatewayWorld, tmp_path: Path) -> None:
    """dp_service is nowhere: health and metrics say which part it is, and the budget can be asked for all along."""
    with watched(tmp_path, gateway, f"127.0.0.1:{free_port()}") as seen:
        await health_becomes(seen.ana(), NOT_SERVING, f"{SERVICE}/dp_service")
        for name in ("", SERVICE, f"{SERVICE}/budget_service", f"{SERVICE}/engine"):
            await health_becomes(seen.ana(), SERVING, name)
        shown = seen.metrics()
        async with AsyncGatewayClient(seen.ana()) as ana:
            assert await ana.remaining()
    assert 'gris_component_serving{component="dp_service"} 0.0' in shown
    assert 'gris_component_serving{component="budget_service"} 1.0' in shown


async def test_a_gateway_that_is_told_to_end_says_so_and_answers_meanwhile(
    gateway: GatewayWorld, tmp_path: Path
) -> None:
    """NOT_SERVING at once, answers for as long as it drains, and then exit code 0."""
    with watched(tmp_path, gateway, gateway.dp, drain_seconds=5) as seen:
        ana = seen.ana()
        seen.process.send_signal(signal.SIGTERM)
        await health_becomes(ana, NOT_SERVING)
        async with AsyncGatewayClient(ana) as client:
            assert (await client.ask(QUESTION)).rows
        assert seen.process.poll() is None


def test_the_gateways_numbers_have_the_connectors_names() -> None:
    """A dashboard of applications that export by OpenTelemetry shows a gateway, too."""
    registry = CollectorRegistry()
    provider = MeterProvider(metric_readers=[PrometheusMetricReader()], shutdown_on_exit=False)
    try:
        for recorder in (QuestionMetrics(registry), telemetry.Meters(provider)):
            recorder.question("answered", 1.0)
            recorder.engine_call("pinot", "run", "answered")
        own, other = (_series(each) for each in (registry, REGISTRY))
    finally:
        provider.shutdown()
    assert own
    assert own.items() <= other.items()


def _series(registry: CollectorRegistry) -> dict[str, frozenset[str]]:
    return {
        sample.name: frozenset(name for name in sample.labels if not name.startswith("otel_"))
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
