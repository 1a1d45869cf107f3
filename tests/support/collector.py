"""A collector of traces, as OpenTelemetry's exporter finds it over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable that says where a collector is."""


class _Handler(BaseHTTPRequestHandler):
    received: list[ExportTraceServiceRequest]

    def do_POST(self) -> None:
        """Take what is sent."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Collector:
    """A collector that runs, and all that it has received."""

    address: str
    received: list[ExportTraceServiceRequest]

    def spans(self, service: str) -> list[Span]:
        """Return the spans that have come from a service."""
        return [
            span
            for request in self.received
            for resource in request.resource_spans
            if any(
                each.key == "service.name" and each.value.string_value == service
                for each in resource.resource.attributes
            )
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector."""
    handler = type("Handler", (_Handler,), {"received": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Collector(f"http://127.0.0.1:{server.server_port}", handler.received)  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
