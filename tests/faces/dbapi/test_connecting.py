"""How connections are opened, and what they ask for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pinot_connector import Audience, PrivateClient, dbapi
from pinot_connector.dbapi import Connection, connect
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.embedded import embedded
from tests.support.relay import relayed
from tests.support.world import COFACTS, POLICY, World

from .questions import COHORTS, connected


async def test_nothing_is_asked_before_execute(world: World, engine: DuckDBEngine) -> None:
    """Opening a connection and a cursor costs no call; an execute is one question, charged once."""
    async with relayed(world) as relay:
        connection = await asyncio.to_thread(connected, world, engine, dp=relay.address, budget=relay.address)
        cursor = connection.cursor()
        assert [] == relay.methods
        await asyncio.to_thread(cursor.execute, COHORTS)
        cursor.fetchall()
        await asyncio.to_thread(connection.close)
        assert ["ReserveBudget", "AddNoiseUnary", "UpdateBudget"] == relay.methods[-3:]
        assert {"TranslateQuery"} == set(relay.methods[:-3])


@pytest.mark.parametrize(
    ("options", "expected", "field"),
    [
        ({"url": "localhost"}, dbapi.InterfaceError, "url"),
        ({"credentials": "ana.jwt"}, dbapi.InterfaceError, "credentials"),
        ({"account": 5}, dbapi.ProgrammingError, "account"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], expected: type[dbapi.Error], field: str) -> None:
    """Each error begins with the argument that it is about."""
    with pytest.raises(expected, match=f"^{field}: expected"):
        connect(**({"url": "gris://h:1"} | options))


def test_a_connection_pays_no_more_for_a_question_than_it_may(world: World, engine: DuckDBEngine) -> None:
    """The error names the price, as EXPLAIN does, which is free."""
    with connected(world, engine, max_cost=0) as cursor:
        assert cursor.execute(f"EXPLAIN {COHORTS}").fetchall()
        with pytest.raises(dbapi.ProgrammingError, match="max_cost: the question may cost"):
            cursor.execute(COHORTS)


@pytest.mark.usefixtures("starts_processes")
def test_a_policy_with_audiences_is_asked_as_one(tmp_path: Path) -> None:
    """Of its rows and columns alone; without one the error names the argument."""
    offered = "{tables: {feedback: {columns: [cohort, app], where: {app: $app}}}}"
    with (
        embedded(tmp_path, POLICY + f"audiences: {{of: {offered}}}\n") as services,
        closing(DuckDBEngine({"feedback": COFACTS})) as engine,
    ):

        def asking(audience: Audience | None) -> Connection:
            dp, budget = services.dp_address, services.budget_address
            return Connection(
                PrivateClient(dp=dp, budget=budget, account="t/ana", engine=engine, audience=audience)
            )

        with closing(asking(Audience("of", {"app": "WEBSITE"}))) as connection:
            columns = connection.catalog().tables[0].columns
            assert ["app", "cohort", "day"] == [each.name for each in columns]
            found = connection.execute(COHORTS).fetchall()
        with asking(Audience("of", {"app": "RUMORS_LINE_BOT"})) as cursor:
            assert [] != found != cursor.execute(COHORTS).fetchall()
        for refused in (None, Audience("of"), Audience("staff")):
            with (
                asking(refused) as cursor,
                pytest.raises(dbapi.NotSupportedError, match="the argument audience of PrivateClient"),
            ):
                cursor.execute(COHORTS)


WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"duckdb", "httpcore", "httpx", "numpy", "sqlalchemy", "sqlglot", "yaml"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from pinot_connector import dbapi

dbapi.connect("gris://h:1").close()
print("connected")
"""


@pytest.mark.usefixtures("starts_processes")
def test_the_connectors_own_dependencies_are_enough() -> None:
    """A gateway is asked without any extra."""
    printed = subprocess.check_output([sys.executable, "-c", WITHOUT_EXTRAS], timeout=60, text=True)
    assert printed == "connected\n"
