"""The line to Redis when something goes wrong on it that nobody foresaw."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Connection

from budget_service.ledger.values import Account, Cost
from budget_service.stores.interface import OutcomeUnknownError, StoreUnavailableError
from budget_service.stores.redis.pipeline import _read
from budget_service.stores.redis.store import RedisStore
from tests.support.budget_samples import charge, levels
from tests.support.ledger_stores import closing
from tests.support.redis_server import DURABLE, RedisServer, redis_server


async def test_a_fault_between_a_write_and_its_answer_leaves_the_outcome_unknown(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry settles it; the error names only the kind of the fault, because its text may name an account."""
    account = Account(("read-badly", "ann"))
    reads = itertools.count()

    async def fails(connection: Any, answer: asyncio.Future[Any]) -> None:
        # What was loaded is read, and not what was written.
        if next(reads):
            raise ValueError(account.text)
        await _read(connection, answer)

    async with closing(await RedisStore.open(shared_redis.address)) as store:
        # Redis knows the scripts.
        await store.apply(*charge("b", account=account))
        with monkeypatch.context() as patched:
            patched.setattr("budget_service.stores.redis.pipeline._read", fails)
            with pytest.raises(OutcomeUnknownError) as reported:
                await store.apply(*charge("c", account=account))
        assert "ValueError" in str(reported.value)
        assert account.text not in str(reported.value)
        await store.apply(*charge("c", account=account))
        assert (await store.read(account, levels(account))).levels[-1].spent == Cost(8, 2)


async def test_a_connection_that_cannot_even_be_closed_keeps_nobody_waiting(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting call fails; later calls get another connection, because this one still holds answers to others."""
    account = Account(("not-closed", "ann"))
    broken: list[Connection] = []

    async def fails(connection: Connection, *_: object) -> None:
        broken.append(connection)
        raise OSError("broken")

    async with closing(await RedisStore.open(shared_redis.address)) as store:
        with monkeypatch.context() as patched:
            patched.setattr("budget_service.stores.redis.pipeline._read", fails)
            patched.setattr(Connection, "disconnect", fails)
            async with asyncio.timeout(10):
                # Nothing but what was to be loaded is lost.
                with pytest.raises(StoreUnavailableError, match="broken"):
                    await store.apply(*charge("c", account=account))
        await store.apply(*charge("c", account=account))
        assert (await store.read(account, levels(account))).levels[-1].spent == Cost(4, 1)
    await broken[0].disconnect()


@pytest.mark.usefixtures("starts_redis")
async def test_what_redis_repeats_of_a_command_is_not_told(tmp_path: Path) -> None:
    """It names an account."""
    account = Account(("repeated", "ann"))
    with redis_server(tmp_path, (*DURABLE, "--rename-command", "XRANGE", "")) as server:
        async with closing(await RedisStore.open(server.address)) as store:
            with pytest.raises(StoreUnavailableError) as reported:
                await store.journal(account.root, "", "", 1)
    assert str(reported.value) == "unknown command 'XRANGE'"


async def test_a_command_that_cannot_be_written_is_its_own_callers_fault(shared_redis: RedisServer) -> None:
    """Nothing is sent of it, and the next one is served."""
    store = await RedisStore.open(shared_redis.address)
    async with closing(store):
        with pytest.raises(TypeError):
            await store._pipeline.ask("GET", None)  # type: ignore[arg-type]
        await store.apply(*charge("d", account=Account(("not-written", "ann"))))
