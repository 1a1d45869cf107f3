"""What a `budget.yaml` with many entries costs beside one with few, in the same run, turn by turn, on SQLite.

    python -m bench entries                          # 1,000 and 20,000 entries
    python -m bench entries --entries 1000 5000

Every third entry is a root account; the others are patterns below it. The services run in this process, one for each
number of entries, and each call is made on both in turn. A pause is how much later than planned the event loop came to
run anything while the file was read again.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2_grpc
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2

from budget_service.server.hosting import administering, serving
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, load_settings
from budget_service.stores.opening import open_store

LIMIT = "limit: {information: 1000000000, calls: 1000000000}"
PATHS = ("[c{0}]", '[c{0}, "*"]', '[c{0}, "*", "*"]')
UNIT = "0123456789abcdef" * 2
READS = 3
TICK_SECONDS = 0.001


@dataclass(frozen=True)
class Target:
    """A service whose configuration has so many entries, of which the last are about the root account."""

    entries: int
    path: Path
    settings: LiveSettings
    root: str
    service: Any
    admin: Any

    async def charge(self) -> None:
        """Charge an account of which nothing is known."""
        account = pb.Account(path=[self.root, "x", uuid.uuid4().hex])
        cost = cost_pb2.Cost(information=1, calls=1, unit_id=UNIT)
        await self.service.UpdateBudget(
            pb.UpdateBudgetRequest(account=account, cost=cost, request_id=uuid.uuid4().hex)
        )

    async def get(self) -> None:
        """Read a budget of which nothing is known."""
        account = pb.Account(path=[self.root, "x", uuid.uuid4().hex])
        await self.service.GetBudget(pb.GetBudgetRequest(account=account))

    async def set(self) -> None:
        """Change a limit."""
        limit = admin_pb2.Limit(information=9, mode=pb.MODE_ENFORCE, period=admin_pb2.PERIOD_MONTH)
        change = admin_pb2.LimitChange(path=[self.root, "y"], limit=limit)
        await self.admin.SetLimits(admin_pb2.SetLimitsRequest(request_id=uuid.uuid4().hex, changes=[change]))


@asynccontextmanager
async def _target(folder: Path, entries: int) -> AsyncIterator[Target]:
    path = folder / f"{entries}.yaml"
    lines = [
        f"  - {{path: {each.format(number)}, {LIMIT}}}" for number in range(entries // 3) for each in PATHS
    ]
    path.write_text("\n".join(("accounts:", *lines)))
    settings = LiveSettings(load_settings(path))
    async with AsyncExitStack() as stack:
        store = await open_store(f"sqlite:{folder}/{entries}.db", allow_volatile=False)
        stack.push_async_callback(store.close)
        ledger = Ledger(store)
        address = await stack.enter_async_context(serving(ledger, settings, "127.0.0.1:0"))
        for_admin = await stack.enter_async_context(administering(ledger, settings, "127.0.0.1:0"))
        one, two = [
            await stack.enter_async_context(grpc.aio.insecure_channel(each)) for each in (address, for_admin)
        ]
        service, admin = budget_pb2_grpc.BudgetServiceStub(one), admin_pb2_grpc.BudgetAdminServiceStub(two)
        yield Target(entries, path, settings, f"c{entries // 3 - 1}", service, admin)


async def measure(entries: list[int], calls: int) -> None:
    """Print a row for each kind of work: its time with each number of entries, and the ratio to the first."""
    with tempfile.TemporaryDirectory(prefix="gris-bench-") as folder:
        async with AsyncExitStack() as stack:
            targets = [await stack.enter_async_context(_target(Path(folder), each)) for each in entries]
            print(f"{'ms, median':32}{''.join(f'{each:>12,}' for each in entries)}{'ratio':>9}")
            for name, kind in (
                ("charge, new account", Target.charge),
                ("GetBudget", Target.get),
                ("SetLimits", Target.set),
            ):
                _print(name, await _timed(targets, kind, calls))
            reads: list[list[float]] = [[] for _ in targets]
            pauses: list[list[float]] = [[] for _ in targets]
            for _ in range(READS):
                for target, read, pause in zip(targets, reads, pauses, strict=True):
                    seconds, longest = await _reload(target)
                    read.append(seconds)
                    pause.append(longest)
            _print("the file is read", reads)
            _print("longest pause meanwhile", pauses)


async def _timed(
    targets: list[Target], kind: Callable[[Target], Awaitable[None]], calls: int
) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in targets]
    for _ in range(calls):
        for target, times in zip(targets, found, strict=True):
            began = time.perf_counter()
            await kind(target)
            times.append(time.perf_counter() - began)
    return found


async def _reload(target: Target) -> tuple[float, float]:
    reading = asyncio.create_task(asyncio.to_thread(target.settings.reload, target.path))
    began = time.perf_counter()
    longest = 0.0
    while not reading.done():
        before = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        longest = max(longest, time.perf_counter() - before - TICK_SECONDS)
    return time.perf_counter() - began, longest


def _print(name: str, found: list[list[float]]) -> None:
    medians = [1e3 * statistics.median(times) for times in found]
    print(f"{name:32}{''.join(f'{each:12.2f}' for each in medians)}{medians[-1] / medians[0]:9.2f}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        "python -m bench entries",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--entries", nargs="+", type=int, default=[1000, 20_000])
    parser.add_argument("--calls", type=int, default=300, help="of each kind on each service")
    options = parser.parse_args()
    asyncio.run(measure(options.entries, options.calls))


if __name__ == "__main__":
    main()
