"""Traces on their way to a collector, by the standard environment variables."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from serving.observing import Sight
from serving.tracing import exported

from .echo import SERVICE, observed_echo

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class _Collector(BaseHTTPRequestHandler):
    received: list[ExportTraceServiceRequest]

    def do_POST(self) -> None:
        """Take what is sent."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """Run a collector; give its address and what it has received."""
    handler = type("Handler", (_Collector,), {"received": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler.received  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


async def test_spans_reach_the_collector_under_the_service_s_name(
    collector: tuple[str, list[ExportTraceServiceRequest]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the latest when the service ends."""
    address, received = collector
    monkeypatch.setenv(ENDPOINT, address)
    with exported("some_service") as traces:
        async with observed_echo(Sight(traces=traces)) as echo:
            await echo.one("a")
    (resource,) = received[0].resource_spans
    names = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert names["service.name"] == "some_service"
    assert [span.name for scope in resource.scope_spans for span in scope.spans] == [f"{SERVICE}/One"]


async def test_a_dead_collector_changes_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service answers, and ends."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    with exported("some_service") as traces:
        async with observed_echo(Sight(traces=traces)) as echo:
            assert await echo.one("a") == "a"
