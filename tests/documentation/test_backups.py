"""Each store is backed up, put back and confirmed by the commands of docs/backups.md, on real servers."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from tests.documentation.commands import run
from tests.support.budget_client import charging, connected, failure
from tests.support.budget_process import refused, service
from tests.support.pages import blocks, section
from tests.support.postgres_server import postgres_server
from tests.support.programs import found
from tests.support.redis_server import redis_server
from tests.support.rings import needs


@dataclass(frozen=True)
class Stored:
    """A store, and how the page's commands know it.

    `restored` is the address after a restore; `options` are what only a service takes; `stopped` and `started` are what
    an operator does to its server.
    """

    name: str
    address: str
    restored: str
    mark: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    stopped: Callable[[], None] = lambda: None
    started: Callable[[], None] = lambda: None


@contextmanager
def sqlite(folder: Path) -> Iterator[Stored]:
    """Keep the ledger in a file."""
    address, backups = f"sqlite:{folder}/ledger.db", folder / "backups"
    backups.mkdir()
    environment: dict[str, str] = {}
    options = ("--admin-listen", "127.0.0.1:0", "--backups", str(backups))

    def find() -> None:
        (backup,) = backups.iterdir()
        environment["BACKUP"] = str(backup)

    yield Stored("SQLite", address, address, options=options, environment=environment, stopped=find)


@contextmanager
def redis(folder: Path) -> Iterator[Stored]:
    """Keep the ledger in a Redis that is set up as the page says."""
    data = folder / "data"
    data.mkdir()
    with redis_server(data) as server:
        settings = ("bind 127.0.0.1", f"port {server.port}", f"dir {data}", "appendonly yes")
        (folder / "redis.conf").write_text("\n".join(settings))
        environment = {"LEDGER": server.address, "DATA": str(data)}
        mark = ("--mark", str(folder / "ledger.mark"))
        try:
            yield Stored(
                "Redis", server.address, server.address, mark, (), environment, server.kill, server.start
            )
        finally:
            # One that a command has left running, if a command failed.
            ending = ["redis-cli", "-p", str(server.port), "shutdown", "nosave"]
            subprocess.run(ending, capture_output=True, check=False)


@contextmanager
def postgres(folder: Path) -> Iterator[Stored]:
    """Keep the ledger in a database."""
    with postgres_server() as server:
        restored = server.address.replace("/postgres?", "/restored?")
        assert restored != server.address
        environment = {"LEDGER": server.address, "ADMINISTRATOR": server.address, "RESTORED": restored}
        mark = ("--mark", str(folder / "ledger.mark"))
        yield Stored("PostgreSQL", server.address, restored, mark, (), environment)


@pytest.fixture(params=[sqlite, redis, postgres], ids=["sqlite", "redis", "postgres"])
@needs("redis", "postgres")
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    """Each store by itself."""
    if request.param is redis and found("redis-cli") is None:
        pytest.skip("redis-cli is missing: deploy/test-servers")
    with request.param(tmp_path) as made:
        yield made


async def charged(folder: Path, stored: Stored, *, copying: str) -> None:
    """Charge, copy the ledger while it is served, and charge what will be lost."""
    with service(folder, stored.address, *stored.mark, *stored.options) as running:
        environment = {**stored.environment, "GRIS_BUDGET_ADMIN": running.admin_address or ""}
        async with connected(running.address) as stub:
            await stub.UpdateBudget(charging())
            await asyncio.to_thread(run, copying, folder, environment)
            await stub.UpdateBudget(charging())
        assert running.end(signal.SIGTERM) == 0


async def test_a_backup_is_restored_as_the_page_says(stored: Stored, tmp_path: Path) -> None:
    """What was lost is noticed, refused until it is confirmed, and then what was left is spent."""
    copying, restoring, confirming = blocks(section("backups.md", f"## {stored.name}"), "sh")
    await charged(tmp_path, stored, copying=copying)
    stored.stopped()
    run(restoring, tmp_path, stored.environment)
    stored.started()
    code, reported = refused(tmp_path, stored.restored, *stored.mark)
    assert code == 2
    assert "--confirm-restored" in reported
    run(confirming, tmp_path, stored.environment)
    with service(tmp_path, stored.restored, *stored.mark) as running:
        async with connected(running.address) as stub:
            answer = await failure(stub.UpdateBudget(charging()))
    assert (answer.code, answer.info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "BUDGET_EXHAUSTED")
