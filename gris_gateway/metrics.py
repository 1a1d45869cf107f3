"""What the gateway counts besides its calls: questions and calls to the engine, under the connector's own names.

Labels are constants of the connector, never something that a caller or an engine sent.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gris_serving.metrics import SECONDS
from pinot_connector.release_store import StoreStatistics


class ReleaseStoreMetrics:
    """Says how much the release store keeps."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._releases = Gauge(
            "gris_release_store_releases",
            "Releases that are kept, by whether anyone has paid.",
            ("state",),
            registry=registry,
        )
        self._bytes = Gauge(
            "gris_release_store_bytes", "Bytes that releases, payments and receipts take.", registry=registry
        )
        self._up = Gauge("gris_release_store_up", "Whether the release store can be read.", registry=registry)

    def report(self, statistics: StoreStatistics | None) -> None:
        """Report how much is kept; None: the store cannot be read."""
        self._up.set(statistics is not None)
        if statistics is not None:
            self._releases.labels("unpaid").set(statistics.unpaid)
            self._releases.labels("paid").set(statistics.releases - statistics.unpaid)
            self._bytes.set(statistics.size_bytes)


class QuestionMetrics:
    """Counts what `telemetry` reports, under the names that OpenTelemetry's exporter gives the same numbers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._questions = Counter(
            "gris_questions", "Questions by how they ended.", ("outcome",), registry=registry
        )
        self._durations = Histogram(
            "gris_question_duration_seconds",
            "How long questions took.",
            ("outcome",),
            buckets=SECONDS,
            registry=registry,
        )
        self._engine_calls = Counter(
            "gris_engine_calls", "Calls to the engine.", ("engine", "step", "outcome"), registry=registry
        )
        self._budget_waits = Histogram(
            "gris_budget_wait_seconds",
            "How long questions waited for budget that others held.",
            ("outcome",),
            buckets=SECONDS,
            registry=registry,
        )

        self._lookups = Counter(
            "gris_release_lookups",
            "Questions by what the release store has for them.",
            ("outcome",),
            registry=registry,
        )

    def question(self, outcome: str, seconds: float) -> None:
        """Count a question."""
        self._questions.labels(outcome).inc()
        self._durations.labels(outcome).observe(seconds)

    def engine_call(self, engine: str, step: str, outcome: str) -> None:
        """Count a call to an engine."""
        self._engine_calls.labels(engine, step, outcome).inc()

    def budget_wait(self, outcome: str, seconds: float) -> None:
        """Count a question that waited for budget."""
        self._budget_waits.labels(outcome).observe(seconds)

    def release_lookup(self, outcome: str) -> None:
        """Count a question by what the release store has for it."""
        self._lookups.labels(outcome).inc()
