"""A region beside a single service: the time of a lone charge, and how many charges need no wide-area trip.

Home, region and the single service are processes of this machine; a proxy between home and region adds 40 ms each way.

    python -m bench.regions --charges 2000
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import grpc
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from tests.support.budget_process import service
from tests.support.proxy import Proxy

DELAY_SECONDS = 0.04
UNIT = "0123456789abcdef" * 2
LIMITS = """
accounts:
  - path: [acme]
    limit: {information: 1000000000, calls: 1000000000}
  - path: [acme, ann]
    limit: {information: 30000, calls: 30000}
"""
LENDING = "leases: {share_percent: 10}\n"


async def charged(stub: Any, name: str) -> float:
    """Charge once and return the seconds that it took."""
    request = budget_pb2.UpdateBudgetRequest(
        account=budget_pb2.Account(path=["acme", "ann"]),
        cost=cost_pb2.Cost(information=5, calls=1, unit_id=UNIT),
        request_id=name,
        query_id=f"query-{name}",
        release_id=f"release-{name}",
    )
    began = time.perf_counter()
    await stub.UpdateBudget(request)
    return time.perf_counter() - began


async def measured(single: str, region: str, charges: int) -> tuple[list[float], list[float]]:
    """Charge at both in turn, so that what else the machine does concerns both; return their seconds."""
    alone: list[float] = []
    near: list[float] = []
    async with grpc.aio.insecure_channel(single) as first, grpc.aio.insecure_channel(region) as second:
        stubs = budget_pb2_grpc.BudgetServiceStub(first), budget_pb2_grpc.BudgetServiceStub(second)
        for number in range(charges):
            alone.append(await charged(stubs[0], f"single-{number}"))
            near.append(await charged(stubs[1], f"region-{number}"))
    return alone, near


async def compared(folder: Path, charges: int) -> None:
    """Run all processes and print what was measured."""
    for name in ("home", "region", "single"):
        (folder / name).mkdir()
    proxy = Proxy(delay_seconds=DELAY_SECONDS)
    home_store, region_store = f"sqlite:{folder}/home/ledger.db", f"sqlite:{folder}/region/ledger.db"
    with service(folder / "home", home_store, configuration=LENDING + LIMITS) as home:
        proxy.upstream = home.address
        async with proxy.listening():
            file = folder / "region.yaml"
            file.write_text(f"name: eu\nhome: {proxy.address}\n")
            options = ("--region", str(file))
            with (
                service(folder / "region", region_store, *options, configuration=LIMITS) as region,
                service(
                    folder / "single", f"sqlite:{folder}/single/ledger.db", configuration=LIMITS
                ) as single,
            ):
                alone, near = await measured(single.address, region.address, charges)
    local = sum(each < 2 * DELAY_SECONDS for each in near)
    print(
        f"{charges} lone charges, in turn at each; {2 * DELAY_SECONDS * 1000:.0f} ms between region and home and back"
    )
    print(f"single service  p50 {1000 * median(alone):6.2f} ms")
    print(f"region          p50 {1000 * median(near):6.2f} ms   {median(near) / median(alone):.2f} of it")
    print(f"without a wide-area trip: {local} of {charges}, {100 * local / charges:.1f} %")


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--charges", type=int, default=2000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compared(Path(folder), chosen.charges))


if __name__ == "__main__":
    main()
