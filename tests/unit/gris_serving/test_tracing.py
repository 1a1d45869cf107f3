"""Spans of a server: under their caller's, with codes and reasons, nothing that anybody said, and on to a collector."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import grpc
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

from gris_serving.instrumentation import Instrumentation
from gris_serving.tracing import ServerTraces, exporting_traces, is_wanted
from tests.support.collector import ENDPOINT, collecting
from tests.support.echo import SECRET, SERVICE, EchoStub, observed_echo
from tests.support.log_events import logged_events

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    """Where spans go."""
    return InMemorySpanExporter()


@pytest.fixture
def instrumentation(exporter: InMemorySpanExporter) -> Iterator[Instrumentation]:
    """Instrumentation that traces."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield Instrumentation(traces=ServerTraces(provider))
    provider.shutdown()


async def span_of(
    instrumentation: Instrumentation, exporter: InMemorySpanExporter, text: str, **metadata: str
) -> ReadableSpan:
    """Return the span of one call."""
    async with observed_echo(instrumentation) as echo:
        await _called(echo, text, metadata)
    (span,) = exporter.get_finished_spans()
    return span


async def _called(echo: EchoStub, text: str, metadata: dict[str, str]) -> None:
    try:
        await echo.one(text, metadata=tuple(metadata.items()))
    except grpc.aio.AioRpcError:
        assert text in ("refuse", "fail")


async def test_a_span_belongs_to_its_caller(
    instrumentation: Instrumentation, exporter: InMemorySpanExporter
) -> None:
    """By W3C's traceparent; its kind is SERVER."""
    span = await span_of(instrumentation, exporter, "a", traceparent=TRACEPARENT)
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE_ID, SPAN_ID)
    assert (span.name, span.kind, span.status.status_code) == (
        f"{SERVICE}/One",
        SpanKind.SERVER,
        StatusCode.UNSET,
    )


async def test_a_caller_who_is_not_trusted_chooses_no_trace(exporter: InMemorySpanExporter) -> None:
    """The span begins a trace of its own; what the caller said of theirs is a link, without its state."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentation = Instrumentation(traces=ServerTraces(provider, trusted=False))
    span = await span_of(instrumentation, exporter, "a", traceparent=TRACEPARENT, tracestate=f"v={SECRET}")
    provider.shutdown()
    assert span.context is not None
    assert (span.parent, f"{span.context.trace_id:032x}" != TRACE_ID) == (None, True)
    (link,) = span.links
    assert f"{link.context.trace_id:032x}" == TRACE_ID
    assert SECRET not in span.to_json()


@pytest.mark.parametrize(("trusted", "recorded"), [(False, 0), (True, 1)])
async def test_a_caller_who_is_not_trusted_has_nothing_recorded(
    exporter: InMemorySpanExporter, trusted: bool, recorded: int
) -> None:
    """Where no trace is sampled, the flag of a trusted caller alone counts."""
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with observed_echo(Instrumentation(traces=ServerTraces(provider, trusted=trusted))) as echo:
        await echo.one("a", metadata=(("traceparent", TRACEPARENT),))
    assert recorded == len(exporter.get_finished_spans())
    provider.shutdown()


@pytest.mark.parametrize("wrong", ["", "00-0-0-01", "x" * 4000, "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
async def test_a_wrong_parent_is_none(
    instrumentation: Instrumentation, exporter: InMemorySpanExporter, wrong: str
) -> None:
    """The call is served, under a trace of its own."""
    assert (await span_of(instrumentation, exporter, "a", traceparent=wrong)).parent is None


@pytest.mark.parametrize(
    ("text", "code", "reason"), [("refuse", "FAILED_PRECONDITION", "NOT_TODAY"), ("fail", "UNKNOWN", "")]
)
async def test_a_span_tells_code_and_reason_and_nothing_that_was_said(
    instrumentation: Instrumentation, exporter: InMemorySpanExporter, text: str, code: str, reason: str
) -> None:
    """No text of an error, no exception, no state that the caller sent along, no request."""
    carried = {"traceparent": TRACEPARENT, "tracestate": f"v={SECRET}", "baggage": f"who={SECRET}"}
    span = await span_of(instrumentation, exporter, text, **carried)
    assert dict(span.attributes or {}) == {
        "rpc.system": "grpc",
        "rpc.service": SERVICE,
        "rpc.method": "One",
        "rpc.grpc.status_code": grpc.StatusCode[code].value[0],
        "gris.reason": reason,
    }
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert SECRET not in span.to_json()


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({ENDPOINT: "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_environment_decides(environment: dict[str, str], wanted: bool) -> None:
    """By OpenTelemetry's own variables."""
    assert is_wanted(environment) is wanted


@pytest.mark.usefixtures("starts_processes")
def test_without_an_endpoint_nothing_is_imported() -> None:
    """Neither OpenTelemetry nor Prometheus, by a service that is to do neither."""
    program = (
        "import sys, budget_service.server.process, dp_service.server.process\n"
        "from gris_serving.options import OperatingOptions\n"
        "from gris_serving.telemetry import start_telemetry\n"
        "with start_telemetry('s', OperatingOptions()): pass\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={}, check=True)
    assert done.stdout == "[]\n"


def test_without_the_extra_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And the service runs without traces."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with exporting_traces("s") as traces:
        assert traces is None
    assert [("traces.not_sent", {})] == logged_events(caplog)


async def test_spans_reach_the_collector_under_the_service_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the latest when the service ends."""
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.address)
        with exporting_traces("some_service") as traces:
            async with observed_echo(Instrumentation(traces=traces)) as echo:
                await echo.one("a")
    assert [f"{SERVICE}/One"] == [span.name for span in collector.spans("some_service")]


@pytest.mark.slow
async def test_a_dead_collector_changes_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service answers, and ends."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    with exporting_traces("some_service") as traces:
        async with observed_echo(Instrumentation(traces=traces)) as echo:
            assert await echo.one("a") == "a"
