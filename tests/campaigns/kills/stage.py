"""The real processes: gateways, dp_service, budget_service, and the store where it is a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaigns.kills.questions import POLICY, TABLES, Rows
from tests.support.pki import ISSUER, Issuer
from tests.support.ports import free_port
from tests.support.postgres_server import postgres_server
from tests.support.processes import StoreProcess
from tests.support.redis_server import redis_server

AUDIENCE = "gateway"
START_SECONDS = 60.0
# Shorter than by default, so that what a killed gateway held is free again soon.
RESERVATION_SECONDS = 3
VERSION_SECONDS = 0.2

ROOMY, SHARED, TIGHT = "roomy", "shared", "tight"
BUDGET = f"""
accounts:
  - {{path: [{ROOMY}], limit: {{information: 1000000000, calls: 1000000000}}, window: never}}
  - {{path: [{ROOMY}, "*"], limit: {{information: 1000000000, calls: 1000000000}}, window: never}}
  - {{path: [{SHARED}], limit: {{information: 1000000000, calls: 1000000000}}, window: never}}
  - {{path: [{SHARED}, "*"], limit: {{information: 60, calls: 12}}, window: never}}
  - {{path: [{SHARED}, "*", "*"], limit: {{information: 40, calls: 9}}, window: never}}
  - {{path: [{TIGHT}], limit: {{information: 1000000000, calls: 1000000000}}, window: never}}
  - {{path: [{TIGHT}, "*"], limit: {{information: 12, calls: 3}}, window: never}}
"""
_GATEWAY = """
listen: {listen}
dp: {{address: "{dp}"}}
budget: {{address: "{budget}"}}
engine: {{duckdb: {{{tables}}}}}
identity:
  jwt:
    key_file: {issuer}
    algorithms: [ES256]
    issuer: {iss}
    audience: {audience}
    accounts:
{rules}
releases: {{{releases}, key_file: {folder}/releases.key}}
history: {{per_account: 100000}}
limits: {{per_second: 10000, burst: 10000, concurrent: 64}}
timeouts: {{dp: 5, engine: 2.5, budget_attempt: 1, budget: 3, budget_silence: 1, budget_held: 2,
  reservation: {reservation}, data_version: {version}, grace: 1}}
"""
_RULE = "      - {{claim: root, equals: {root}, prefix: [{root}], accounts_below: true}}"


@dataclass(eq=False)
class Server:
    """One process, which is found at the same address after each start."""

    module: str
    words: tuple[str, ...]
    address: str
    log: Path
    kills: int = 0
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

    def _started(self) -> bool:
        command = [sys.executable, "-P", "-m", self.module, *self.words]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        if ready := self.process.stdout.readline():
            assert json.loads(ready)["address"] == self.address
            return True
        self.kill()
        return False


@dataclass(frozen=True)
class Stage:
    """Everything that runs. `store` is None for SQLite, which is no process of its own."""

    gateways: tuple[Server, ...]
    dp: Server
    budget: Server
    admin: str
    store: StoreProcess | None
    rows: Rows
    issuer: Issuer

    @property
    def servers(self) -> tuple[Server, ...]:
        """Every process of ours, in the order in which they are started."""
        return (self.dp, self.budget, *self.gateways)

    def token(self, root: str) -> str:
        """Return a token whose holder may name any account below a root."""
        return self.issuer.token(AUDIENCE, root=root, exp=2**33)


@dataclass(frozen=True)
class _Stores:
    ledger: str
    releases: str
    gateways: int
    process: StoreProcess | None


@contextmanager
def _sqlite(folder: Path) -> Iterator[_Stores]:
    yield _Stores(f"sqlite:{folder}/ledger.db", f"file: {folder}/releases.db", 1, None)


@contextmanager
def _redis(folder: Path) -> Iterator[_Stores]:
    with redis_server(folder) as redis:
        yield _Stores(redis.address, f"file: {folder}/releases.db", 1, redis)


@contextmanager
def _postgres(folder: Path) -> Iterator[_Stores]:
    with postgres_server() as postgres:
        (folder / "connection").write_text(postgres.address)
        yield _Stores(postgres.address, f"connection_file: {folder}/connection", 2, postgres)


STORES = {"sqlite": _sqlite, "redis": _redis, "postgres": _postgres}


@asynccontextmanager
async def running(store: str, folder: Path) -> AsyncIterator[Stage]:
    """Run everything in an empty folder, on the ledger and the release store of a name."""
    with ExitStack() as stack:
        stage = _written(folder, stack.enter_context(STORES[store](folder)))
        for server in stage.servers:
            stack.callback(server.kill)
        for server in stage.servers:
            await server.start()
        yield stage


def _written(folder: Path, stores: _Stores) -> Stage:
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "budget.yaml").write_text(BUDGET)
    for name in ("noise.key", "releases.key"):
        (folder / name).write_bytes(os.urandom(32))
        (folder / name).chmod(0o400)
    rows, issuer = Rows.written(folder), Issuer(folder)
    dp_address, budget_address, admin = (f"127.0.0.1:{free_port()}" for _ in range(3))
    dp_words = (
        "--policy",
        f"{folder}/policy.yaml",
        "--key-file",
        f"{folder}/noise.key",
        "--listen",
        dp_address,
    )
    budget_words = ("--config", f"{folder}/budget.yaml", "--store", stores.ledger, "--listen", budget_address)
    gateways = []
    for number in range(stores.gateways):
        path, listen = folder / f"gateway-{number}.yaml", f"127.0.0.1:{free_port()}"
        path.write_text(
            _GATEWAY.format(
                listen=listen,
                dp=dp_address,
                budget=budget_address,
                tables=", ".join(f"{table}: {rows.path(table)}" for table in TABLES),
                issuer=issuer.key_file,
                iss=ISSUER,
                audience=AUDIENCE,
                rules="\n".join(_RULE.format(root=root) for root in (ROOMY, SHARED, TIGHT)),
                releases=stores.releases,
                folder=folder,
                reservation=RESERVATION_SECONDS,
                version=VERSION_SECONDS,
            )
        )
        gateways.append(Server("gris_gateway", ("--config", str(path)), listen, folder / "log"))
    return Stage(
        gateways=tuple(gateways),
        dp=Server("dp_service", dp_words, dp_address, folder / "log"),
        budget=Server(
            "budget_service", (*budget_words, "--admin-listen", admin), budget_address, folder / "log"
        ),
        admin=admin,
        store=stores.process,
        rows=rows,
        issuer=issuer,
    )
