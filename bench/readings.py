"""Charges beside an administrator who has the whole ledger read, as a ratio to charges alone, in the same run.

    python -m bench readings --store sqlite --entries 100000 1000000

One caller charges one account after the other. First it is alone; then each reading runs beside it, from its beginning
to its end, and health is asked all the time. Where other work keeps the machine busy, a lone charge is sometimes slow
too: so the median, the 99th percentile and the slowest charge are each compared with the same of charges alone.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2_grpc
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.budget.__main__ import CONFIGURATION
from bench.budget.fill import TEMPLATE, account_of, fill
from bench.budget.load import UNIT
from tests.support.budget_process import Service, service
from tests.support.postgres_server import postgres_server
from tests.support.redis_server import redis_server

ALONE = 1000
DAY_SECONDS = 86400
OPTIONS = (("grpc.max_receive_message_length", -1),)
ACCOUNT = pb.Account(path=account_of(1))
READINGS: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
    "VerifyLedger": lambda admin, _: admin.VerifyLedger(admin_pb2.VerifyLedgerRequest()),
    "ReadJournal": lambda admin, _: admin.ReadJournal(admin_pb2.ReadJournalRequest(under=ACCOUNT)),
    "GetBudget": lambda _, stub: stub.GetBudget(
        pb.GetBudgetRequest(account=ACCOUNT, with_policy_statements=True)
    ),
}


def main() -> None:
    """Measure every store and size, and print a table."""
    parser = argparse.ArgumentParser(
        "python -m bench readings", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", nargs="+", choices=("sqlite", "redis", "postgres"), default=["sqlite"])
    parser.add_argument("--entries", nargs="+", type=int, default=[10**5, 10**6])
    options = parser.parse_args()
    print(f"{'':36}{'seconds':>9}  charges beside it / alone: median, p99, slowest   slowest health check")
    for store in options.store:
        for entries in options.entries:
            with (
                tempfile.TemporaryDirectory(prefix="gris-bench-") as folder,
                _store(store, folder) as address,
            ):
                asyncio.run(_measure(Path(folder), store, address, entries))


@contextmanager
def _store(store: str, folder: str) -> Iterator[str]:
    with ExitStack() as stack:
        if store == "sqlite":
            yield f"sqlite:{folder}/ledger.db"
        elif store == "redis":
            yield stack.enter_context(redis_server(Path(folder))).address
        else:
            yield stack.enter_context(postgres_server()).address


async def _measure(folder: Path, store: str, address: str, entries: int) -> None:
    unguarded = () if store == "sqlite" else ("--no-mark",)
    with service(folder, address, *unguarded, configuration=CONFIGURATION) as running:
        async with _stubs(running) as (_, stub, _):
            await _charge(stub, TEMPLATE, "template")
    fill(address, entries)
    options = (*unguarded, "--admin-listen", "127.0.0.1:0")
    with service(folder, address, *options, configuration=CONFIGURATION) as running:
        async with _stubs(running) as (admin, stub, health):
            alone = [await _charge(stub, number) for number in range(ALONE)]
            for name, reading in READINGS.items():
                work = asyncio.ensure_future(reading(admin, stub))
                (beside, checks), took = await asyncio.gather(_beside(work, stub, health), _seconds(work))
                ratios = ", ".join(f"{_at(beside, q) / _at(alone, q):.1f}" for q in (0.5, 0.99, 1))
                print(
                    f"{f'{store}, {entries:,}: {name}':36}{took:9.2f}  {ratios:47} {max(checks) * 1e3:11.1f} ms"
                )


@asynccontextmanager
async def _stubs(running: Service) -> Any:
    async with (
        grpc.aio.insecure_channel(running.address, OPTIONS) as channel,
        grpc.aio.insecure_channel(running.admin_address or running.address, OPTIONS) as admin,
    ):
        yield (
            admin_pb2_grpc.BudgetAdminServiceStub(admin),
            budget_pb2_grpc.BudgetServiceStub(channel),
            health_pb2_grpc.HealthStub(channel),
        )


async def _charge(stub: Any, number: int, request_id: str = "") -> float:
    """Charge an account and return the seconds that it took."""
    cost = cost_pb2.Cost(information=1, calls=1, unit_id=UNIT)
    account = pb.Account(path=account_of(number))
    request = pb.UpdateBudgetRequest(account=account, cost=cost, request_id=request_id or uuid.uuid4().hex)
    return await _seconds(stub.UpdateBudget(request))


async def _beside(work: asyncio.Future[Any], stub: Any, health: Any) -> tuple[list[float], list[float]]:
    """Charge and ask for health until some work is done; return how long each took."""
    beside: list[float] = []
    checks: list[float] = []
    while not work.done():
        beside.append(await _charge(stub, len(beside) % ALONE))
        checks.append(await _seconds(health.Check(health_pb2.HealthCheckRequest())))
    return beside, checks


async def _seconds(work: Awaitable[Any]) -> float:
    began = monotonic()
    await work
    return monotonic() - began


def _at(seconds: list[float], quantile: float) -> float:
    return sorted(seconds)[min(int(quantile * len(seconds)), len(seconds) - 1)]


if __name__ == "__main__":
    main()
