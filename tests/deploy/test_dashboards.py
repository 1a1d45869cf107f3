"""The dashboard and the alerts ask only for metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, CollectorRegistry

from budget_service.ledger.values import Cost
from budget_service.regions.records import RegionRecords
from budget_service.regions.region import Region
from budget_service.server.metrics import LedgerMetrics
from budget_service.server.region_metrics import LendingMetrics, RegionMetrics
from gris_gateway.metrics import ReleaseStoreMetrics
from gris_serving.call_outcome import CallOutcome
from gris_serving.metrics import CallMetrics, Readiness
from pinot_connector.release_store import StoreStatistics
from pinot_connector.telemetry import Meters
from tests.deploy.manifests import deployments
from tests.support.paths import ROOT
from tests.support.some import some

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "gris.json"
SCRAPING = ROOT / "deploy" / "prometheus" / "scrape.yml"
GUIDE = ROOT / "docs" / "monitoring.md"
REGIONS = ROOT / "docs" / "regions.md"
OF_PROMETHEUS = {"job", "instance", "le"}
_MATCHED = re.compile(r"(\w+)(?:=~|!=|!~|=)\"")


@pytest.fixture(scope="module")
def existing() -> dict[str, set[str]]:
    """The labels of every series that services and connector make, as Prometheus sees them."""
    registry = CollectorRegistry()
    unused: Any = None
    region = Region("eu", unused, RegionRecords(unused), unused, lambda: 0)
    region.counters.add("borrowed", Cost(1, 1))
    CallMetrics(registry).of("s", "m").failed(CallOutcome("c", "r", 1))
    Readiness(registry).report("c", serving=True)
    ledger = LedgerMetrics(registry)
    ledger.recorders()
    ledger.administrator_recorders()
    reader = PrometheusMetricReader()
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    meters = Meters(provider)
    meters.question("answered", 1.0)
    meters.engine_call("pinot", "run", "answered")
    meters.budget_wait("answered", 1.0)
    meters.release_lookup("given")
    ReleaseStoreMetrics(registry).report(StoreStatistics(1, 0, 1))
    LendingMetrics(registry, Counter(lent=1))
    RegionMetrics(registry, lambda: region)
    # What Prometheus adds for each target.
    found = {**_series(registry), **_series(REGISTRY), "up": OF_PROMETHEUS}
    provider.shutdown()
    return found


def _series(registry: CollectorRegistry) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for family in registry.collect():
        for sample in (each for each in family.samples if not each.name.endswith("_created")):
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def queries() -> Iterator[str]:
    """Give every query of the dashboard and of the alerts."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for rule in rules():
        yield rule["expr"]


def rules() -> list[dict[str, Any]]:
    """Return every alert."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("query", list(queries()))
def test_a_query_asks_only_for_what_exists(query: str, existing: dict[str, set[str]]) -> None:
    """It is PromQL, and every metric and every label that it selects by is one that is made."""
    text = str(promql_parser.parse(query).prettify())
    names = re.findall(r"\bgris_\w+|\bup\b", text)
    assert names
    for name in names:
        assert name in existing
    labels = set().union(*(existing[name] for name in names)) | OF_PROMETHEUS
    assert set(_MATCHED.findall(text)) <= labels


def scraped() -> set[str]:
    """Return the jobs that scrape.yml makes: of the label that it keeps, under a prefix."""
    (found,) = yaml.safe_load(SCRAPING.read_text())["scrape_configs"]
    reported = [each for each in found["relabel_configs"] if "app_kubernetes_io_name" in str(each)]
    kept, named = ({key: each[key] for key in each if key != "source_labels"} for each in reported)
    assert kept.pop("action") == "keep"
    assert named == {"target_label": "job", "replacement": "gris-$1"}
    return {f"gris-{name}" for name in kept["regex"].strip("()").split("|")}


def test_alerts_miss_every_job_that_is_scraped() -> None:
    """Both services and the gateway: each by its name, all its replicas or one of them, whether known or not.

    Which regions there should be nobody knows but by what there was.
    """
    reported = {rule["alert"]: rule["expr"] for rule in rules()}
    gone = reported["GrisServiceGone"] + " or " + reported["GrisGatewayGone"]
    assert set(re.findall(r'absent\(up\{job="([\w-]+)"\}\)', gone)) == scraped() - {"gris-region"}
    for expression in (gone, reported["GrisReplicaGone"]):
        zero = re.findall(r'up\{job=~?"([\w|-]+)"\}\)? == 0', expression)
        assert {name for each in zero for name in each.split("|")} == scraped() - {"gris-region"}
    assert 'max_over_time(sum(up{job="gris-region"})' in reported["GrisRegionGone"]


@pytest.mark.usefixtures("starts_processes")
def test_what_has_metrics_on_kubernetes_is_scraped() -> None:
    """Every Deployment that names a port so."""
    pods = {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]: each["spec"]["template"][
            "spec"
        ]
        for each in deployments("regions").values()
    }
    with_metrics = {
        f"gris-{name}"
        for name, pod in pods.items()
        if any(port["name"] == "metrics" for container in pod["containers"] for port in container["ports"])
    }
    assert with_metrics == scraped()


def test_every_alert_has_a_severity_and_a_sentence() -> None:
    """What it means and what to do stands in the guide."""
    for rule in some(rules()):
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"].endswith(".")


def test_every_metric_is_explained_to_operators(existing: dict[str, set[str]]) -> None:
    """By its name, without the endings that Prometheus adds to it, with its labels where those are written too."""
    guide = GUIDE.read_text() + REGIONS.read_text()
    names = {re.sub(r"_(bucket|count|sum)$", "", name) for name in existing if name.startswith("gris_")}
    assert names
    assert [name for name in names if not re.search(f"`{name}(`|{{)", guide)] == []


def test_panels_have_places_of_their_own() -> None:
    """Ids are unique, and each panel has a title and its place in a row of 24."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"]
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24


def test_what_is_kept_and_what_waits_is_shown_and_alerted() -> None:
    """Hits of the release store, its size and what nobody has paid for, and waits for held budget."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    row = [panel for panel in panels if "gris_release_" in json.dumps(panel.get("targets", ""))]
    assert len({panel["gridPos"]["y"] for panel in row}) == 1
    shown = "\n".join(target["expr"] for panel in panels for target in panel.get("targets", ()))
    for name in (
        "gris_release_lookups_total",
        "gris_release_store_releases",
        "gris_release_store_bytes",
        "gris_budget_wait_seconds",
    ):
        assert name in shown
    alerts = {rule["alert"]: rule["expr"] for rule in rules()}
    assert "gris_release_store_up" in alerts["GrisReleaseStoreDead"]
    assert "gris_release_store_bytes" in alerts["GrisReleaseStoreGrows"]
    assert 'gris_release_store_releases{state="unpaid"}' in alerts["GrisReleasesUnpaid"]
    assert 'outcome="budget_held"' in alerts["GrisBudgetHeld"]
