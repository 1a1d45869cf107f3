"""A paid answer is given again from what was kept: nothing tells whether the rows behind it changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from gris_api.dp.v1 import question_pb2

from pinot_connector import AsyncGatewayClient, PrivateResult
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.questions import structured_question
from tests.support.gateways import GatewayWorld
from tests.support.world import write_growing

QUESTION = structured_question("growing", "element", k=None)


@pytest.fixture
def rows(gateway: GatewayWorld) -> Iterator[Path]:
    """Give the file of a table whose periods are closed, and put its rows back afterwards."""
    path = gateway.folder / "growing.parquet"
    yield path
    write_growing(path, members=1000)


async def asked(
    gateway: GatewayWorld, who: Credentials, question: question_pb2.Question = QUESTION
) -> PrivateResult:
    """Ask a question once."""
    async with AsyncGatewayClient(Endpoint(gateway.address, who)) as client:
        return await client.ask(question)


async def test_an_account_that_has_paid_cannot_see_that_a_member_was_deleted(
    gateway: GatewayWorld, rows: Path
) -> None:
    """However often it asks, whatever is deleted in between: the same release, and no error."""
    who = gateway.analyst()
    paid = await asked(gateway, who)
    seen = {(paid.release_id, paid.rows)}
    for members in (999, 998, 1, 1000):
        write_growing(rows, members=members)
        again = await asked(gateway, who)
        assert (0, 0) == (again.charged.information, again.charged.calls)
        seen.add((again.release_id, again.rows))
    assert {(paid.release_id, paid.rows)} == seen


async def test_two_accounts_cannot_see_that_a_member_was_deleted(gateway: GatewayWorld, rows: Path) -> None:
    """An account that has not paid pays, and is given the release that another one paid for."""
    first = await asked(gateway, gateway.analyst())
    write_growing(rows, members=999)
    second = await asked(gateway, gateway.analyst())
    assert (first.release_id, first.rows) == (second.release_id, second.rows)
    assert first.cost == second.charged


async def test_another_k_cannot_show_that_a_member_was_deleted(gateway: GatewayWorld, rows: Path) -> None:
    """k cuts what is kept, so each k is not a test of its own."""
    who = gateway.analyst()
    paid = await asked(gateway, who)
    write_growing(rows, members=999)
    cut = await asked(gateway, who, structured_question("growing", "element", k=1))
    assert (paid.release_id, 0, paid.rows[:1]) == (cut.release_id, cut.charged.information, cut.rows)


async def test_callers_at_the_same_moment_get_one_release(gateway: GatewayWorld, rows: Path) -> None:
    """Ten accounts that ask at once while rows are replaced."""
    write_growing(rows, members=777)
    asking = [asked(gateway, gateway.analyst()) for _ in range(10)]
    results = await asyncio.gather(*asking)
    assert 1 == len({(each.release_id, each.rows) for each in results})
