"""OpenTelemetry traces of a server, by the standard environment variables; nothing is imported without them.

A span tells service, method, code and reason, and whose span it belongs to by W3C's `traceparent`. The instrumentation
that OpenTelemetry publishes for gRPC is not used: it exports the text of every refusal, which names accounts and
amounts, every exception with its text, and the peer. Of what a caller sends along nothing but `traceparent` is taken:
`tracestate` and `baggage` may hold anything.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc

from gris_serving.call_outcome import CallOutcome

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

Span: TypeAlias = "trace.Span"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

TRACEPARENT = "traceparent"
FLUSH_MILLISECONDS = 2000
_OK = "OK"

log = logging.getLogger(__name__)


class ServerTraces:
    """Makes the spans of a server.

    Args:
        provider: where spans go.
        trusted: whether a span belongs to its caller's trace. Of callers that are not trusted a span begins a trace of
            its own, so that they choose neither its id nor whether it is recorded, and has a link to theirs.
    """

    def __init__(self, provider: trace.TracerProvider, *, trusted: bool = True) -> None:
        from opentelemetry import context, trace  # noqa: PLC0415 - an extra
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        self._tracer = provider.get_tracer("gris.serving")
        self._propagator = TraceContextTextMapPropagator()
        self._trace = trace
        self._context = context
        self._trusted = trusted

    def begin(self, service: str, method: str, context: _Context) -> Span:
        """Begin the span of a call; what is asked of other servers in the same task belongs to it."""
        carrier = {
            key: value
            for key, value in context.invocation_metadata() or ()
            if key == TRACEPARENT and isinstance(value, str)
        }
        nobody = self._context.Context()
        caller = self._propagator.extract(carrier, nobody) if carrier else nobody
        told = self._trace.get_current_span(caller).get_span_context()
        links = (self._trace.Link(told),) if told.is_valid and not self._trusted else ()
        span = self._tracer.start_span(
            f"{service}/{method}",
            caller if self._trusted else nobody,
            self._trace.SpanKind.SERVER,
            {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
            links,
        )
        # gRPC serves each call in a task of its own, so nobody has to take this back.
        self._context.attach(self._trace.set_span_in_context(span, nobody))
        return span

    def end(self, span: Span, outcome: CallOutcome) -> None:
        """End the span of a call."""
        if outcome.code != _OK:
            span.set_attribute("gris.reason", outcome.reason)
            span.set_status(self._trace.StatusCode.ERROR)
        span.set_attribute("rpc.grpc.status_code", grpc.StatusCode[outcome.code].value[0])
        span.end()


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a place to send traces to, and does not forbid it."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return any(environment.get(name) for name in names)


@contextmanager
def exported(service: str, *, trusted: bool = True) -> Iterator[ServerTraces | None]:
    """Send the traces of a service where the environment says; None if it says nothing, or the extra is missing.

    `trusted` says whether a caller's trace goes on (`ServerTraces`).
    """
    if not is_wanted(os.environ):
        yield None
        return
    try:
        provider = _provider(service)
    except ModuleNotFoundError:
        log.warning(
            "No traces are sent: they need `pip install gris-dp[telemetry]`.",
            extra={"event": "traces.not_sent"},
        )
        yield None
        return
    try:
        yield ServerTraces(provider, trusted=trusted)
    finally:
        provider.force_flush(FLUSH_MILLISECONDS)
        provider.shutdown()


def _provider(service: str) -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    name = os.environ.get("OTEL_SERVICE_NAME") or service
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(_exporter()))
    return provider


def _exporter() -> Any:
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", protocol) == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter as GrpcExporter,
        )

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter()
