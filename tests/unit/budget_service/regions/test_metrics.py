"""What regions and their home show to Prometheus, beside what has happened."""

from __future__ import annotations

from collections import Counter

import pytest
from prometheus_client import CollectorRegistry

from budget_service.ledger.values import Unit
from budget_service.ledger.windows import SECOND
from budget_service.server.region_metrics import LendingMetrics, RegionMetrics
from budget_service.stores.ledger_engine import RECLAIMED
from tests.unit.budget_service.regions.home import Home
from tests.unit.budget_service.regions.region_machine import RegionMachine

SHARE = 200
LENGTH = 60


class Shown:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reclaimed_before = RECLAIMED.copy()

    def value(self, name: str, **labels: str) -> float:
        """Return a metric's value, 0 if it does not exist yet."""
        return self.registry.get_sample_value(f"gris_{name}", labels) or 0

    def events(self) -> Counter[str]:
        """Return the events of a region that were counted."""
        found = {
            each.labels["event"]: int(each.value)
            for family in self.registry.collect()
            for each in family.samples
            if each.name == "gris_region_events_total"
        }
        return Counter({name: count for name, count in found.items() if count})

    def units(self, event: str) -> float:
        """Return the units of information that were borrowed, or what became of them."""
        return self.value("region_units_total", event=event, unit="information")

    def reclaimed(self, unit: Unit) -> float:
        """Return how much was reclaimed, by whatever home of this process, since this was made."""
        return self.value("lending_reclaimed_total", unit=unit.value) - self._reclaimed_before[unit]


async def started(home: Home, skew_seconds: float = 0) -> tuple[RegionMachine, Shown]:
    """Start a region, and show its metrics."""
    machine, shown = await RegionMachine(home, skew_seconds=skew_seconds).start(), Shown()
    RegionMetrics(shown.registry, lambda: machine.region)
    return machine, shown


def shown_of(home: Home) -> Shown:
    """Show the metrics of a home."""
    shown = Shown()
    LendingMetrics(shown.registry, home.lending.counts)
    return shown


async def test_metrics_follow_a_share_from_its_loan_to_its_return() -> None:
    """What is held, idle, charged and given back, and as many trips as the home was asked for."""
    home = Home()
    (eu, region), lender = await started(home), shown_of(home)
    await eu.charge("one", 5)
    await eu.charge("two", 7)
    held = {unit: region.value("region_held", unit=unit) for unit in ("information", "calls")}
    assert held == {"information": SHARE, "calls": 20}
    assert region.value("region_idle", unit="information") == 0
    assert region.value("region_leases", state="active") == 1
    home.ledger.now += 8 * SECOND
    await eu.maintenance.report()
    held = {unit: region.value("region_held", unit=unit) for unit in ("information", "calls")}
    assert held == {"information": SHARE - 12, "calls": 18}
    assert region.value("region_idle", unit="information") == SHARE - 12
    home.ledger.now += 8 * SECOND
    await eu.maintenance.once()
    assert region.value("region_held", unit="information") == 0
    assert (region.units("borrowed"), region.units("charged"), region.units("given_back")) == (SHARE, 12, 188)
    assert region.events() == {"granted": 2, "trips": 3, "given_back": 1, "answered": 3}
    assert len(eu.trips) == 3
    assert (await eu.charge("large", 500)).charged.information == 500
    assert region.events()["forwarded"] == 1
    counted = {each: lender.value("lending_events_total", event=each) for each in home.lending.counts}
    assert counted == {"lent": 1, "reported": 2, "unknown": 0, "returned": 1, "too_large": 1}
    assert lender.reclaimed(Unit.INFORMATION) == 0


@pytest.mark.parametrize("restarts", [False, True])
async def test_metrics_tell_a_home_that_is_away_and_what_that_costs(restarts: bool) -> None:
    """Every call without an answer counts; what was not reported by the end of the lease is reclaimed at the home.

    A region that has started again meanwhile gets nothing of it back.
    """
    home = Home()
    (eu, region), lender = await started(home), shown_of(home)
    await eu.charge("one", 5)
    await eu.maintenance.report()
    eu.is_cut = True
    await eu.charge("two", 7)
    for _ in range(3):
        with pytest.raises(Exception, match="ReportCharges"):
            await eu.maintenance.once()
    assert (region.events()["unanswered"], region.events()["answered"]) == (3, 2)
    home.ledger.now += (LENGTH + 1) * SECOND
    assert await eu.charge("three") == "OUTCOME_UNKNOWN"
    if restarts:
        await eu.start()
    eu.is_cut = False
    await eu.maintenance.once()
    assert await home.counted() == (SHARE if restarts else 12, 0)
    assert lender.reclaimed(Unit.INFORMATION) == SHARE - 5
    assert lender.reclaimed(Unit.CALLS) == 19
    lapsed, given_back = (SHARE - 5, 0) if restarts else (0, SHARE - 12)
    assert (region.units("lapsed"), region.units("given_back")) == (lapsed, given_back)
    assert region.events()["lapsed"] == restarts


@pytest.mark.parametrize("skew_seconds", [-3, 1.5, 3])
async def test_metrics_say_how_far_clocks_differ(skew_seconds: float) -> None:
    """With the sign of who is ahead; only beyond what is allowed it is a wrong clock, which grants nothing."""
    eu, region = await started(Home(), skew_seconds)
    assert (await eu.charge("one")).charged.information == 5
    assert region.value("region_clock_difference_seconds") == skew_seconds
    is_wrong = abs(skew_seconds) > 2
    assert (region.events()["wrong_clock"], region.events()["granted"]) == (is_wrong, not is_wrong)


async def test_metrics_tell_a_home_that_refuses_from_one_that_is_away() -> None:
    """A region with the name of another one is refused, and what it passes on is answered, as is a client's mistake."""
    home = Home()
    first, _ = await started(home)
    await first.charge("one")
    second, region = await started(home)
    assert (await second.charge("two")).charged.information == 5
    assert region.events()["refused"] == 1
    assert await second.charge("much", 10_000) == "BUDGET_EXHAUSTED"
    assert region.events()["unanswered"] == 0
    assert region.events()["answered"] == 2
    assert shown_of(home).value("lending_events_total", event="taken") == 1
