"""A lone charge beside a crowd: one caller of another root account, with a thousand charges in flight.

    python -m bench.budget.crowd HOST:PORT 1000 8           # the crowd on 8 connections, until it is ended

The crowd is a process of its own, which is stopped while the lone charge is measured without it, turn by turn.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc

from bench.budget.load import Caller, Target, cost, quantile

REPOSITORY = Path(__file__).resolve().parents[2]
ROOT = "crowd"
# Until what is in flight flows evenly, or has ended.
SETTLING_SECONDS = 1.5
PAUSE_SECONDS = 0.02


@dataclass(frozen=True)
class Beside:
    """The 95th percentile of a lone charge in milliseconds, alone and beside a crowd of calls on some connections."""

    store: str
    target: str
    crowd: int
    connections: int
    alone_ms: float
    beside_ms: float

    @property
    def ratio(self) -> float:
        """How many times longer it takes."""
        return self.beside_ms / self.alone_ms


def beside_crowd(
    store: str, target: Target, crowd: int, connections: int, *, seconds: float, rounds: int
) -> Beside:
    """Measure a lone charge of one target in turns, alone and beside a crowd."""
    command = [sys.executable, "-m", "bench.budget.crowd", target.address, str(crowd), str(connections)]
    with subprocess.Popen(command, cwd=REPOSITORY) as process:
        try:
            alone, beside = asyncio.run(_in_turns(target, process, seconds, rounds))
        finally:
            process.kill()
    figures = (1e3 * quantile(alone, 95), 1e3 * quantile(beside, 95))
    return Beside(store, target.name, crowd, connections, *figures)


async def _in_turns(
    target: Target, process: subprocess.Popen[bytes], seconds: float, rounds: int
) -> tuple[list[float], list[float]]:
    alone: list[float] = []
    beside: list[float] = []
    async with grpc.aio.insecure_channel(target.address) as channel:
        caller = Caller(channel, target, f"lone-{time.time_ns()}")
        for _ in range(rounds):
            for number, latencies in ((signal.SIGSTOP, alone), (signal.SIGCONT, beside)):
                process.send_signal(number)
                await asyncio.sleep(SETTLING_SECONDS)
                await _charge(caller, seconds, latencies)
    return alone, beside


async def _charge(caller: Caller, seconds: float, latencies: list[float]) -> None:
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        await caller.charge()
        latencies.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE_SECONDS)


async def _keep_calling(address: str, many: int, connections: int) -> None:
    numbers, tag = itertools.count(), f"crowd-{time.time_ns()}"
    account = pb.Account(path=(ROOT, "one"))
    # Channels of one process share a connection otherwise.
    options = (("grpc.use_local_subchannel_pool", 1),)
    channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(connections)]

    async def one(channel: grpc.aio.Channel) -> None:
        stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        while True:
            request_id = f"{tag}-{next(numbers)}"
            await stub.UpdateBudget(
                pb.UpdateBudgetRequest(account=account, cost=cost(), request_id=request_id)
            )

    await asyncio.gather(*(one(channels[number % connections]) for number in range(many)))


if __name__ == "__main__":
    asyncio.run(_keep_calling(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
