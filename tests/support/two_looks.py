"""A world whose questions take two looks, and an engine that does something between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from pinot_connector import AsyncPrivateClient, Timeouts
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.clients import Counted, asking_client
from tests.support.embedded import UNHURRIED
from tests.support.world import COFACTS, World

DELTA_1, DELTA_2, MOST, UNITS = 4, 8, 75, 40_000
_TABLE = """
    member: member_id
    measures: {distinct_members: true, rows: 16}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true, typical: 8, filter: [in, not_in]}
      app: {type: string, group_by: true, typical: 8}
      score: {type: int64, group_by: true, typical: 8, filter: [in], domain: [-1, 0, 1]}
"""
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  feedback:
    contributions:
      bound: in_query
      units: {UNITS}
      min_count: 3
      longest_list: {MOST}{_TABLE}
  many:
    member: member_id
    contributions: {{bound: assumed, delta: 1, units: {UNITS}, longest_list: 10}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: int64}}
      element: {{type: string, group_by: true}}
  fractions:
    contributions:
      {{bound: in_query, units: 10, longest_list: 20}}{_TABLE}
  anew:
    consistency: fresh
    contributions:
      {{bound: in_query, units: 10, longest_list: 20}}{_TABLE}
"""
BUDGET = """
accounts:
  - path: [t]
    limit: {information: 1000000000, calls: 1000000}
  - path: [t, "*"]
    limit: {information: 100000000, calls: 1000}
  - path: [narrow]
    limit: {information: 1000, calls: 1000}
  - path: [narrow, "*"]
    limit: {information: 15, calls: 5}
"""
# Two looks are held for 4 s, of which 1 s is left for the charge.
SHORT = replace(UNHURRIED, reservation=2)
# The full price of the question.
SPENT = (10, 1, 0, 0)
NOTHING = (0, 0, 0, 0)


class Between(Counted):
    """DuckDB that does something before its second query."""

    def __init__(self, before_second: Callable[[], None] = lambda: None, path: Path = COFACTS) -> None:
        super().__init__(dict.fromkeys(("feedback", "fractions", "anew"), path))
        self._before_second = before_second

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers as DuckDB does."""
        self.queries.append(query.sql)
        if self.runs == 2:
            self._before_second()
        return DuckDBEngine.run(self, query, data_version)


@asynccontextmanager
async def asking(
    world: World,
    engine: DuckDBEngine,
    *,
    dp: str = "",
    budget: str = "",
    account: str = "",
    timeouts: Timeouts = UNHURRIED,
) -> AsyncIterator[AsyncPrivateClient]:
    """Give a client with a release store and, unless one is named, an account of its own."""
    clients = asking_client(world, engine, dp=dp, budget=budget, account=account, timeouts=timeouts)
    async with clients as client:
        yield client
    engine.close()


async def held_and_spent(client: AsyncPrivateClient) -> tuple[int, int, int, int]:
    """Return what the account has spent and what is reserved for it, in information and calls."""
    level = (await client.remaining())[-1]
    return (
        level.spent.information,
        level.spent.calls,
        level.reserved.information,
        level.reserved.calls,
    )


def fails(error: Exception) -> Callable[[], None]:
    """Return what raises an error."""

    def fail() -> None:
        raise error

    return fail
