"""Questions through a region: they are asked, paid for, repeated and refused as with a single ledger."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from gris_cli.__main__ import main
from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted, HomeUnavailable
from tests.support.budget_process import service
from tests.support.world import World

REGION = """
accounts:
  - path: [acme]
    limit: {information: 10000, calls: 1000}
  - path: [acme, ann]
    limit: {information: 100, calls: 30}
"""
HOME = f"leases: {{share_percent: 40, outstanding_percent: 90}}\n{REGION}"

pytestmark = pytest.mark.usefixtures("starts_processes")


async def test_a_question_through_a_region_is_like_any_other(
    world: World, engine: DuckDBEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its price, its repeat for nothing, what is left, the guarantee and the end of the budget; the home has it all."""
    at_home, in_region = tmp_path / "home", tmp_path / "region"
    for each in (at_home, in_region):
        each.mkdir()
    with service(at_home, f"sqlite:{at_home}/ledger.db", configuration=HOME) as home:
        file = in_region / "region.yaml"
        file.write_text(f"name: eu\nhome: {home.address}\nreport_seconds: 0.1\nidle_seconds: 600\n")
        options = ("--region", str(file))
        store = f"sqlite:{in_region}/ledger.db"
        with service(in_region, store, *options, configuration=REGION) as region:
            async with AsyncPrivateClient(
                dp=world.dp, budget=region.address, account="acme/ann", engine=engine
            ) as client:
                result = await client.top_k("feedback", "article_id", 5)
                assert (result.charged.information, result.charged.calls) == (11, 1)
                assert (await client.top_k("feedback", "article_id", 5)).charged.information == 0
                *_, own = await client.remaining()
                assert (own.spent.information, own.reserved.information) == (11, 29)
                assert (await client.guarantee()).own.guarantee is not None
                shown = await asyncio.to_thread(_show, home.address, capsys)
                assert shown == await asyncio.to_thread(_show, region.address, capsys)
                assert "held by eu" in shown
                assert "29 information units" in shown
                with pytest.raises(BudgetExhausted):
                    await _ask_until_refused(client)
            async with AsyncPrivateClient(
                dp=world.dp, budget=home.address, account="acme/ann", engine=engine
            ) as elsewhere:
                again = await elsewhere.top_k("feedback", "article_id", 5)
                assert (again.rows, again.charged.information) == (result.rows, 0)


async def test_a_region_without_its_home_answers_again_and_goes_on(
    world: World, engine: DuckDBEngine, tmp_path: Path
) -> None:
    """Only the home knows what is left, and whether an account is closed: an error says so to those who ask."""
    at_home, in_region = tmp_path / "home", tmp_path / "region"
    for each in (at_home, in_region):
        each.mkdir()
    with service(at_home, f"sqlite:{at_home}/ledger.db", configuration=HOME) as home:
        file = in_region / "region.yaml"
        file.write_text(f"name: eu\nhome: {home.address}\n")
        with service(
            in_region, f"sqlite:{in_region}/ledger.db", "--region", str(file), configuration=REGION
        ) as region:

            def client(account: str = "acme/ann") -> AsyncPrivateClient:
                return AsyncPrivateClient(dp=world.dp, budget=region.address, account=account, engine=engine)

            async with client() as before:
                first = await before.top_k("feedback", "article_id", 5)
                assert first.charged.information == 11
                await asyncio.to_thread(home.end, signal.SIGKILL)
                # It has the release, and has not asked the ledger whether its account is closed.
                async with client() as after:
                    again = await after.top_k("feedback", "article_id", 5)
                    assert (again.rows, again.charged.information) == (first.rows, 0)
                    with pytest.raises(HomeUnavailable):
                        await after.remaining()
                    # Of whom it charges it knows by the lease that the account is not closed; of nobody else.
                    await after.require_not_closed()
                    async with client("acme/bob") as stranger:
                        with pytest.raises(HomeUnavailable):
                            await stranger.require_not_closed()
                    # A region that answers is not silent: nobody waits until it is tried again.
                    assert (await after.top_k("feedback", "article_id", 2)).charged.information == 5


async def _ask_until_refused(client: AsyncPrivateClient) -> None:
    # Each has a worst case of its own, up to more than what is left; the region grants, or the home decides.
    for k in range(1, 40):
        await client.top_k("feedback", "article_id", k, where={"score": 1})


def _show(address: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["budget", "show", "--account", "acme/ann", "--budget", address]) == 0
    return capsys.readouterr().out
