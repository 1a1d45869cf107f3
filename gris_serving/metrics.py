"""Prometheus metrics: how calls are counted, and where a process exposes them.

No label ever holds something that a client sent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

from gris_serving.call_outcome import CallOutcome
from gris_serving.metrics_server import MetricsServer
from gris_serving.options import OperatingError

# From the fastest charge to the longest that a client waits.
__all__ = [
    "CallMetrics",
    "CollectorRegistry",
    "MethodMetrics",
    "Readiness",
    "disable_created_metrics",
    "serving_metrics",
]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class CallMetrics:
    """Rate, errors and duration of every method."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("grpc_service", "grpc_method")
        self._durations = Histogram(
            "gris_rpc_duration_seconds",
            "How long calls took that have ended, however they did.",
            labels,
            buckets=SECONDS,
            registry=registry,
        )
        self._failures = Counter(
            "gris_rpc_failures",
            "Calls that were refused or failed, by gRPC's code and the service's own reason.",
            (*labels, "code", "reason"),
            registry=registry,
        )

    def of(self, service: str, method: str) -> MethodMetrics:
        """Return what counts the calls of one method."""
        return MethodMetrics(self._durations.labels(service, method), self._failures, (service, method))


class MethodMetrics:
    """Counts the calls of one method."""

    def __init__(self, durations: Histogram, failures: Counter, method: tuple[str, str]) -> None:
        self.answered = durations.observe
        """Counts a call that was answered after so many seconds."""
        self._failures = failures
        self._method = method

    def failed(self, outcome: CallOutcome) -> None:
        """Count a call that was refused or failed."""
        self.answered(outcome.seconds)
        self._failures.labels(*self._method, outcome.code, outcome.reason).inc()


class Readiness:
    """The health of a process, by component."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._serving = Gauge(
            "gris_component_serving",
            "1 where a component can do its part, 0 where it cannot.",
            ("component",),
            registry=registry,
        )

    def report(self, component: str, *, serving: bool) -> None:
        """Report whether a component can serve."""
        self._serving.labels(component).set(serving)


@contextmanager
def serving_metrics(registry: CollectorRegistry, listen: str) -> Iterator[str]:
    """Expose the metrics of a registry on HOST:PORT and yield the address.

    Raises:
        OperatingError: The address cannot be listened on.
    """
    host, _, port = listen.rpartition(":")
    try:
        server = MetricsServer(registry, host.strip("[]"), int(port))
    except OSError as error:
        raise OperatingError(f"cannot listen on {listen} for metrics: {error.strerror}") from None
    thread = threading.Thread(target=server.serve_forever, name="gris-metrics", daemon=True)
    thread.start()
    try:
        yield f"{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
