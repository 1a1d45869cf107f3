"""The service on PostgreSQL: several processes on one ledger, and a store that goes away and comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
from gris_api.budget.v1 import budget_pb2 as pb

from tests.support.budget_client import account, charging, connected, cost
from tests.support.budget_process import (
    NOT_SERVING,
    SERVING,
    health,
    health_becomes,
    listens,
    refused,
    said_ready,
    service,
    starting,
)
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer
from tests.unit.budget_service.crashes import require_acknowledged_charges, require_service_outlives

# One company of which a single unit is left once ninety-nine were charged.
ONE_LEFT = """
accounts:
  - path: [acme]
    limit: {information: 100, calls: 1000}
  - path: [acme, "*"]
    limit: {information: 1000, calls: 1000}
"""


def folder(parent: Path, name: str) -> Path:
    """Return a new folder for the files of one process."""
    made = parent / name
    made.mkdir()
    return made


async def test_two_services_share_one_ledger(own_postgres: PostgresServer, tmp_path: Path) -> None:
    """Of many at both who want the last unit exactly one wins, and each repeats what the other has answered."""
    one, other = (
        service(folder(tmp_path, name), own_postgres.address, configuration=ONE_LEFT) for name in "ab"
    )
    with one as first, other as second:
        async with connected(first.address) as left, connected(second.address) as right:
            answer = await left.UpdateBudget(charging(cost(99, 1), request_id="before"))
            again = await right.UpdateBudget(charging(cost(99, 1), request_id="before"))
            assert again.replayed
            assert again.levels == answer.levels
            calls = [
                (left, right)[index % 2].UpdateBudget(charging(cost(1, 1), path=("acme", f"a{index % 5}")))
                for index in range(40)
            ]
            ended = await asyncio.gather(*calls, return_exceptions=True)
            lost = [each.code() for each in ended if isinstance(each, grpc.aio.AioRpcError)]
            assert 39 * [grpc.StatusCode.RESOURCE_EXHAUSTED] == lost
            found = await right.GetBudget(pb.GetBudgetRequest(account=account(("acme", "a0"))))
            assert found.levels[0].spent.information == 100


async def test_a_service_that_is_killed_leaves_a_ledger_that_another_goes_on_with(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    """Killed under load: acknowledged <= spent <= acknowledged + unknown, and every repeat is the first answer."""
    folders = (folder(tmp_path, name) for name in "ab")
    # A caller ends with the first call that nobody answers.
    assert await require_acknowledged_charges(own_postgres.address, *folders) == 16


async def test_a_service_outlives_its_postgres(own_postgres: PostgresServer, tmp_path: Path) -> None:
    """UNAVAILABLE and NOT_SERVING while PostgreSQL is down, both quickly; then it goes on by itself."""
    assert await require_service_outlives(own_postgres, tmp_path) == "STORE_UNAVAILABLE"


def test_a_wrong_start_is_refused_in_one_line(own_postgres: PostgresServer, tmp_path: Path) -> None:
    """The exit code is 2."""
    own_postgres.restart("synchronous_commit=off")
    wrong = [
        (refused(tmp_path, own_postgres.address), 2, "synchronous_commit"),
        (refused(tmp_path, "postgresql://u:p#w@127.0.0.1:1/db"), 2, "percent-encoded"),
    ]
    for (code, said), expected, word in wrong:
        assert (code, True) == (expected, word in said)
        assert said.count("\n") == 1


async def test_a_service_waits_for_a_postgres_that_does_not_answer_yet(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    """Not ready, and every attempt in the log; then it serves."""
    own_postgres.kill()
    address = f"127.0.0.1:{free_port()}"
    with starting(tmp_path, own_postgres.address, "--listen", address) as process:
        await listens(address)
        assert await health(address) == NOT_SERVING
        own_postgres.start()
        assert said_ready(process)["address"] == address
        await health_becomes(address, SERVING)
    assert "event=store.not_opened" in (tmp_path / "log").read_text()
