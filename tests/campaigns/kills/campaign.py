"""One campaign: load and kills for a while, then rest, everything asked again, and the check."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.kills.callers import Load, connected
from tests.campaigns.kills.checker import Finding, findings_of
from tests.campaigns.kills.fault_injection import FaultInjector
from tests.campaigns.kills.final_checks import looked
from tests.campaigns.kills.history import FinalState, Heard
from tests.campaigns.kills.stage import running

CALLERS = 16


@dataclass(frozen=True)
class Plan:
    """How long and how much. The seed fixes what is chosen, not how the processes interleave."""

    store: str
    seconds: float
    kills: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What a campaign did and found."""

    plan: Plan
    heard: Heard
    after: FinalState
    findings: tuple[Finding, ...]
    kills: dict[str, int]
    replaced: int
    seconds: float


async def run(plan: Plan, folder: Path, callers: int = CALLERS) -> Outcome:
    """Run a campaign in an empty folder: at least so long, and until so many processes were killed."""
    began, rng = time.monotonic(), random.Random(plan.seed)
    async with running(plan.store, folder) as stage:
        gateways = connected(stage)
        load, injector = Load(gateways, rng), FaultInjector(stage, rng)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(load.call(stop))
            group.create_task(load.poll_budgets(stop))
            group.create_task(injector.replace_rows(stop))
            while time.monotonic() < began + plan.seconds or injector.kills < plan.kills:
                await injector.kill()
            stop.set()
        after = await looked(gateways, load.heard)
        for channel in gateways.channels:
            await channel.close()
        counts = [(server.module, server.kills) for server in stage.servers]
        kills = {name: sum(number for module, number in counts if module == name) for name, _ in counts}
        return Outcome(
            plan=plan,
            heard=load.heard,
            after=after,
            findings=findings_of(load.heard, after),
            kills=kills | {"store": injector.store_kills},
            replaced=injector.replaced,
            seconds=time.monotonic() - began,
        )
