"""Puts a region together: its records, its leases and its connection to the home."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from budget_service.configuration.budget_file import Configuration, ConfigurationError, Expired
from budget_service.configuration.region_file import RegionConfiguration
from budget_service.ledger.windows import SECOND
from budget_service.regions.counters import RegionCounters
from budget_service.regions.lease import RegionTerms
from budget_service.regions.lease_maintenance import LeaseMaintenance
from budget_service.regions.messages import HomeRefusedError, HomeUnavailableError
from budget_service.regions.records import RegionRecords, SqliteRecordStorage
from budget_service.regions.region import Region
from budget_service.server.home_channel import open_channel
from budget_service.server.home_client import Caller, CountedCaller, HomeClient
from budget_service.server.hosting import cancelled
from budget_service.stores.interface import Store, StoreError, StoreUnusableError, system_clock
from budget_service.stores.sqlite.store import VOLATILE

GIVE_BACK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RegionParts:
    """A region that runs."""

    maintenance: LeaseMaintenance
    home: Caller


def require_possible(configuration: Configuration, address: str) -> str:
    """Return the path of a region's ledger, or raise why its configuration cannot be a region's."""
    path = address.removeprefix("sqlite:")
    if path == address or Path(path) == VOLATILE:
        raise StoreUnusableError("a region keeps its ledger in SQLite, in a file: --store sqlite:PATH")
    if configuration.allow_volatile:
        raise _not_possible("allow_volatile", "false: a region that forgets grants its leases again")
    if configuration.leases is not None:
        raise _not_possible("leases", "none: only the home of regions lends, and a region is none")
    if configuration.counts_worst_cases:
        raise _not_possible("shared_levels", "actual: worst_case is not possible in a region")
    if configuration.expired is Expired.FORFEIT:
        raise _not_possible("expired_reservations", "return: forfeit is not possible in a region")
    return path


def _not_possible(field: str, wanted: str) -> ConfigurationError:
    return ConfigurationError(f"{field}: expected {wanted}")


@asynccontextmanager
async def running(region: RegionConfiguration, store: Store, path: str) -> AsyncIterator[RegionParts]:
    """Run a region's background work; in the end, report what was charged and give back what is left."""
    channel = open_channel(region)
    counters = RegionCounters()
    home = CountedCaller(channel, counters)
    records = await RegionRecords.opened(SqliteRecordStorage(Path(f"{path}.leases")), region.name)
    terms = RegionTerms(
        skew=round(region.skew_seconds * SECOND),
        idle=round(region.idle_seconds * SECOND),
        report=round(region.report_seconds * SECOND),
    )
    client = HomeClient(home, region.name, records)
    maintenance = LeaseMaintenance(
        Region(region.name, store, records, client, system_clock, terms, counters=counters)
    )
    task = asyncio.create_task(maintenance.run())
    try:
        yield RegionParts(maintenance, home)
    finally:
        await cancelled(task)
        # What cannot be given back now is when the region runs again, or counts as spent at its end.
        with suppress(HomeUnavailableError, HomeRefusedError, StoreError, TimeoutError):
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                await maintenance.give_back_all()
        await channel.close()
        await records.close()
