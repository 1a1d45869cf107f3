"""The callers, in a process of their own: they read a plan from stdin and write what they measured to stdout.

Targets and kinds of call take turns in each round, so that a slow moment of the machine meets all of them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import grpc
from google.protobuf.empty_pb2 import Empty
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from bench.budget.fill import account_of
from bench.budget.server import ECHO, ONE_ROW

UNIT = "0123456789abcdef" * 2
WARM_UP_ROUNDS = 1

Call: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Target:
    """A server, and how many accounts its ledger has."""

    name: str
    address: str
    accounts: int


@dataclass(frozen=True)
class Plan:
    """What to measure: each kind on each target for `seconds` in each of `rounds`, by so many callers at a time."""

    targets: list[Target]
    callers: int
    seconds: float
    rounds: int


@dataclass(frozen=True)
class Sample:
    """One kind of call on one target in one round; latencies in seconds."""

    target: str
    kind: str
    round: int
    seconds: float
    latencies: list[float]

    @property
    def rate(self) -> float:
        """Calls in a second."""
        return len(self.latencies) / self.seconds


class Caller:
    """Calls one target on one channel; `tag` makes its request ids differ from those of other runs."""

    def __init__(self, channel: grpc.aio.Channel, target: Target, tag: str) -> None:
        self._stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        self._echo, self._one_row = (_yardstick(channel, each) for each in (ECHO, ONE_ROW))
        self._target = target
        self._tag = tag
        self._numbers = itertools.count()
        self._rng = random.Random(tag)  # noqa: S311 - the choice of an account

    @property
    def kinds(self) -> dict[str, Call]:
        """Every kind of call by its name."""
        return {
            "echo": self.echo,
            "one row": self.one_row,
            "charge": self.charge,
            "reserve+settle": self.reserve_and_settle,
        }

    async def echo(self) -> None:
        """Call the empty method."""
        await self._echo(Empty())

    async def one_row(self) -> None:
        """Call the method that does nothing but write one row to the disk."""
        await self._one_row(Empty())

    async def charge(self) -> None:
        """Deduct directly."""
        id_ = self._id()
        await self._stub.UpdateBudget(
            pb.UpdateBudgetRequest(account=self._account(), cost=cost(), request_id=id_, release_id=id_)
        )

    async def reserve_and_settle(self) -> None:
        """Hold the worst case and settle it: two calls."""
        account, id_ = self._account(), self._id()
        held = await self._stub.ReserveBudget(
            pb.ReserveBudgetRequest(account=account, max_cost=cost(), query_id=id_, request_id=id_)
        )
        settling = pb.UpdateBudgetRequest(account=account, cost=cost(), request_id=f"{id_}s", release_id=id_)
        settling.reservation_id = held.reservation_id
        await self._stub.UpdateBudget(settling)

    def _id(self) -> str:
        return f"{self._tag}-{next(self._numbers)}"

    def _account(self) -> pb.Account:
        return pb.Account(path=account_of(self._rng.randrange(self._target.accounts)))


def quantile(latencies: Iterable[float], percent: int) -> float:
    """Return a quantile of latencies."""
    return statistics.quantiles(latencies, n=100)[percent - 1]


def _yardstick(channel: grpc.aio.Channel, method: str) -> Any:
    return channel.unary_unary(
        method, request_serializer=Empty.SerializeToString, response_deserializer=Empty.FromString
    )


def cost() -> cost_pb2.Cost:
    """Return what a charge costs."""
    return cost_pb2.Cost(information=1, calls=1, unit_id=UNIT)


async def run(plan: Plan) -> list[Sample]:
    """Measure everything of a plan; the first round only warms up."""
    tag = f"{time.time_ns()}"
    channels = [grpc.aio.insecure_channel(target.address) for target in plan.targets]
    callers = [Caller(*each, tag) for each in zip(channels, plan.targets, strict=True)]
    samples = []
    for number in range(WARM_UP_ROUNDS + plan.rounds):
        for target, caller in zip(plan.targets, callers, strict=True):
            for kind, call in caller.kinds.items():
                seconds, latencies = await _measured(call, plan)
                samples.append(Sample(target.name, kind, number - WARM_UP_ROUNDS, seconds, latencies))
    for channel in channels:
        await channel.close()
    return [sample for sample in samples if sample.round >= 0]


async def _measured(call: Call, plan: Plan) -> tuple[float, list[float]]:
    latencies: list[float] = []
    began = time.perf_counter()

    async def keep_calling() -> None:
        while (before := time.perf_counter()) < began + plan.seconds:
            await call()
            latencies.append(time.perf_counter() - before)

    await asyncio.gather(*(keep_calling() for _ in range(plan.callers)))
    return time.perf_counter() - began, latencies


def main() -> None:
    """Do what stdin says."""
    reported = json.load(sys.stdin)
    plan = Plan(**{**reported, "targets": [Target(**each) for each in reported["targets"]]})
    json.dump([asdict(sample) for sample in asyncio.run(run(plan))], sys.stdout)


if __name__ == "__main__":
    main()
