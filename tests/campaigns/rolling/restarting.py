"""A rolling restart under load: what was asked, what was answered, and what was lost.

Part of the load asks whole questions by the connector's client. The rest makes single calls that nobody repeats, over
the connector's channels, so that a call that is lost is not made good by a second one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

from pinot_connector import AsyncPrivateClient, structured_question
from pinot_connector.channels import Timeouts, open_channel
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from tests.campaigns.rolling.replicas import Replicas, target
from tests.support.budget_client import charging, cost
from tests.support.forgetful_store import ForgetfulStore

ASKING = 2
CALLING = 4
# Between two calls of one caller, so that a short campaign is not one of throughput; most of the time some call runs.
PAUSE_SECONDS = 0.012
# As `minReadySeconds` of a Deployment: clients look for a replica that was away at least twice in this time.
SETTLED_SECONDS = 1.5
# What is tried here is not how soon a dead ledger is noticed; a machine that is busy must not look like one.
SILENCE_SECONDS = 2.0
BUDGET = budget_pb2.DESCRIPTOR.services_by_name["BudgetService"].full_name

Call = Callable[[], Awaitable[object]]


@dataclass
class Totals:
    """What became of everything that was asked, by kind."""

    answered: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    exit_codes: list[int] = field(default_factory=list)

    async def count(self, kind: str, call: Call) -> None:
        """Make a call and count what becomes of it."""
        try:
            await call()
        except grpc.aio.AioRpcError as error:
            self.lost[f"{kind}: {error.code().name}: {error.details()}"] += 1
        except GrisError as error:
            self.lost[f"{kind}: {type(error).__name__}: {error}"] += 1
        else:
            self.answered[kind] += 1


async def restart_under_load(replicas: Replicas, rounds: int) -> Totals:
    """Restart every replica in turn, so many times, while everything is asked for all the time."""
    totals = Totals()
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_asked(replicas, totals, over))
        group.create_task(_called(replicas, totals, over))
        for replica in replicas.all * rounds:
            await asyncio.sleep(SETTLED_SECONDS)
            totals.exit_codes.append(await replica.restart())
        await asyncio.sleep(SETTLED_SECONDS)
        over.set()
    return totals


async def _asked(replicas: Replicas, totals: Totals, over: asyncio.Event) -> None:
    engine = DuckDBEngine({"small": replicas.table})
    question = structured_question("small", "element", k=None)
    client = AsyncPrivateClient(
        dp=target(replicas.dp),
        budget=target(replicas.budget),
        account="asking/one",
        engine=engine,
        timeouts=Timeouts(budget_silence=SILENCE_SECONDS),
        # Every question is to reach the services.
        releases=ForgetfulStore(),
    )
    async with client:
        await _repeatedly(ASKING, over, totals, {"question": lambda: client.ask(question)})
    engine.close()


async def _called(replicas: Replicas, totals: Totals, over: asyncio.Event) -> None:
    dp_channel = open_channel(target(replicas.dp))
    budget_channel = open_channel(target(replicas.budget), waiting=[BUDGET])
    async with dp_channel, budget_channel:
        dp: Any = dp_pb2_grpc.DpServiceStub(dp_channel)
        budget: Any = budget_pb2_grpc.BudgetServiceStub(budget_channel)
        question = structured_question("small", "element", k=None)
        numbers = itertools.count()

        def charge() -> Awaitable[object]:
            message = charging(cost(1, 0), path=("calling", "one"), request_id=f"c{next(numbers)}")
            return _sent(budget.UpdateBudget, message)

        calls: dict[str, Call] = {
            "EstimateCost": lambda: _sent(dp.EstimateCost, dp_pb2.EstimateCostRequest(question=question)),
            "UpdateBudget": charge,
            "GetBudget": lambda: _sent(
                budget.GetBudget,
                budget_pb2.GetBudgetRequest(account=budget_pb2.Account(path=("calling", "one"))),
            ),
        }
        await _repeatedly(CALLING, over, totals, calls)


async def _sent(call: Any, message: object) -> object:
    return await call(message, timeout=30)


async def _repeatedly(workers: int, over: asyncio.Event, totals: Totals, calls: dict[str, Call]) -> None:
    async def work() -> None:
        while not over.is_set():
            for kind, call in calls.items():
                await totals.count(kind, call)
                await asyncio.sleep(PAUSE_SECONDS)

    await asyncio.gather(*(work() for _ in range(workers)))
