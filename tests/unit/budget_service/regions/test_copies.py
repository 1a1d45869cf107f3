"""Two copies of a region's ledger that run at once: all that they charge counts, and one of them stops."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from budget_service.ledger.windows import SECOND
from budget_service.regions.records import MAX_BEFORE, RegionRecords
from budget_service.server.hosting import REGION, RegionParts, serving
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.sqlite.store import SqliteStore
from tests.support.budget_process import NOT_SERVING, SERVING, health_becomes
from tests.unit.budget_service.regions.home import CONFIGURATION, Home
from tests.unit.budget_service.regions.region_machine import (
    SHARE,
    MemoryRecordStorage,
    RegionMachine,
    logged,
    settled,
)

OTHER = ("other", "bob")


async def borrowing(home: Home) -> RegionMachine:
    """Return a region that holds a share of which 5 are charged."""
    eu = await RegionMachine(home).start()
    assert (await eu.charge_unnamed("first")).charged.information == 5
    return eu


async def test_charges_without_releases_of_two_copies_all_count() -> None:
    """They have the same numbers and costs, and are different requests."""
    home = Home()
    eu = await borrowing(home)
    await eu.maintenance.once()
    twin = await eu.copied()
    for number in range(10):
        for name, each in (("eu", eu), ("twin", twin)):
            assert (await each.charge_unnamed(f"{name}-{number}", 7)).charged.information == 7
    for each in (twin, eu):
        await each.maintenance.once()
    assert (await home.counted())[0] == 5 + 2 * 10 * 7


async def test_a_copy_that_takes_its_place_stops_a_region(caplog: pytest.LogCaptureFixture) -> None:
    """The region hears of it with its next report, grants nothing more and says so; nor does its own next start."""
    home = Home()
    eu = await borrowing(home)
    await eu.maintenance.once()
    twin = await eu.copied()
    await twin.charge_unnamed("twin")
    await twin.maintenance.once()
    assert not twin.region.copied.is_set()
    await eu.charge_unnamed("one")
    assert not eu.region.copied.is_set()
    await eu.maintenance.once()
    assert eu.region.copied.is_set()
    events = logged(caplog)
    # The home says it once, and so does the region.
    assert events.count("region.copied") == 2
    assert home.lending.counts["copied"] > 0
    for machine in (eu, await eu.start()):
        home.ledger.now += 31 * SECOND
        assert (await machine.charge_unnamed(f"later-{home.ledger.now}")).charged.information == 5
        assert not any(each.share.information for each in machine.region.records.leases.values())
    assert not twin.region.copied.is_set()


@pytest.mark.parametrize("home_forgets", [False, True])
@pytest.mark.parametrize("holds_share", [False, True])
async def test_of_one_snapshot_that_is_started_twice_only_the_first_start_borrows(
    home_forgets: bool, holds_share: bool
) -> None:
    """The second one is refused however often it starts, whether it reports or asks, however silent the first is."""
    home = Home()
    eu = await borrowing(home)
    await (eu.maintenance.once() if holds_share else settled(eu))
    first, second = await eu.copied(), await eu.copied()
    await first.charge_unnamed("first-1")
    await first.maintenance.once()
    if home_forgets:
        home.lending._starts.clear()
        await first.charge("first-2", path=OTHER)
    for number in range(3):
        home.ledger.now += 31 * SECOND
        await second.charge_unnamed(f"second-{number}")
        await second.maintenance.once()
        assert second.region.copied.is_set()
        assert not any(each.share.information for each in second.region.records.leases.values())
        await second.start()
    await first.start()
    await first.charge("first-3", path=OTHER)
    assert not first.region.copied.is_set()


async def test_a_copy_gives_nothing_back() -> None:
    """The other one may have granted from the same lease, so that what this one has left of it is not free."""
    home = Home()
    eu = await borrowing(home)
    await eu.maintenance.once()
    twin = await eu.copied()
    await twin.charge("twin", path=OTHER)
    await settled(eu)
    assert not eu.region.records.leases
    assert await home.counted() == (5, SHARE - 5)
    await settled(twin)
    assert await home.counted() == (5, 0)


@pytest.mark.parametrize("lost", [0, 1, 2])
async def test_a_region_that_starts_again_borrows_at_once(lost: int) -> None:
    """Also if the home has heard of the starts before, and they of nothing that it answered."""
    home = Home()
    eu = await borrowing(home)
    await settled(eu)
    eu.loses_answers = True
    for number in range(lost):
        await eu.start()
        await eu.charge_unnamed(f"lost-{number}")
    eu.loses_answers = False
    await eu.start()
    await eu.charge_unnamed("again")
    assert any(each.share.information for each in eu.region.records.leases.values())
    assert not eu.region.copied.is_set()


async def test_a_copy_says_so_in_its_health(tmp_path: Path) -> None:
    """Under a name of its own: it goes on to serve, by its home."""
    eu = await RegionMachine(Home()).start()
    settings = LiveSettings(Settings(CONFIGURATION))
    parts = cast(RegionParts, SimpleNamespace(maintenance=eu.maintenance, home=eu))
    store = SqliteStore.open(tmp_path / "eu.db")
    async with serving(Ledger(store), settings, "127.0.0.1:0", region=parts) as address:
        await health_becomes(address, SERVING, REGION)
        eu.region.note_copied()
        await health_becomes(address, NOT_SERVING, REGION)
        await health_becomes(address, SERVING)
    await store.close()


async def test_a_start_names_few_of_the_starts_before_it() -> None:
    """The one that the home has answered last, and the newest of those since."""
    storage = MemoryRecordStorage()
    answered = await RegionRecords.opened(storage, "eu")
    await answered.acknowledge()
    since = [(await RegionRecords.opened(storage, "eu")).instance for _ in range(40)]
    before = (await RegionRecords.opened(storage, "eu")).before
    assert before == (answered.instance, *since[1 - MAX_BEFORE :])
