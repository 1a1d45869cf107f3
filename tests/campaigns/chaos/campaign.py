"""One campaign: load and faults until enough was charged and killed, then rest, replay of everything, and judgement."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc

from tests.campaigns.chaos.accounts import ROOTS, Accounts
from tests.campaigns.chaos.administrator import Administrator
from tests.campaigns.chaos.checker import Report, check
from tests.campaigns.chaos.clients import HOLD_SECONDS, Client, Load, connected
from tests.campaigns.chaos.connector import ConnectorClient, paying
from tests.campaigns.chaos.fault_injection import FaultInjector
from tests.campaigns.chaos.history import Entry, Level, Truth
from tests.campaigns.chaos.history import Path as AccountPath
from tests.campaigns.chaos.journal import read_journal
from tests.campaigns.chaos.late_limits import charges_above
from tests.campaigns.chaos.leavers import Leavers
from tests.campaigns.chaos.stage import STAGES, Stage

CLIENTS = 24
CONNECTORS = 4
POLL_SECONDS = 0.05
# Longer than other work keeps a small machine busy.
STALLED_SECONDS = 180.0
# After every so many kills a service is stopped between its round trips, and the file of its ledger is exchanged.
HOLD_UP_EACH = 3
EXCHANGE_EACH = 4
TAKING_NOTHING = ("limit", "close", "reopen")


@dataclass(frozen=True)
class Plan:
    """How much is wanted. The seed fixes what is chosen, not how the processes interleave."""

    store: str
    charges: int
    kills: int
    seed: int


@dataclass(frozen=True)
class Result:
    """What a campaign found, and what it did to find it."""

    plan: Plan
    report: Report
    service_kills: int
    store_kills: int
    pauses: int
    cuts: int
    losses: int
    replies_lost: int
    held_up: int
    others_stuck: int
    exchanged: int
    served_on: int
    lowered: int
    late: int
    trimmed: int
    returned: int
    seconds: float


async def run(plan: Plan, folder: Path) -> Result:
    """Run a campaign in an empty folder."""
    began = asyncio.get_running_loop().time()
    rng = random.Random(plan.seed)
    async with STAGES[plan.store](folder) as stage:
        load = Load(stage.addresses, Accounts(rng), rng)
        administrator = Administrator(stage, rng, load.accounts, load.acknowledged_at)
        injector = FaultInjector(stage, rng, administrator)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connected(load)) for _ in range(CLIENTS)]
            applications = [
                await stack.enter_async_context(paying(load, number)) for number in range(CONNECTORS)
            ]
            leavers = Leavers(clients[0], administrator)
            await _under_load(plan, load, (*clients, *applications, leavers), injector)
            await asyncio.sleep(HOLD_SECONDS + 1)
            await _replay_everything(load, clients)
            await _write_what_lapsed(load, clients[0])
            await administrator.limit_the_rest()
            levels = await _levels(load, clients[0])
            await administrator.verify()
        lines = await _journal(stage)
        taking = tuple(each for each in lines if each.kind not in TAKING_NOTHING)
        truth = Truth(levels, taking, administrator.differences, tuple(charges_above(lines)))
        return Result(
            plan=plan,
            report=check(load.history, truth),
            service_kills=injector.service_kills,
            store_kills=injector.store_kills,
            pauses=injector.pauses,
            cuts=injector.cuts,
            losses=injector.losses,
            held_up=injector.held_up,
            others_stuck=injector.others_stuck,
            exchanged=injector.exchanged,
            served_on=injector.served_on,
            lowered=administrator.lowered,
            late=len(administrator.late),
            trimmed=administrator.trimmed,
            returned=leavers.returned,
            replies_lost=sum(proxy.lost_replies for proxy in stage.proxies),
            seconds=asyncio.get_running_loop().time() - began,
        )


async def _under_load(
    plan: Plan, load: Load, clients: Sequence[Client | ConnectorClient | Leavers], injector: FaultInjector
) -> None:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.work(stop))
        group.create_task(_look(load, stop))
        await _break_things(plan, load, injector)
        stop.set()


async def _break_things(plan: Plan, load: Load, injector: FaultInjector) -> None:
    """Spread the kills evenly over the charges, at a random moment of each share, with lesser faults in between."""
    for number in range(plan.kills):
        share = plan.charges / plan.kills
        await _until_charged(load, int(share * (number + load.rng.random())))
        await injector.disturb()
        if number % HOLD_UP_EACH == 0:
            await injector.hold_a_lock()
        if number % EXCHANGE_EACH == 1:
            await injector.exchange_the_file()
        await injector.administrator.limit_a_level_in_use()
        if injector.kills < plan.kills:
            await injector.kill()
    await _until_charged(load, plan.charges)


async def _until_charged(load: Load, wanted: int) -> None:
    clock = asyncio.get_running_loop().time
    seen, since = load.acknowledged, clock()
    while load.acknowledged < wanted:
        await asyncio.sleep(0.01)
        if load.acknowledged > seen:
            seen, since = load.acknowledged, clock()
        if clock() - since > STALLED_SECONDS:
            raise TimeoutError("nothing has been charged for three minutes: see the services' log")


async def _look(load: Load, stop: asyncio.Event) -> None:
    """Look at random accounts one after another, so that an overspent moment under load is seen too."""
    async with connected(load) as client:
        while not stop.is_set():
            await asyncio.sleep(POLL_SECONDS)
            with suppress(grpc.aio.AioRpcError):
                load.history.seen.extend(await client.levels(load.accounts.choose()[0]))


async def _replay_everything(load: Load, clients: list[Client]) -> None:
    waiting = iter(list(load.answered))

    async def replays(client: Client) -> None:
        for request, first in waiting:
            if not await client.replay(request, first):
                raise TimeoutError("a ledger at rest does not answer: see the services' log")

    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(replays(client))


async def _write_what_lapsed(load: Load, client: Client) -> None:
    for root in ROOTS:
        account = min(path for path in load.accounts.used if path[0] == root)
        # One request ends a thousand lapsed reservations at most.
        for _ in range(3):
            if not await client.touch(account):
                raise TimeoutError("a ledger at rest does not answer: see the services' log")


async def _levels(load: Load, client: Client) -> dict[AccountPath, Level]:
    # Of a ledger at rest; what many accounts have above them is asked once.
    found: dict[AccountPath, Level] = {}
    for account in sorted(load.accounts.used):
        found.update(await client.levels(account, known=found))
    return found


async def _journal(stage: Stage) -> tuple[Entry, ...]:
    for service in stage.services:
        service.kill()
    return await asyncio.to_thread(read_journal, stage.address)
