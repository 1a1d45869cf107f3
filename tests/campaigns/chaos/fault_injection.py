"""The faults: kill -9, pauses, broken connections and lost replies, at random moments while the load goes on."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.campaigns.chaos.administrator import Administrator
from tests.campaigns.chaos.ledger_files import LedgerFiles
from tests.campaigns.chaos.root_locks import HELD_SECONDS, RootLocks
from tests.campaigns.chaos.stage import Service, Stage

LONGEST_PAUSE_SECONDS = 1.5
LONGEST_LOSS_SECONDS = 0.4
# Long enough for the others to choose another leader.
DELAY_SECONDS = 0.02
# Heartbeats still arrive in time.
HOLD_DELAY_SECONDS = 0.01
# How often a service is stopped to meet it between its round trips, and how soon the others then have to go on: they
# wait for the time-out of the transaction, and those that waited from before it begin again.
MOST_ATTEMPTS = 20
OTHERS_GO_ON_SECONDS = 6.0
# It looks each second, and with every commit.
STOPS_SERVING_SECONDS = 6.0


@dataclass
class FaultInjector:
    """Breaks things on a stage; whatever it breaks it repairs before it returns."""

    stage: Stage
    rng: random.Random
    administrator: Administrator
    service_kills: int = 0
    store_kills: int = 0
    pauses: int = 0
    cuts: int = 0
    losses: int = 0
    held_up: int = 0
    others_stuck: int = 0
    exchanged: int = 0
    served_on: int = 0

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return self.service_kills + self.store_kills

    async def kill(self) -> None:
        """Kill the store and a service in turn; now and then both at once."""
        store_next = self.stage.store is not None and self.store_kills <= self.service_kills
        if self.stage.store is None or self.rng.random() < 0.2:
            await self._kill(service=self._service(), store=store_next)
        else:
            await self._kill(service=None if store_next else self._service(), store=store_next)

    async def disturb(self) -> None:
        """Do one of the lesser things, or what an administrator may do at any time."""
        faults = [self._pause_service, self._pause_store, self._cut, self._lose, self._delay]
        await self.rng.choice((*faults, self.administrator.lower_a_limit, self.administrator.trim))()

    async def hold_a_lock(self) -> None:
        """Stop a service between its round trips until the others have gone on; then let it go on, too late."""
        if self.stage.locks is None or self.stage.store_proxy is None:
            return
        self.stage.store_proxy.delay_seconds = HOLD_DELAY_SECONDS
        try:
            for _ in range(MOST_ATTEMPTS):
                with self._service().frozen():
                    since = await asyncio.to_thread(self.stage.locks.now)
                    await asyncio.sleep(1.5 * HELD_SECONDS)
                    if await asyncio.to_thread(self.stage.locks.is_held):
                        self.held_up += 1
                        self.others_stuck += not await self._have_gone_on(self.stage.locks, since)
                        return
                await asyncio.sleep(self.rng.random() * 0.1)
        finally:
            self.stage.store_proxy.delay_seconds = 0

    async def exchange_the_file(self) -> None:
        """Put an older copy in the place of a ledger that is served, and put the ledger back once that is noticed."""
        if self.stage.store is not None:
            return
        (service,) = self.stage.services
        files = LedgerFiles(Path(self.stage.address.removeprefix("sqlite:")))
        with files.exchanged():
            self.exchanged += 1
            self.served_on += not await self._has_stopped_serving(service)
            service.kill()
        await service.start()

    @staticmethod
    async def _has_stopped_serving(service: Service) -> bool:
        end = asyncio.get_running_loop().time() + STOPS_SERVING_SECONDS
        async with grpc.aio.insecure_channel(service.proxy.upstream) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            while asyncio.get_running_loop().time() < end:
                with suppress(grpc.aio.AioRpcError):
                    found = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
                    if found.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                        return True
                await asyncio.sleep(0.05)
        return False

    async def _have_gone_on(self, locks: RootLocks, since: int) -> bool:
        end = asyncio.get_running_loop().time() + OTHERS_GO_ON_SECONDS
        while not await asyncio.to_thread(locks.have_all_gone_on, since):
            if asyncio.get_running_loop().time() > end:
                return False
            await asyncio.sleep(0.05)
        return True

    async def _kill(self, *, service: Service | None, store: bool) -> None:
        if service is not None:
            service.kill()
            self.service_kills += 1
        if store and self.stage.store is not None:
            self.stage.store.kill()
            self.store_kills += 1
            await asyncio.sleep(self.rng.random() * 0.3)
            await asyncio.to_thread(self.stage.store.start)
        if service is not None:
            await service.start()

    async def _pause_service(self) -> None:
        with self._service().frozen():
            await self._a_while(LONGEST_PAUSE_SECONDS)
        self.pauses += 1

    async def _pause_store(self) -> None:
        if self.stage.store is None:
            return
        with self.stage.store.frozen():
            await self._a_while(LONGEST_PAUSE_SECONDS)
        self.pauses += 1

    async def _cut(self) -> None:
        self.rng.choice(self.stage.proxies).cut()
        self.cuts += 1

    async def _lose(self) -> None:
        async with self.rng.choice(self.stage.proxies).swallowing():
            await self._a_while(LONGEST_LOSS_SECONDS)
        self.losses += 1

    async def _delay(self) -> None:
        proxy = self.rng.choice(self.stage.proxies)
        proxy.delay_seconds = DELAY_SECONDS
        await self._a_while(LONGEST_LOSS_SECONDS)
        proxy.delay_seconds = 0

    async def _a_while(self, most: float) -> None:
        await asyncio.sleep(most * (0.2 + 0.8 * self.rng.random()))

    def _service(self) -> Service:
        return self.rng.choice(self.stage.services)
