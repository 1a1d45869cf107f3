"""Composes the telemetry of a process: its metrics and its traces."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from gris_serving import tracing
from gris_serving.instrumentation import Instrumentation
from gris_serving.options import OperatingError, OperatingOptions

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


METRICS_ADDRESS = "metrics_address"
"""The key of the metrics' address in the line that a process prints when it is ready."""


@dataclass(frozen=True)
class Telemetry:
    """The telemetry of a process.

    Attributes:
        instrumentation: Records the calls and the health of the process.
        registry: Where a service adds metrics of its own, None where nothing is counted.
        addresses: What the process prints about its metrics when it is ready.
    """

    instrumentation: Instrumentation = field(default_factory=Instrumentation)
    registry: CollectorRegistry | None = None
    addresses: dict[str, str] = field(default_factory=dict)


@contextmanager
def start_telemetry(
    service: str, operating: OperatingOptions, *, trusted: bool = True, of_libraries: bool = False
) -> Iterator[Telemetry]:
    """Collect metrics and traces of this process while the block runs.

    Args:
        service: The name of the service in its traces.
        operating: Whether and where metrics are exposed.
        trusted: Whether the traces of callers continue in this process.
        of_libraries: Whether spans of libraries that use OpenTelemetry's API are sent too, until the process ends.

    Raises:
        OperatingError: Metrics cannot be exposed.
    """
    with ExitStack() as stack:
        traces = stack.enter_context(
            tracing.exporting_traces(service, trusted=trusted, of_libraries=of_libraries)
        )
        if operating.metrics_listen is None:
            yield Telemetry(Instrumentation(traces=traces))
            return
        metrics = _metrics()
        # Prometheus knows from the history when each series began; these would double the number of series.
        metrics.disable_created_metrics()
        registry = metrics.CollectorRegistry()
        address = stack.enter_context(metrics.serving_metrics(registry, operating.metrics_listen))
        instrumentation = Instrumentation(metrics.CallMetrics(registry), metrics.Readiness(registry), traces)
        yield Telemetry(instrumentation, registry, {METRICS_ADDRESS: address})


def _metrics() -> ModuleType:
    try:
        return importlib.import_module("gris_serving.metrics")
    except ModuleNotFoundError:
        raise OperatingError("metrics need `pip install prometheus-client`") from None
