"""Several processes behind one port: they share the store and the port, and live and die together."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest
from gris_api.budget.v1 import budget_pb2 as pb

from tests.support.budget_client import account, charging, connected, cost
from tests.support.budget_process import Service, refused, service
from tests.support.redis_server import RedisServer, redis_server
from tests.support.rings import needs
from tests.support.worker_connections import CONNECTIONS, connections

WORKERS = ("--workers", "2")
ONE_UNIT = """
accounts:
  - path: [acme]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [acme, "*"]
    limit: {information: 4, calls: 1}
"""


@pytest.fixture(scope="module")
@needs("redis")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis for all tests of this module."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


def workers_of(running: Service) -> list[int]:
    """Return the processes that a supervisor has started."""
    return [child.pid for child in psutil.Process(running.process.pid).children()]


def command_line(pid: int) -> str:
    """Return what a list of processes shows of one."""
    return "\0".join(psutil.Process(pid).cmdline())


def gone(pid: int) -> bool:
    """Tell whether a process has ended; a zombie has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pids: list[int]) -> None:
    """Wait until processes have ended."""
    end = time.monotonic() + 20
    while not all(map(gone, pids)):
        assert time.monotonic() < end, "workers outlive their supervisor"
        time.sleep(0.05)


async def test_workers_share_a_port_and_a_ledger(tmp_path: Path, redis: RedisServer) -> None:
    """One unit left, many connections to two processes: exactly one caller wins."""
    with service(tmp_path, redis.address, *WORKERS, configuration=ONE_UNIT) as running:
        assert len(workers_of(running)) == 2
        async with connections(running.address) as stubs:
            asked = [stub.UpdateBudget(charging(cost(4, 1))) for stub in stubs]
            answers = await asyncio.gather(*asked, return_exceptions=True)
        won = [answer for answer in answers if isinstance(answer, pb.UpdateBudgetResponse)]
        assert len(won) == 1
        codes = {answer.code() for answer in answers if isinstance(answer, grpc.aio.AioRpcError)}
        assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}


async def test_connections_are_spread_over_the_workers(tmp_path: Path, redis: RedisServer) -> None:
    """With one of two processes stopped, some connections are answered and some are not.

    All 32 go to one of them in one of 2^31 runs.
    """
    with service(tmp_path, redis.address, *WORKERS) as running:
        stopped = workers_of(running)[0]
        os.kill(stopped, signal.SIGSTOP)
        try:
            async with connections(running.address) as stubs:
                request = pb.GetBudgetRequest(account=account(("acme", "somebody")))
                asked = [stub.GetBudget(request, timeout=3) for stub in stubs]
                answers = await asyncio.gather(*asked, return_exceptions=True)
        finally:
            os.kill(stopped, signal.SIGCONT)
        answered = sum(isinstance(answer, pb.GetBudgetResponse) for answer in answers)
        assert 0 < answered < CONNECTIONS


async def test_an_address_in_a_file_stands_in_no_command_line(tmp_path: Path, redis: RedisServer) -> None:
    """A user who can list processes sees neither the supervisor's store nor a worker's."""
    file = tmp_path / "address"
    file.write_text(f"{redis.address}\n")
    with service(tmp_path, None, "--store-file", str(file), *WORKERS) as running:
        async with connected(running.address) as stub:
            assert (await stub.UpdateBudget(charging(request_id="in-a-file"))).charged == cost()
        pids = [running.process.pid, *workers_of(running)]
        assert not any(redis.address in command_line(pid) for pid in pids)


def test_a_service_with_workers_ends_when_told(tmp_path: Path, redis: RedisServer) -> None:
    """The exit code is 0, and nothing is left."""
    with service(tmp_path, redis.address, *WORKERS) as running:
        workers = workers_of(running)
        assert running.end(signal.SIGTERM) == 0
        assert all(map(gone, workers))


def test_if_a_worker_dies_all_do(tmp_path: Path, redis: RedisServer) -> None:
    """Whatever started the service sees that it ended, and starts it again."""
    with service(tmp_path, redis.address, *WORKERS) as running:
        workers = workers_of(running)
        os.kill(workers[0], signal.SIGKILL)
        assert running.process.wait(timeout=20) == 1
        assert all(map(gone, workers))


def test_workers_do_not_outlive_a_killed_supervisor(tmp_path: Path, redis: RedisServer) -> None:
    """Otherwise the port would stay taken by processes that nobody watches."""
    with service(tmp_path, redis.address, *WORKERS) as running:
        workers = workers_of(running)
        running.end(signal.SIGKILL)
        wait_until_gone(workers)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("more", [(), ("--validate",)])
def test_sqlite_takes_exactly_one_process(tmp_path: Path, more: tuple[str, ...]) -> None:
    """The command line says so before anything is opened."""
    code, said = refused(tmp_path, f"sqlite:{tmp_path}/ledger.db", *WORKERS, *more)
    assert (code, said.count("\n")) == (2, 1)
    assert "exactly one writer" in said
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1000"])
def test_a_number_of_workers_that_cannot_be_is_refused(tmp_path: Path, wrong: str) -> None:
    """The argument is named, and what it may be."""
    code, said = refused(tmp_path, f"sqlite:{tmp_path}/ledger.db", "--workers", wrong)
    assert code == 2
    assert "--workers: must be a whole number from 1 to 64" in said


async def test_a_port_that_is_taken_is_not_shared(tmp_path: Path, redis: RedisServer) -> None:
    """Another service's calls must not come here by chance, nor ours go there."""
    with service(tmp_path, redis.address, *WORKERS) as running:
        for more in (WORKERS, ()):
            code, said = refused(tmp_path, redis.address, "--listen", running.address, *more)
            assert (code, "cannot listen on" in said) == (2, True)
        async with connected(running.address) as stub:
            await stub.GetBudget(pb.GetBudgetRequest(account=account()))
