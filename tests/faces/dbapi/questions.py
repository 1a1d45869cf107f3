"""Questions that the tests here share, and a short way to a connection."""

from __future__ import annotations

from typing import Any

from pinot_connector import PrivateClient
from pinot_connector.dbapi import Connection
from pinot_connector.engines.base import Engine
from tests.support.world import World, new_account

COHORTS = "SELECT cohort, COUNT(DISTINCT member_id) AS members FROM feedback GROUP BY cohort"
ARTICLES = (
    "SELECT article_id, COUNT(DISTINCT member_id) AS members FROM feedback "
    "GROUP BY article_id ORDER BY members DESC LIMIT 5"
)


def connected(
    world: World, engine: Engine, *, intervals: bool = True, max_cost: int | None = None, **options: Any
) -> Connection:
    """Returns a connection, with an account of its own unless one is named."""
    defaults: dict[str, Any] = {"dp": world.dp, "budget": world.budget, "account": new_account()}
    client = PrivateClient(engine=engine, **(defaults | options))
    return Connection(client, intervals=intervals, max_cost=max_cost)
