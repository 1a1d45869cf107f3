"""A region in this process: its real service, ledger engine and leases, with a clock that is the home's, or wrong."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.values import Account
from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.regions.counters import RegionCounters
from budget_service.regions.lease import RegionTerms
from budget_service.regions.lease_maintenance import LeaseMaintenance
from budget_service.regions.messages import HomeUnavailableError
from budget_service.regions.records import Key, RegionRecords, Rows
from budget_service.regions.region import Region
from budget_service.server.home_client import Answered, CountedCaller, HomeClient, HomeStatusError
from budget_service.server.regional_service import RegionalBudgetService
from budget_service.server.request_runner import RequestRunner
from budget_service.server.settings import LiveSettings, Settings
from budget_service.tuning import DEFAULTS
from tests.campaigns.regions.world import called
from tests.unit.budget_service.memory_transactions import MemoryTransactions
from tests.unit.budget_service.regions.home import CONFIGURATION, PATH, Home, MemoryLedger, cost

TERMS = RegionTerms(idle=15 * SECOND)


@dataclass
class MemoryRecordStorage:
    """Records in memory."""

    rows: dict[Key, bytes] = field(default_factory=dict)

    async def read(self) -> dict[Key, bytes]:
        """Return all rows."""
        return dict(self.rows)

    async def write(self, rows: Rows) -> None:
        """Write rows, all or nothing."""
        for key, value in rows.items():
            self.rows.pop(key, None)
            self.rows |= {} if value is None else {key: value}

    async def close(self) -> None:
        """Do nothing."""


class RegionLedger(MemoryLedger):
    """What is on a region's disk stays when its process ends."""

    def __init__(self, disk: MemoryTransactions) -> None:
        super().__init__(disk)

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """See `Store`."""
        found = self.disk.reservations.get((account.root, reservation_id))
        return found.query_id if found is not None and found.account == account else None


class RegionMachine:
    """A region's machine.

    Args:
        home: Where it borrows.
        name: The region's name.
        skew_seconds: By how much its clock is ahead.
    """

    def __init__(self, home: Home, name: str = "eu", skew_seconds: float = 0) -> None:
        self.home, self.name, self.skew_seconds = home, name, skew_seconds
        self.is_cut = self.loses_answers = False
        self.storage = MemoryRecordStorage()
        self.disk = MemoryTransactions(self.clock)
        self.trips: list[str] = []

    def clock(self) -> Microseconds:
        """Return the time of its clock."""
        return self.home.ledger.now + round(self.skew_seconds * SECOND)

    async def start(self) -> RegionMachine:
        """Start a process on what the disk has."""
        store: Any = RegionLedger(self.disk)
        records = await RegionRecords.opened(self.storage, self.name)
        counters = RegionCounters()
        caller = CountedCaller(self, counters)
        client = HomeClient(caller, self.name, records)
        self.region = Region(self.name, store, records, client, self.clock, TERMS, counters=counters)
        self.maintenance = LeaseMaintenance(self.region)
        settings = LiveSettings(Settings(CONFIGURATION))
        runner = RequestRunner(None, DEFAULTS)
        self.service = RegionalBudgetService(self.maintenance, caller, settings, runner)
        return self

    async def copied(self) -> RegionMachine:
        """Return a machine that starts on a copy of this one's disk."""
        other = RegionMachine(self.home, self.name)
        other.storage.rows |= self.storage.rows
        kept = copy.deepcopy(self.disk.__dict__ | {"clock": None, "trip": None})
        other.disk.__dict__.update(kept | {"clock": other.clock, "trip": other.disk.trip})
        return await other.start()

    async def call(self, method: str, request: Message, _answer: type[Answered]) -> Any:
        """Call the home; see `Caller`."""
        if self.is_cut:
            raise HomeUnavailableError(method)
        self.trips.append(method)
        answer = await self.home.call(method, request)
        if self.loses_answers:
            raise HomeUnavailableError(method)
        return answer

    async def asked(self, method: str, request: Message) -> Any:
        """Ask the region; the reason if it refuses."""
        try:
            return await asyncio.wait_for(called(self.service, method, request), 20)
        except HomeStatusError as error:
            info = ErrorInfo()
            return next(info.reason for each in error.status.details if each.Unpack(info))

    async def charge_unnamed(self, name: str, information: int = 5) -> Any:
        """Charge directly, without a question or a release."""
        request = pb.UpdateBudgetRequest(
            account=pb.Account(path=PATH), cost=cost(information), request_id=name
        )
        return await self.asked("UpdateBudget", request)

    async def charge(
        self, name: str, information: int = 5, question: str = "", path: tuple[str, ...] = PATH
    ) -> Any:
        """Charge a question of its own, or a named one, directly."""
        question = question or name
        request = pb.UpdateBudgetRequest(
            account=pb.Account(path=path),
            cost=cost(information),
            request_id=name,
            query_id=f"q-{question}",
            release_id=f"r-{question}",
        )
        return await self.asked("UpdateBudget", request)


# What a home lends at first: 20 % of 1000.
SHARE = 200


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the events that were logged."""
    return [each.event for each in caplog.records if hasattr(each, "event")]


async def settled(*machines: RegionMachine) -> None:
    """Have every region report, and give back all that it can."""
    for each in machines:
        for lease in list(each.region.records.leases.values()):
            each.region.stop_granting(lease)
        await each.maintenance.once()
