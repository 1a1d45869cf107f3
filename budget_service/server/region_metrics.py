"""Metrics of regions: what a region holds and does, and what a home lends. Never by account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from budget_service.ledger.values import Unit
from budget_service.ledger.windows import SECOND
from budget_service.regions.lease import LeaseState
from budget_service.regions.region import Region
from budget_service.stores.ledger_engine import RECLAIMED


class RegionMetrics(Collector):
    """Reads a region's counters when they are asked for."""

    def __init__(self, registry: CollectorRegistry, region: Callable[[], Region | None]) -> None:
        self._region = region
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the present values."""
        region = self._region()
        if region is None:
            return
        leases = list(region.records.leases.values())
        held = GaugeMetricFamily(
            "gris_region_held", "What is left of all shares, as far as the home knows", labels=("unit",)
        )
        idle = GaugeMetricFamily(
            "gris_region_idle",
            "The part of it that nobody has used for half of idle_seconds",
            labels=("unit",),
        )
        for unit in Unit:
            held.add_metric((unit.value,), sum(each.rest.of(unit) for each in leases))
            unused = (each for each in leases if region.is_idle(each))
            idle.add_metric((unit.value,), sum(each.rest.of(unit) for each in unused))
        yield held
        yield idle
        units = CounterMetricFamily(
            "gris_region_units", "Units borrowed, and what became of them", labels=("event", "unit")
        )
        for (event, unit), count in region.counters.units.items():
            units.add_metric((event, unit.value), count)
        yield units
        states = GaugeMetricFamily("gris_region_leases", "Leases by state", labels=("state",))
        for state in LeaseState:
            states.add_metric((state.value,), sum(each.state is state for each in leases))
        yield states
        yield GaugeMetricFamily(
            "gris_region_clock_difference_seconds",
            "By how much this clock was ahead of the home's, at least, at the last loan",
            value=region.counters.clock_difference / SECOND,
        )
        events = CounterMetricFamily("gris_region_events", "What the region has done", labels=("event",))
        for name, count in region.counters.events.items():
            events.add_metric((name,), count)
        yield events


class LendingMetrics(Collector):
    """Reads a home's counts when they are asked for."""

    def __init__(self, registry: CollectorRegistry, counts: Counter[str]) -> None:
        self._counts = counts
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the present values."""
        family = CounterMetricFamily("gris_lending_events", "What was lent to regions", labels=("event",))
        for name, count in self._counts.items():
            family.add_metric((name,), count)
        yield family
        reclaimed = CounterMetricFamily(
            "gris_lending_reclaimed", "Units spent because a region was lost", labels=("unit",)
        )
        for unit in Unit:
            reclaimed.add_metric((unit.value,), RECLAIMED[unit])
        yield reclaimed
