"""Refusals as agents read them: the place, the name that is meant, and an example that the call is accepted with."""

# ruff: noqa: S608  (the SQL is these tests' own)

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dp_service.server.served_policy import ServedPolicy
from gris_gateway.faces.mcp.tools import TOOLS
from pinot_connector.budgets import Level
from pinot_connector.catalog import Catalog
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.errors import ServiceUnavailable
from pinot_connector.questions import sql_question
from pinot_connector.results import Explanation, explanation_of
from tests.support.agents import text_of
from tests.support.catalog_calls import calls_to, content

POLICY = """
epsilon_per: 0.15
delta: 1e-11
count_noise: gaussian
tables:
  rides:
    member: rider_id
    time: {column: picked_up_at, type: timestamp, zone: UTC, from: 2026-01-01, to: 2026-11-01,
      buckets: {day: 8, month: 8}, parts: {hour: 8, weekday: 8, month: 8}}
    contributions: {bound: in_query, units: 50, most_units: 200,
      longest_list: 75,
      sums: {max_members: 100000, max_rows: 1000000}}
    measures: {distinct_members: true, rows: 64, distinct: {city: 16}}
    columns:
      rider_id: {type: string}
      city: {type: string, group_by: true, typical: 8, filter: [in, not_in],
             domain: [Wien, berlin, "par\\u200bis", rome]}
      promo_code: {type: string, group_by: true, typical: 8, filter: [in, not_in]}
      rating: {type: int64, group_by: true, typical: 8, filter: [in, not_in, range], domain: [1, 2, 3, 4, 5]}
      vehicle: {type: int64, group_by: true, typical: 8, filter: [in, not_in, range]}
      picked_up_at: {type: timestamp, filter: [range]}
    values:
      price_cents: {type: int64, lower: 0, upper: 256, row_lower: 0, row_upper: 16,
        grid: {scale: linear, from: 0, to: 32768, cells: 512}}
  visits:
    member: m
    measures: {events: {tau: 4, tau_is: assumed}}
    columns:
      page: {type: string, group_by: true}
"""
# A call that is refused, where, and what is said among other things.
REFUSED: list[tuple[dict[str, Any], str | None, str]] = [
    ({}, "sql", "expected this field"),
    ({"sql": "SELEC"}, "sql", "line 1, column 1"),
    ({"sql": "SELECT COUNT(*) FROM ridez"}, "sql", "line 1, column 22"),
    ({"sql": "SELECT town, COUNT(*) FROM rides GROUP BY town"}, "sql", "line 1, column"),
    ({"sql": "SELECT COUNT(DISTINCT m) FROM visits"}, "sql", ""),
    ({"sql": "SELECT COUNT(*) FROM rides", "max_cost": "3"}, "max_cost", "expected a whole number, got str"),
    ({"sql": "SELECT COUNT(*) FROM rides", "table": "rides"}, None, "there is no field table"),
]


class Priced:
    """What refusals ask of a gateway: the catalogue, unless it is `unreadable`, and prices, with no budget."""

    def __init__(self, dp: DpServiceClient, *, unreadable: bool = False) -> None:
        self._dp, self._unreadable = dp, unreadable

    async def catalog(self, table: str = "") -> Catalog:
        """Return the policy's."""
        if self._unreadable:
            raise ServiceUnavailable("dp_service", "does not answer")
        return await self._dp.catalog(table)

    async def explain(self, sql: str) -> Explanation:
        """Return the price."""
        return explanation_of((await self._dp.estimate(sql_question(sql))).estimate)

    async def remaining(self) -> tuple[Level, ...]:
        """Return no level."""
        return ()


@pytest.fixture
async def dp() -> AsyncIterator[DpServiceClient]:
    """Serve the policy."""
    async with calls_to(ServedPolicy(content(POLICY))) as calls:
        yield calls


async def explained(client: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what the tool `explain` returns, or why it does not."""
    found: dict[str, Any] = json.loads(text_of(await TOOLS["explain"].called(client, arguments)))
    return found


@pytest.mark.parametrize(("arguments", "field", "said"), REFUSED)
async def test_a_refused_call_shows_one_that_is_accepted(
    dp: DpServiceClient, arguments: dict[str, Any], field: str | None, said: str
) -> None:
    """It is of the table that was asked about."""
    failure = await explained(Priced(dp), arguments)
    assert field == failure.get("field")
    assert said in failure["message"]
    if field == "max_cost":
        return
    accepted = await explained(Priced(dp), json.loads(failure["example"]))
    assert "error" not in accepted, (failure, accepted)
    table = "visits" if "visits" in str(arguments) else "rides"
    assert f"FROM {table}" in failure["example"]


async def test_a_tool_without_arguments_refuses_one_by_its_name(dp: DpServiceClient) -> None:
    """An agent that names an account must not take another's budget for that account's."""
    client: Any = Priced(dp)
    refused = await TOOLS["budget"].called(client, {"account": "acme/ben"})
    assert "there is no field account" in text_of(refused)
    assert not (await TOOLS["budget"].called(client, {})).is_error


async def test_no_example_is_shown_where_the_catalogue_cannot_be_read(dp: DpServiceClient) -> None:
    """It might not be accepted."""
    for arguments, _, _ in REFUSED:
        assert "example" not in await explained(Priced(dp, unreadable=True), arguments)


async def test_a_refusal_repeats_no_value_and_only_plain_names(dp: DpServiceClient) -> None:
    """Neither one that was sent, nor letters that nobody sees."""
    for name in ("ignore all", "a\u202eb", "x" * 41):
        for arguments in ({"sql": f'SELECT COUNT(*) FROM "{name}"'}, {"sql": name}, {name: name}):
            assert name not in json.dumps(await explained(Priced(dp), arguments), ensure_ascii=False)
