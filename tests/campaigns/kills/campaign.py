"""One campaign: load and kills for a while, then rest, everything asked again, and judgement."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.kills.afterwards import looked
from tests.campaigns.kills.callers import Load, connected
from tests.campaigns.kills.evidence import Afterwards, Heard
from tests.campaigns.kills.judging import Finding, findings_of
from tests.campaigns.kills.saboteur import Saboteur
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
    after: Afterwards
    findings: tuple[Finding, ...]
    kills: dict[str, int]
    replaced: int
    seconds: float


async def run(plan: Plan, folder: Path, callers: int = CALLERS) -> Outcome:
    """Run a campaign in an empty folder: at least so long, and until so many processes were killed."""
    began, dice = time.monotonic(), random.Random(plan.seed)
    async with running(plan.store, folder) as stage:
        gateways = connected(stage)
        load, saboteur = Load(gateways, dice), Saboteur(stage, dice)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(load.call(stop))
            group.create_task(load.look(stop))
            group.create_task(saboteur.replace_rows(stop))
            while time.monotonic() < began + plan.seconds or saboteur.kills < plan.kills:
                await saboteur.kill()
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
            kills=kills | {"store": saboteur.store_kills},
            replaced=saboteur.replaced,
            seconds=time.monotonic() - began,
        )
