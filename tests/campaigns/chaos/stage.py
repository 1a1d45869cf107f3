"""The real processes of a campaign: the services, the store, and a proxy before each."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from tests.campaigns.chaos.accounts import configuration
from tests.campaigns.chaos.root_locks import RootLocks
from tests.support.postgres_pair import REQUIRED, postgres_pair
from tests.support.postgres_server import postgres_server
from tests.support.processes import StoreProcess
from tests.support.proxy import Proxy
from tests.support.redis_server import redis_server

# A busy machine takes long, and a store may be gone for a while first.
START_SECONDS = 300.0


@dataclass
class Service:
    """A budget_service process behind a proxy; after each start it is found at the same address."""

    folder: Path
    store: str
    proxy: Proxy
    shared_levels: str
    admin_address: str = ""
    process: subprocess.Popen[str] | None = field(default=None)

    async def start(self) -> None:
        """Start it, again if the store is not there yet, as a supervisor would."""
        async with asyncio.timeout(START_SECONDS):
            while not await asyncio.to_thread(self._started):  # noqa: ASYNC110 - a process cannot set an event
                await asyncio.sleep(0.1)

    def kill(self) -> None:
        """Kill it as a crash would."""
        if self.process is not None:
            assert self.process.stdout is not None
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it accept bytes and answer nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def _started(self) -> bool:
        command = [
            sys.executable,
            "-m",
            "budget_service",
            "--config",
            str(self.folder / f"budget-{self.shared_levels}.yaml"),
        ]
        command += ["--store", self.store, "--listen", "127.0.0.1:0"]
        command += ["--admin-listen", "127.0.0.1:0"]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        if not ready:
            self.kill()
            return False
        said = json.loads(ready)
        self.proxy.upstream, self.admin_address = said["address"], said["admin_address"]
        return True


@dataclass(frozen=True)
class Stage:
    """Everything that runs. `store` is None for SQLite, which is no process of its own.

    `locks` is not None if a service holds the lock of a root account between its round trips to the store;
    `store_proxy` is what lies between the two.
    """

    services: tuple[Service, ...]
    store: StoreProcess | None
    proxies: tuple[Proxy, ...]
    address: str
    locks: RootLocks | None = None
    store_proxy: Proxy | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where clients find the services."""
        return tuple(service.proxy.address for service in self.services)


@asynccontextmanager
async def sqlite_stage(folder: Path) -> AsyncIterator[Stage]:
    """Run one service on a file."""
    async with _running(folder, f"sqlite:{folder}/ledger.db", 1) as services:
        yield Stage(services, None, _proxies(services), f"sqlite:{folder}/ledger.db")


@asynccontextmanager
async def redis_stage(folder: Path) -> AsyncIterator[Stage]:
    """Run two services on a Redis that forces every charge to the disk, with a proxy between."""
    with redis_server(folder) as redis:
        async with _remote(folder, redis) as stage:
            yield stage


@asynccontextmanager
async def postgres_stage(folder: Path) -> AsyncIterator[Stage]:
    """Run two services on a PostgreSQL with its own defaults, with a proxy between."""
    with postgres_server() as postgres:
        async with _remote(folder, postgres) as stage:
            yield replace(stage, locks=RootLocks(postgres))


@asynccontextmanager
async def postgres_pair_stage(folder: Path) -> AsyncIterator[Stage]:
    """Run two services on two PostgreSQL servers that replicate synchronously, with a proxy before each."""
    running = postgres_pair()
    async with AsyncExitStack() as stack:
        pair = await asyncio.to_thread(running.__enter__)
        stack.push_async_callback(asyncio.to_thread, running.__exit__, None, None, None)
        before = [
            await stack.enter_async_context(Proxy(f"127.0.0.1:{each.port}").listening())
            for each in (pair.primary, pair.standby)
        ]
        address = pair.behind(*(each.address for each in before)) + REQUIRED
        services = await stack.enter_async_context(_running(folder, address, 2))
        yield Stage(services, pair, (*_proxies(services), *before), pair.address)


STAGES = {
    "sqlite": sqlite_stage,
    "redis": redis_stage,
    "postgres": postgres_stage,
    "postgres-pair": postgres_pair_stage,
}


@asynccontextmanager
async def _remote(folder: Path, store: StoreProcess) -> AsyncIterator[Stage]:
    parts = urlsplit(store.address)
    async with Proxy(f"{parts.hostname}:{parts.port}").listening() as store_proxy:
        netloc = parts.netloc.replace(f"{parts.hostname}:{parts.port}", store_proxy.address)
        async with _running(folder, parts._replace(netloc=netloc).geturl(), 2) as services:
            yield Stage(
                services, store, (*_proxies(services), store_proxy), store.address, store_proxy=store_proxy
            )


@asynccontextmanager
async def _running(folder: Path, store: str, number: int) -> AsyncIterator[tuple[Service, ...]]:
    async with AsyncExitStack() as stack:
        started = []
        # Replicas may differ in what they write for shared levels, never in what was written.
        for shared_levels in ("worst_case", "actual")[:number]:
            (folder / f"budget-{shared_levels}.yaml").write_text(configuration(shared_levels))
            proxy = await stack.enter_async_context(Proxy().listening())
            service = Service(folder, store, proxy, shared_levels)
            stack.callback(service.kill)
            await service.start()
            started.append(service)
        yield tuple(started)


def _proxies(services: tuple[Service, ...]) -> tuple[Proxy, ...]:
    return tuple(service.proxy for service in services)
