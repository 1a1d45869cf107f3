"""The whole campaign: so many messages at a port, and what is left of the gateway afterwards."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.campaigns.wires import broker, postgres
from tests.campaigns.wires.conversations import Conversation, Hanging, spoken
from tests.campaigns.wires.judging import Judged, faults_of_log, judge_http, judge_postgres
from tests.campaigns.wires.stage import EXACT, GOOD, ONCE, REFUSED, Stage, running_stage

AT_ONCE = 24
MOST_OPEN = 60
"""How many connections are left open at a time."""
MOST_GROWTH = 192 * 2**20
"""By how many bytes the gateway may grow, with all that is left open and is being answered."""
_CHECKED_EVERY = 500
_MOST_FAULTS = 20

Making = Callable[[Random, Mapping[str, str]], Conversation]
PORTS: dict[str, Making] = {"postgres": postgres.conversation, "broker": broker.conversation}


@dataclass
class Report:
    """What was sent to a port, and what came of it."""

    port: str
    messages: int = 0
    connections: int = 0
    seconds: float = 0.0
    memory_before: int = 0
    memory_most: int = 0
    judged: Judged = field(default_factory=Judged)

    @property
    def faults(self) -> list[str]:
        """What should not be."""
        return self.judged.faults

    def lines(self) -> list[str]:
        """Return the report as lines."""
        ends = ", ".join(f"{code} {times}" for code, times in self.judged.ends.most_common())
        return [
            f"{self.port}: {self.messages:,} messages on {self.connections:,} connections in {self.seconds:.0f} s",
            f"  memory: {self.memory_before / 2**20:.0f} MiB before, {self.memory_most / 2**20:.0f} MiB at most",
            f"  ended: {ends}",
            *(f"  FAULT: {each}" for each in self.faults[:_MOST_FAULTS]),
            f"  {len(self.faults)} faults",
        ]


def made(port: str, seed: int, number: int, tokens: Mapping[str, str]) -> Conversation:
    """Return a conversation of a seed; the same for each number, whatever was sent before."""
    return PORTS[port](Random(f"{seed}/{port}/{number}"), tokens)


def run_campaign(folder: Path, port: str, messages: int, seed: int, only: int | None = None) -> Report:
    """Send so many messages to a port of a gateway of its own; `only`: one conversation of the seed."""
    with running_stage(folder) as stage:
        return asyncio.run(_campaign(stage, port, messages, seed, only))


async def _campaign(stage: Stage, port: str, messages: int, seed: int, only: int | None) -> Report:
    report, began = Report(port), time.monotonic()
    expected = await asyncio.to_thread(stage.answers)
    report.memory_before = stage.memory()
    open_ends: deque[asyncio.StreamWriter] = deque()
    numbers = iter(range(10**9) if only is None else [only])

    async def speak() -> None:
        for number in numbers:
            if report.messages >= messages or len(report.faults) >= _MOST_FAULTS:
                return
            await _speak(stage, report, open_ends, seed, number)
            if number % _CHECKED_EVERY == _CHECKED_EVERY - 1:
                await _check(stage, report, expected, number)

    async with _watched(stage, report):
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(speak())
        await _check(stage, report, expected, "the last one")
    for each in open_ends:
        each.transport.abort()
    report.seconds = time.monotonic() - began
    report.faults.extend([*_faults_of_memory(stage, report), *await _faults_of_ledger(stage, report)])
    report.faults.extend(faults_of_log(stage))
    return report


async def _speak(
    stage: Stage, report: Report, open_ends: deque[asyncio.StreamWriter], seed: int, number: int
) -> None:
    said = made(report.port, seed, number, stage.tokens)
    report.messages += said.messages
    report.connections += 1
    judged = Judged()
    address = stage.postgres if report.port == "postgres" else stage.broker
    try:
        heard = await spoken(address, said)
    except Hanging:
        judged.faults.append("it neither answers nor ends")
    except OSError as error:
        judged.faults.append(f"it takes no connection: {type(error).__name__}")
    else:
        judge = judge_postgres if report.port == "postgres" else judge_http
        judge(heard.content, is_exact=said.is_exact, into=judged)
        if heard.open is not None:
            open_ends.append(heard.open)
        if len(open_ends) > MOST_OPEN:
            open_ends.popleft().transport.abort()
    report.judged.ends += judged.ends
    report.judged.charged += judged.charged
    report.faults.extend(f"conversation {number} of seed {seed}: {each}" for each in judged.faults)


async def _check(stage: Stage, report: Report, expected: object, after: object) -> None:
    """Ask as a good client does."""
    try:
        answers = await asyncio.to_thread(stage.answers)
    except Exception as error:
        report.faults.append(f"after conversation {after} a good client gets {type(error).__name__}")
        return
    if answers != expected:
        report.faults.append(f"after conversation {after} a good client gets other numbers")


@asynccontextmanager
async def _watched(stage: Stage, report: Report) -> AsyncIterator[None]:
    """Watch the gateway's memory while the block runs."""

    async def watch() -> None:
        while True:
            report.memory_most = max(report.memory_most, stage.memory())
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        report.memory_most = max(report.memory_most, stage.memory("VmHWM"))


def _faults_of_memory(stage: Stage, report: Report) -> list[str]:
    if not stage.memory():
        return ["the gateway has ended"]
    grown = report.memory_most - report.memory_before
    return [f"it has grown by {grown / 2**20:.0f} MiB"] if grown > MOST_GROWTH else []


async def _faults_of_ledger(stage: Stage, report: Report) -> list[str]:
    """Compare what the ledger says with what may have been charged."""
    levels = {name: await stage.level(name) for name in (REFUSED, ONCE, EXACT, GOOD)}
    spent = {name: level.spent.information for name, level in levels.items()}
    # The same question, so the same price.
    price = spent[GOOD]
    wrong = {
        "what is no question was charged": spent[REFUSED] != 0,
        "one question was charged more than once": spent[ONCE] not in (0, price),
        f"the ledger has {spent[EXACT]} for what answers said cost {report.judged.charged}": spent[EXACT]
        != report.judged.charged,
        "something is held": any(level.reserved.information for level in levels.values()),
    }
    return [fault for fault, is_so in wrong.items() if is_so]
