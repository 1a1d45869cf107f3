"""A home and a region as processes, with a network between them that can be cut."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from tests.support.budget_process import service
from tests.support.budget_samples import UNIT
from tests.support.proxy import Proxy

HOME = """
leases: {share_percent: 20}
accounts:
  - path: [acme]
    limit: {information: 10000, calls: 1000}
  - path: [acme, ann]
    limit: {information: 1000, calls: 100}
"""
REGION = HOME.replace("leases: {share_percent: 20}\n", "")
ANN = budget_pb2.Account(path=["acme", "ann"])

pytestmark = pytest.mark.usefixtures("starts_processes")


def charge(number: int, information: int = 5) -> budget_pb2.UpdateBudgetRequest:
    """Return a charge of its own."""
    return budget_pb2.UpdateBudgetRequest(
        account=ANN,
        cost=cost_pb2.Cost(information=information, calls=1, unit_id=UNIT),
        request_id=f"charge-{number}",
        query_id=f"query-{number}",
        release_id=f"release-{number}",
    )


async def until_spent(home: Any, spent: int) -> budget_pb2.GetBudgetResponse:
    """Wait until the home has recorded so much."""
    async with asyncio.timeout(20):
        while True:
            request = budget_pb2.GetBudgetRequest(account=ANN, with_region_shares=True)
            found: budget_pb2.GetBudgetResponse = await home.GetBudget(request)
            if found.levels[-1].spent.information == spent:
                return found
            await asyncio.sleep(0.05)


async def test_a_region_that_is_cut_off_spends_what_it_holds(tmp_path: Path) -> None:
    """It reports when the home is back, and gives back the rest when it ends."""
    at_home, in_region = tmp_path / "home", tmp_path / "region"
    at_home.mkdir()
    in_region.mkdir()
    proxy = Proxy()
    with service(at_home, f"sqlite:{at_home}/ledger.db", configuration=HOME) as home:
        proxy.upstream = home.address
        async with proxy.listening(), grpc.aio.insecure_channel(home.address) as to_home:
            central: Any = budget_pb2_grpc.BudgetServiceStub(to_home)
            file = in_region / "region.yaml"
            file.write_text(f"name: eu\nhome: {proxy.address}\nreport_seconds: 0.1\n")
            options = ("--region", str(file))
            with service(
                in_region, f"sqlite:{in_region}/ledger.db", *options, configuration=REGION
            ) as region:
                async with grpc.aio.insecure_channel(region.address) as to_region:
                    near: Any = budget_pb2_grpc.BudgetServiceStub(to_region)
                    first = await near.UpdateBudget(charge(1))
                    assert first.charged.information == 5
                    found = await until_spent(central, 5)
                    assert [(each.region, each.held.information) for each in found.region_shares] == [
                        ("eu", 195)
                    ]

                    upstream, proxy.upstream = proxy.upstream, "127.0.0.1:9"
                    proxy.cut()
                    for number in range(2, 6):
                        assert (await near.UpdateBudget(charge(number))).charged.information == 5
                    assert (await near.UpdateBudget(charge(3))).replayed
                    with pytest.raises(grpc.aio.AioRpcError) as refused:
                        await near.UpdateBudget(charge(6, information=300))
                    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE

                    proxy.upstream = upstream
                    await until_spent(central, 25)
                assert await asyncio.to_thread(region.end, signal.SIGTERM) == 0
            found = await until_spent(central, 25)
            assert not found.region_shares
            assert found.levels[-1].reserved.information == 0
