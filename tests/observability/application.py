"""An application that asks private questions with OpenTelemetry set up, as one in production has it.

python -m tests.observability.application DP BUDGET FOLDER

Spans go where the environment says; at the end it prints, in one line of JSON, what its meters counted.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pinot_connector import In, PrivateClient
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError, IncompleteAnswer
from pinot_connector.telemetry import request_id
from tests.observability.world import ACCOUNT, ELEMENT, LITERAL, POOR, REQUEST_ID


class Incomplete(DuckDBEngine):
    """An engine that leaves something out, and says so with what it knows."""

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Refuse to answer."""
        super().run(query, data_version)
        raise IncompleteAnswer(f"a server did not answer {ELEMENT}")


def main() -> None:
    """Ask one question of each kind of end."""
    dp, budget, folder = sys.argv[1:]
    provider = TracerProvider(resource=Resource.create({"service.name": "application"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    tables = {"engagement": Path(folder) / "engagement.parquet"}
    engine, incomplete = DuckDBEngine(tables), Incomplete(tables)
    with PrivateClient(dp=dp, budget=budget, account=ACCOUNT, engine=engine) as client:
        with request_id(REQUEST_ID):
            result = client.top_k("engagement", by="element", k=1, where={"kind": In([LITERAL])})
        assert [row.element for row in result.rows] == [(ELEMENT,)]
        client.sql(
            f"SELECT element, COUNT(DISTINCT member_id) FROM engagement WHERE kind = '{LITERAL}' "  # noqa: S608
            "GROUP BY element ORDER BY 2 DESC LIMIT 1"
        )
        client.remaining()
        with suppress(GrisError):
            client.top_k("engagement", by="kind", k=1, where={LITERAL: LITERAL})
    with PrivateClient(dp=dp, budget=budget, account=POOR, engine=engine) as client, suppress(GrisError):
        client.top_k("engagement", by="element", k=1)
    with (
        PrivateClient(dp=dp, budget=budget, account=ACCOUNT, engine=incomplete) as client,
        suppress(GrisError),
    ):
        client.top_k("engagement", by="element", k=1)
    provider.shutdown()
    print(json.dumps(_counted(reader)))


def _counted(reader: InMemoryMetricReader) -> dict[str, list[dict[str, object]]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: [dict(point.attributes or {}) for point in metric.data.data_points]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


if __name__ == "__main__":
    main()
