"""OpenTelemetry traces of a server, by the standard environment variables; nothing is imported without them.

A span has service, method, code and reason, and its parent by W3C's `traceparent`. The instrumentation that
OpenTelemetry publishes for gRPC is not used: it exports the text of every refusal, which names accounts and amounts,
every exception with its text, and the peer. Of a caller's metadata only `traceparent` is read: `tracestate` and
`baggage` may hold anything.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import grpc

from gris_serving.call_outcome import CallOutcome
from gris_serving.logs import Metadata
from gris_serving.tls import is_loopback

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

Span: TypeAlias = "trace.Span"

# The second one is for traces alone, and counts where both are set.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
TRACEPARENT = "traceparent"
FLUSH_MILLISECONDS = 2000
_OK = "OK"

log = logging.getLogger(__name__)


class ServerTraces:
    """Makes the spans of a server.

    Args:
        provider: Where spans are sent.
        trusted: Whether a span belongs to its caller's trace. For callers that are not trusted a span begins a trace of
            its own, with a link to theirs, so that they choose neither its id nor whether it is recorded.
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

    def begin(self, service: str, method: str, metadata: Metadata) -> Span:
        """Begin the span of a call; calls to other servers in the same task belong to it."""
        carrier = {key: value for key, value in metadata if key == TRACEPARENT and isinstance(value, str)}
        empty = self._context.Context()
        caller = self._propagator.extract(carrier, empty) if carrier else empty
        linked = self._trace.get_current_span(caller).get_span_context()
        links = (self._trace.Link(linked),) if linked.is_valid and not self._trusted else ()
        span = self._tracer.start_span(
            f"{service}/{method}",
            caller if self._trusted else empty,
            self._trace.SpanKind.SERVER,
            {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
            links,
        )
        # gRPC serves each call in a task of its own, so this need not be detached.
        self._context.attach(self._trace.set_span_in_context(span, empty))
        return span

    def end(self, span: Span, outcome: CallOutcome) -> None:
        """End the span of a call."""
        if outcome.code != _OK:
            span.set_attribute("gris.reason", outcome.reason)
            span.set_status(self._trace.StatusCode.ERROR)
        span.set_attribute("rpc.grpc.status_code", grpc.StatusCode[outcome.code].value[0])
        span.end()


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the environment names an endpoint for traces, and does not disable them."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


@contextmanager
def exporting_traces(
    service: str, *, trusted: bool = True, of_libraries: bool = False
) -> Iterator[ServerTraces | None]:
    """Send the traces of a service to where the environment says, while the block runs.

    Args:
        service: The name of the service, unless the environment has another.
        trusted: Whether a caller's trace continues (`ServerTraces`).
        of_libraries: Whether spans that libraries of this process make by OpenTelemetry's API are sent too. This holds
            for the whole process and cannot be taken back, so only a process that ends with the block asks for it.

    Yields:
        What makes the spans; None if the environment names no endpoint, or the extra is not installed.
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
    if of_libraries:
        from opentelemetry import trace  # noqa: PLC0415 - an extra

        trace.set_tracer_provider(provider)
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
    is_local = _is_on_this_machine(os.environ)
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", protocol) == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter as GrpcExporter,
        )

        # This machine is never asked through a proxy of the environment.
        options: Any = (("grpc.enable_http_proxy", 0),) if is_local else None
        return GrpcExporter(channel_options=options)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter(session=_session_without_proxy() if is_local else None)


def _session_without_proxy() -> Any:
    """Return a session for exporters that send by `requests`; None for later ones, which ask no proxy."""
    try:
        from requests import Session  # noqa: PLC0415 - the exporter's own
    except ModuleNotFoundError:
        return None
    session = Session()
    session.trust_env = False
    return session


def _is_on_this_machine(environment: Mapping[str, str]) -> bool:
    """Return whether the environment names a collector that only this machine reaches."""
    endpoint = next((environment[name] for name in reversed(_ENDPOINTS) if environment.get(name)), "")
    host = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}").hostname
    return is_loopback(f"{host}:0")
