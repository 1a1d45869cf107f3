"""Each container goes away while questions are asked: it is killed and started again, or cut off the network."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from tests.containers.conftest import load_pinot
from tests.containers.outages import take_away, ways
from tests.containers.stack import Placed, Services
from tests.kubernetes.application import Application, Totals, charged

pytestmark = pytest.mark.nightly

ASKERS = 4
BACK_SECONDS = 120.0
ANSWERS = 5


@ways
@pytest.mark.parametrize("name", ["dp", "budget", "redis"])
async def test_nothing_is_lost_when_a_container_goes_away(
    services: Services, duckdb: DuckDBEngine, name: str, *, killed: bool
) -> None:
    """Questions fail meanwhile and are answered afterwards; every answer is charged once, and nothing else is."""
    async with questions(services, services.budget, duckdb):
        await take_away(getattr(services, name), killed=killed)


@ways
@pytest.mark.parametrize("name", ["budget_on_postgres", "postgres"])
async def test_nothing_is_lost_with_postgresql(
    services: Services, duckdb: DuckDBEngine, name: str, *, killed: bool
) -> None:
    """The same for a ledger in PostgreSQL."""
    async with questions(services, services.budget_on_postgres, duckdb):
        await take_away(getattr(services, name), killed=killed)


@ways
async def test_nothing_is_lost_when_pinot_goes_away(
    services: Services, pinot_container: Placed, pinot: PinotEngine, *, killed: bool
) -> None:
    """The same for the engine, which is empty after a crash: what it cannot answer costs nothing."""
    async with questions(services, services.budget, pinot):
        await take_away(pinot_container, killed=killed)
        await asyncio.to_thread(load_pinot, pinot_container)


@asynccontextmanager
async def questions(services: Services, budget: Placed, engine: Engine) -> AsyncIterator[None]:
    """Have questions asked all along; in the end, compare what the askers were charged with the ledger."""
    application = Application(services.dp.address(), budget.address(), engine)
    before, stop, totals = await application.settled(), asyncio.Event(), Totals()
    asking = asyncio.create_task(application.ask_until(stop, totals, ASKERS))
    try:
        await more_answers(totals)
        yield
        await more_answers(totals)
    finally:
        stop.set()
        await asking
    charged(totals, before, await application.settled())


async def more_answers(totals: Totals) -> None:
    """Wait until some more questions have been answered."""
    wanted, end = totals.answered + ANSWERS, time.monotonic() + BACK_SECONDS
    while totals.answered < wanted:
        assert time.monotonic() < end, f"no answer any more: {totals.line()}"
        await asyncio.sleep(0.05)
