"""PostgreSQL with a synchronous standby: what is acknowledged is on both servers and outlives a fail-over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.values import Account, Cost
from budget_service.stores.interface import (
    OutcomeUnknownError,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
)
from budget_service.stores.postgres.store import PostgresStore
from tests.support.budget_samples import Asked, charge, levels, limit
from tests.support.ledger_stores import closing
from tests.support.postgres_server import PostgresServer, standby_of

pytestmark = pytest.mark.nightly

# Every commit waits for some standby to have it on its disk.
SYNCHRONOUS = "synchronous_standby_names=*"
ACCOUNT = Account(("replicated", "ann"))
ON = levels(ACCOUNT, own=limit(10**6, 10**6))


@pytest_asyncio.fixture
async def waiting_store(own_postgres: PostgresServer) -> AsyncIterator[PostgresStore]:
    """Open a ledger whose server waits for a standby that is not there."""
    await (await PostgresStore.open(own_postgres.address)).close()
    own_postgres.restart(SYNCHRONOUS)
    async with closing(store := await PostgresStore.open(own_postgres.address)):
        yield store


@pytest.fixture
def standby(own_postgres: PostgresServer) -> Iterator[PostgresServer]:
    """Run a standby that `own_postgres` waits for."""
    own_postgres.restart(SYNCHRONOUS)
    with standby_of(own_postgres) as server:
        becomes_true(own_postgres, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        yield server


def becomes_true(server: PostgresServer, question: str) -> None:
    """Wait until a server answers yes."""
    end = time.monotonic() + 20
    while server.execute(question) != [(True,)]:
        assert time.monotonic() < end, question
        time.sleep(0.05)


async def test_a_charge_that_no_standby_has_is_not_acknowledged(
    own_postgres: PostgresServer, waiting_store: PostgresStore
) -> None:
    """Nor is what waits behind it; once the operator does without standbys, a repeat tells what became of it."""
    asked = charge("c", account=ACCOUNT, on=ON)
    with pytest.raises(OutcomeUnknownError):
        await waiting_store.apply(*asked)
    with pytest.raises(StoreUnavailableError):
        await waiting_store.apply(*charge("d", account=ACCOUNT, on=ON))
    own_postgres.restart()
    await waiting_store.apply(*asked)
    assert Cost(4, 1) == (await waiting_store.read(ACCOUNT, ON)).levels[-1].spent


async def test_a_wait_for_a_standby_that_is_cancelled_acknowledges_nothing(
    own_postgres: PostgresServer, waiting_store: PostgresStore
) -> None:
    """PostgreSQL then reports success with a warning, and the repeat that finds the charge has to wait as well."""
    asked = charge("c", account=ACCOUNT, on=ON)
    first = asyncio.create_task(waiting_store.apply(*asked))
    cancel = "SELECT bool_or(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    await asyncio.to_thread(becomes_true, own_postgres, cancel)
    with pytest.raises(OutcomeUnknownError, match="fail-over"):
        await first
    assert Cost(4, 1) == (await waiting_store.read(ACCOUNT, ON)).levels[-1].spent
    with pytest.raises(OutcomeUnknownError, match="no answer"):
        await waiting_store.apply(*asked)


async def test_what_was_acknowledged_outlives_a_fail_over(
    own_postgres: PostgresServer, standby: PostgresServer
) -> None:
    """Killed under load, its standby promoted: every charge is made once, and what was answered before is known."""
    hosts = f"127.0.0.1:{own_postgres.port},127.0.0.1:{standby.port}"
    address = f"postgresql://gris@{hosts}/postgres?connect_timeout=10&target_session_attrs=read-write"
    asked = [charge(str(index), Cost(1, 1), account=ACCOUNT, on=ON) for index in range(1200)]
    first: dict[str, Answer] = {}
    under_load = asyncio.Event()
    async with closing(await PostgresStore.open(address)) as store:

        async def insist(request: Asked[Charge]) -> None:
            while request.request.request_id not in first:
                try:
                    first[request.request.request_id] = await store.apply(*request)
                except StoreError:
                    await asyncio.sleep(0.05)

        async def caller(start: int) -> None:
            for request in asked[start::8]:
                await insist(request)
                if len(first) == 400:
                    under_load.set()

        callers = [asyncio.create_task(caller(start)) for start in range(8)]
        await under_load.wait()
        own_postgres.kill()
        before = dict(first)
        standby.execute("SELECT pg_promote()")
        await asyncio.gather(*callers)
        assert Cost(len(asked), len(asked)) == (await store.read(ACCOUNT, ON)).levels[-1].spent
        for request in asked:
            if answered := before.get(request.request.request_id):
                assert await store.apply(*request) == Answer(answered.outcome, replayed=True)


def required(*servers: PostgresServer) -> str:
    """Return the address of a ledger that has to be on a standby, on whichever server takes writes."""
    hosts = ",".join(f"127.0.0.1:{each.port}" for each in servers)
    parameters = "connect_timeout=10&synchronous=required&target_session_attrs=read-write"
    return f"postgresql://gris@{hosts}/postgres?{parameters}"


async def test_a_server_that_replicates_asynchronously_is_refused_where_that_matters(
    own_postgres: PostgresServer,
) -> None:
    """By its settings, by what its user may see, and by whether the standby is there; another word is no option."""
    with pytest.raises(StoreUnusableError, match="asynchronously: set synchronous_standby_names"):
        await PostgresStore.open(required(own_postgres))
    own_postgres.restart(SYNCHRONOUS)
    with pytest.raises(StoreUnavailableError, match="no synchronous standby"):
        await PostgresStore.open(required(own_postgres))
    own_postgres.execute("DROP ROLE IF EXISTS nobody_special")
    with psycopg.connect(own_postgres.address, autocommit=True) as connection:
        # No standby is there to wait for.
        connection.execute("SET synchronous_commit = local")
        connection.execute("CREATE ROLE nobody_special LOGIN")
    with pytest.raises(StoreUnusableError, match="GRANT pg_read_all_stats"):
        await PostgresStore.open(required(own_postgres).replace("gris@", "nobody_special@"))
    with pytest.raises(StoreUnusableError, match="must be required"):
        await PostgresStore.open(required(own_postgres).replace("=required", "=yes"))


async def test_a_primary_that_comes_back_after_a_fail_over_is_not_used(
    own_postgres: PostgresServer, standby: PostgresServer, tmp_path: Path
) -> None:
    """It still takes writes, alone and with a standby of its own; neither a service that runs uses it nor a new one."""
    address, mark = required(own_postgres, standby), tmp_path / "ledger.mark"
    async with closing(await PostgresStore.open(address, mark=mark)) as store:
        await store.apply(*charge("before", account=ACCOUNT, on=ON))
        await store.check()
        own_postgres.kill()
        standby.execute("SELECT pg_promote()")
        standby.restart(SYNCHRONOUS)
        with standby_of(standby):
            becomes_true(standby, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
            await insisted(lambda: store.apply(*charge("after", account=ACCOUNT, on=ON)))
            await insisted(store.check)
            own_postgres.start()
            # Nothing waits for a standby that follows another one now.
            with pytest.raises(StoreUnavailableError, match="no synchronous standby"):
                await PostgresStore.open(required(own_postgres), mark=mark)
            with standby_of(own_postgres):
                becomes_true(
                    own_postgres, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
                )
                with pytest.raises(StoreUnusableError, match="behind its mark"):
                    await PostgresStore.open(required(own_postgres), mark=mark)
                # Each of these comes on a connection of its own, for which the old primary is asked first.
                standby.hang_up()
                await insisted(lambda: store.apply(*charge("again", account=ACCOUNT, on=ON)))
                assert Cost(12, 3) == (await store.read(ACCOUNT, ON)).levels[-1].spent
        own_postgres.restart()


async def insisted(ask: Callable[[], Awaitable[object]]) -> None:
    """Try again until the store does it."""
    async with asyncio.timeout(30):
        while True:
            try:
                await ask()
                return
            except StoreError:
                await asyncio.sleep(0.05)
