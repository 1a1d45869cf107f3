"""Processes that are killed in the middle of a question of two looks, and what that costs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.budget.v1 import budget_pb2

from pinot_connector.questions import structured_question
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.clients import client_of
from tests.support.embedded import embedded
from tests.support.pki import ISSUER, Issuer
from tests.support.processes import process
from tests.support.relay import Relay, relayed
from tests.support.release_stores import KEYS
from tests.support.two_looks import (
    BUDGET,
    NOTHING,
    POLICY,
    SPENT,
    Between,
    asking,
    held_and_spent,
)
from tests.support.world import COFACTS, World, new_account

pytestmark = pytest.mark.nightly

HELD_SECONDS = 10
CONNECTOR = f"""
import asyncio, os, signal, sys
from dataclasses import replace
from pinot_connector import AsyncPrivateClient
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.release_stores import KEYS
from tests.support.embedded import UNHURRIED
from tests.support.two_looks import Between

dp, budget, account, file, when = sys.argv[1:]

def at(moment):
    if moment == when:
        os.kill(os.getpid(), signal.SIGKILL)

class Killing(SqliteReleaseStore):
    async def keep(self, query_id, kept):
        first = await super().keep(query_id, kept)
        at("kept")
        return first

    async def mark_paid(self, query_id, account, payment):
        at("charged")

class Killed(Between):
    def run(self, query, data_version):
        at(f"query {{len(self.queries) + 1}}")
        answer = super().run(query, data_version)
        at(f"answer {{len(self.queries)}}")
        return answer

async def ask():
    async with AsyncPrivateClient(
        dp=dp, budget=budget, account=account, engine=Killed(), releases=Killing(file, KEYS), reserve_first=True,
        timeouts=replace(UNHURRIED, reservation={HELD_SECONDS // 2}),
    ) as client:
        await client.top_k("fractions", "article_id", 5)

asyncio.run(ask())
"""
MOMENTS = ("query 1", "answer 1", "query 2", "answer 2", "kept", "charged")


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("expired", ["return", "forfeit"])
async def test_a_connector_that_is_killed_pays_only_for_what_was_charged(
    tmp_path: Path, expired: str
) -> None:
    """What it held lapses; asked again, the question has the one release of all times, for its price."""
    with embedded(tmp_path, POLICY, f"expired_reservations: {expired}\n{BUDGET}") as services:
        world = World(services.dp_address, services.budget_address, tmp_path)
        accounts = {when: new_account() for when in MOMENTS}
        killed = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", CONNECTOR, world.dp, world.budget),
                *(account, str(tmp_path / f"{when}.db"), when),
            )
            for when, account in accounts.items()
        ]
        assert [-signal.SIGKILL] * len(killed) == [await each.wait() for each in killed]
        await asyncio.sleep(HELD_SECONDS + 0.5)
        releases = set()
        for when, account in accounts.items():
            lapsed = 10 if expired == "forfeit" and when != "charged" else 0
            engine, store = Between(), SqliteReleaseStore(tmp_path / f"{when}.db", KEYS)
            async with client_of(world, engine, account=account, releases=store) as client:
                again = await client.top_k("fractions", "article_id", 5)
                spent = await held_and_spent(client)
            assert (when, *spent) == (when, 10 + lapsed, 1 + lapsed // 10, 0, 0)
            assert len(engine.queries) == (0 if when in ("kept", "charged") else 2)
            releases.add((again.release_id, again.rows))
            await store.close()
            engine.close()
        assert len(releases) == 1


GATEWAY = """
listen: 127.0.0.1:0
dp: {{address: "{relay}"}}
budget: {{address: "{relay}"}}
engine: {{duckdb: {{fractions: {data}}}}}
identity:
  jwt:
    key_file: {issuer}
    algorithms: [ES256]
    issuer: {iss}
    audience: gateway
    accounts: [{{claim: root, equals: t, prefix: [t], accounts_below: true}}]
releases: {{file: {folder}/releases.db, key_file: {folder}/releases.key}}
history: {{per_account: 1000}}
timeouts: {{dp: 60, engine: 30, budget_attempt: 10, budget: 20, budget_silence: 30, reservation: 60}}
"""
CALLER = """
import sys, grpc
from gris_api.app.v1 import app_pb2, app_pb2_grpc
address, token, request = sys.argv[1:]
stub = app_pb2_grpc.PrivateQueryServiceStub(grpc.insecure_channel(address))
metadata = [("authorization", "Bearer " + token)]
list(stub.Ask(app_pb2.AskRequest.FromString(bytes.fromhex(request)), metadata=metadata))
"""
LONG_SECONDS = 6.0


@dataclass
class Stage:
    """A folder for gateways, and the relay between them and the services."""

    folder: Path
    relay: Relay
    issuer: Issuer
    world: World

    @contextmanager
    def gateway(self) -> Iterator[tuple[str, int]]:
        """Run a gateway; give its address and process."""
        path = self.folder / "gateway.yaml"
        with process("gris_gateway", ["--config", path], self.folder / "log") as ready:
            yield ready["address"], int(ready["pid"])

    def request(self, account: str) -> app_pb2.AskRequest:
        """Return the question, with a request id."""
        return app_pb2.AskRequest(
            question=structured_question("fractions", "article_id", k=5),
            account=budget_pb2.Account(path=account.split("/")),
            request_id=f"of {account}",
        )

    async def asked(self, address: str, account: str) -> app_pb2.Result:
        """Ask, and return the end of the answer; the same request before may still be under way."""
        async with grpc.aio.insecure_channel(address) as channel:
            stub: Any = app_pb2_grpc.PrivateQueryServiceStub(channel)
            metadata = [("authorization", f"Bearer {self.token()}")]
            parts = [part async for part in stub.Ask(self.request(account), metadata=metadata)]
            end: app_pb2.Result = parts[-1].end
            return end

    def token(self) -> str:
        """Return a token for every account of the tests."""
        return self.issuer.token("gateway", root="t", exp=2**33)

    async def spent(self, account: str) -> tuple[int, int, int, int]:
        """Return what an account has spent and what is reserved for it."""
        async with asking(self.world, Between(), account=account) as client:
            return await held_and_spent(client)

    async def becomes(self, account: str, expected: tuple[int, ...]) -> None:
        """Wait until an account has spent and holds that."""
        seen: tuple[int, ...] = ()
        for _ in range(200):
            if (seen := await self.spent(account)) == expected:
                return
            await asyncio.sleep(0.1)
        assert seen == expected

    async def held_up(self, method: str, nth: int) -> None:
        """Wait until the nth call of a method is held up on its way."""
        self.relay.delays[method] = LONG_SECONDS if nth == 1 else 1.0
        if nth == 2:
            await self.relay.called(method, 1)
            self.relay.delays[method] = LONG_SECONDS
        await self.relay.called(method, nth)


@pytest.fixture
async def stage(looking_world: World, tmp_path: Path) -> AsyncIterator[Stage]:
    """Give what gateways need."""
    async with relayed(looking_world) as relay:
        issuer = Issuer(tmp_path)
        (tmp_path / "releases.key").write_bytes(os.urandom(32))
        (tmp_path / "releases.key").chmod(0o400)
        text = GATEWAY.format(
            relay=relay.address, data=COFACTS, issuer=issuer.key_file, iss=ISSUER, folder=tmp_path
        )
        (tmp_path / "gateway.yaml").write_text(text)
        yield Stage(tmp_path, relay, issuer, looking_world)


@asynccontextmanager
async def killed_caller(stage: Stage, address: str, account: str) -> AsyncIterator[None]:
    """Ask in a process of its own, which is killed when the block ends."""
    words = [address, stage.token(), stage.request(account).SerializeToString().hex()]
    caller = await asyncio.create_subprocess_exec(sys.executable, "-c", CALLER, *words)
    try:
        yield
    finally:
        caller.kill()
        await caller.wait()


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("method", "nth", "spent", "in_all"),
    [
        ("ReserveBudget", 1, NOTHING, (10, 1, 0, 0)),
        ("AddNoiseUnary", 1, SPENT, (20, 2, 0, 0)),
        ("AddNoiseUnary", 2, SPENT, (20, 2, 0, 0)),
        ("UpdateBudget", 1, (10, 1, 0, 0), (10, 1, 0, 0)),
    ],
)
async def test_a_caller_of_a_gateway_who_is_killed_pays_for_the_looks_that_were_drawn(
    stage: Stage, method: str, nth: int, spent: tuple[int, ...], in_all: tuple[int, ...]
) -> None:
    """Wherever that is; asked again with the same request id, what was not charged whole is paid for."""
    account = new_account()
    with stage.gateway() as (address, _):
        async with killed_caller(stage, address, account):
            await stage.held_up(method, nth)
        stage.relay.delays.clear()
        await stage.becomes(account, spent)
        end = await stage.asked(address, account)
        assert end.replayed == (method == "UpdateBudget")
        assert end.charged.information == (0 if end.replayed else 10)
        assert await stage.spent(account) == in_all


@pytest.mark.usefixtures("starts_processes")
async def test_a_gateway_that_is_killed_between_the_looks_charges_nothing_and_shows_nothing(
    stage: Stage,
) -> None:
    """Its caller sees that the connection broke; another gateway answers for one price once the rest has lapsed."""
    path = stage.folder / "gateway.yaml"
    short = f"reservation: {HELD_SECONDS // 2}"
    path.write_text(path.read_text().replace("reservation: 60", short).replace("engine: 30", "engine: 4"))
    account = new_account()
    with stage.gateway() as (address, pid):
        asking_it = asyncio.ensure_future(stage.asked(address, account))
        await stage.held_up("AddNoiseUnary", 2)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(grpc.aio.AioRpcError) as broken:
            await asking_it
    assert broken.value.code() is grpc.StatusCode.UNAVAILABLE
    stage.relay.delays.clear()
    await stage.becomes(account, NOTHING)
    with stage.gateway() as (address, _):
        assert (await stage.asked(address, account)).charged.information == 10
    assert await stage.spent(account) == (10, 1, 0, 0)
