"""What a region reports by itself, whatever the home thinks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.message import Message
from google.rpc import code_pb2
from google.rpc.status_pb2 import Status
from gris_api.budget.v1 import regions_pb2

from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.windows import SECOND
from budget_service.regions.lease import Lease, LeaseState
from budget_service.regions.lease_maintenance import BATCH, LeaseMaintenance
from budget_service.regions.messages import HomeUnavailableError
from budget_service.regions.records import RegionRecords
from budget_service.regions.region import Region
from budget_service.server.home_client import Answered, HomeClient, HomeStatusError
from budget_service.server.service import MAX_REQUEST_BYTES
from tests.support.budget_samples import UNIT
from tests.unit.budget_service.regions.home import Home, MemoryLedger
from tests.unit.budget_service.regions.region_machine import MemoryRecordStorage

STATEMENT = ",".join(f"{number:032x}:1/1000:1/1000000" for number in range(20))
ANN, BOB = Account(("acme", "ann")), Account(("other", "bob"))


@dataclass
class Way:
    """The way to a home that reads no message of more than 64 KiB, as its server does, and no report that is `lost`."""

    home: Home
    refused: str = ""
    most: int = 10_000
    reports: int = 0

    async def call(self, method: str, request: Message, _answer: type[Answered]) -> Any:
        """See `Caller`."""
        if request.ByteSize() > MAX_REQUEST_BYTES:
            raise HomeStatusError(Status(code=code_pb2.RESOURCE_EXHAUSTED, message="too large"))
        if isinstance(request, regions_pb2.ReportChargesRequest):
            self.reports += 1
            if any(each.account.path[0] == self.refused for each in request.charges):
                raise HomeStatusError(Status(code=code_pb2.INVALID_ARGUMENT, message="no"))
            if len(request.charges) > self.most:
                raise HomeUnavailableError("it took too long")
        return await self.home.call(method, request)


async def region_of(way: Way) -> LeaseMaintenance:
    """Return a region."""
    ledger: Any = MemoryLedger()
    records = await RegionRecords.opened(MemoryRecordStorage(), "eu")
    return LeaseMaintenance(Region("eu", ledger, records, HomeClient(way, "eu", records), lambda: ledger.now))


async def charge(maintenance: LeaseMaintenance, account: Account, name: str, statement: str = "") -> None:
    """Charge one unit in a region."""
    request = Charge(
        account=account,
        request_id=name,
        cost=Cost(1, 0),
        unit_id=UNIT,
        reservation_id="",
        release_id=f"{name:0>64}",
        query_id=f"{name:0>64}",
        policy_statement=statement,
    )
    answer = await maintenance.region.grant(request)
    assert answer is not None


async def test_reports_fit_into_messages_that_the_home_reads() -> None:
    """However long the ids and statements of many charges are together."""
    home = Home()
    maintenance = await region_of(Way(home))
    for number in range(BATCH // 2):
        await charge(maintenance, ANN, str(number), STATEMENT)
    await maintenance.report()
    assert (await home.counted())[0] == BATCH // 2


async def test_a_report_that_fails_is_sent_in_smaller_parts() -> None:
    """A home that is too slow for many charges at once gets fewer, until they all have arrived."""
    home = Home()
    maintenance = await region_of(Way(home, most=10))
    for number in range(40):
        await charge(maintenance, ANN, str(number))
    for _ in range(20):
        try:
            await maintenance.report()
            break
        except HomeUnavailableError:
            continue
    assert (await home.counted())[0] == 40


async def test_a_root_that_is_refused_keeps_nothing_of_others_back() -> None:
    """Theirs is reported and given back; its own lease is not given back before its charges are counted."""
    home = Home()
    way = Way(home, refused="acme")
    maintenance = await region_of(way)
    await charge(maintenance, ANN, "1")
    await charge(maintenance, BOB, "2")
    region = maintenance.region
    for account in (ANN, BOB):
        region.retire(account)
    with pytest.raises(Exception, match="no"):
        await maintenance.once()
    assert [each.account for each in region.records.leases.values()] == [ANN]
    spent, held = await home.counted()
    assert (spent, held > 0) == (0, True)
    assert (await home.counted(BOB.path)) == (1, 0)
    way.refused = ""
    await maintenance.once()
    assert await home.counted() == (1, 0)


@pytest.mark.parametrize("ids", ["ab", "ba"])
async def test_a_region_knows_what_is_lent_by_the_newest_lease_that_it_grants_from(ids: str) -> None:
    """After a new start as well, in whatever order its file has them; by none that it does not grant from."""
    unused: Any = object()
    records = await RegionRecords.opened(MemoryRecordStorage(), "eu")
    old, new = (
        Lease(
            lease_id=32 * id_,
            account=ANN,
            unit_id=UNIT,
            state=state,
            granted_at=(1 + number) * SECOND,
            ends_at=(100 + number) * SECOND,
        )
        for number, (id_, state) in enumerate(zip(ids, (LeaseState.RETIRING, LeaseState.ACTIVE), strict=True))
    )
    records.leases = {each.lease_id: each for each in sorted((old, new), key=lambda each: each.lease_id)}
    now = [10 * SECOND]
    region = Region("eu", unused, records, unused, lambda: now[0])
    assert [region.is_lent(each) for each in (ANN, BOB)] == [True, False]
    now[0] = new.ends_at
    assert not region.is_lent(ANN)
