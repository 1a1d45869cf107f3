"""Refusals as agents read them: the place, the name that is meant, and an example that the call is accepted with."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from gris_api.dp.v1 import question_pb2

from dp_service.server.served_policy import ServedPolicy
from gris_mcp.tools import TOOLS
from pinot_connector.budgets import Level
from pinot_connector.catalog import Catalog
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.errors import ServiceUnavailable
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
      buckets: [day, month], parts: [hour, weekday, month]}
    contributions: {bound: in_query, delta_0: 8, units: 50, most_units: 200,
      names: {delta_1: 1, share: 1/4, max_names: 75}, totals: {share: 1/4},
      sums: {max_members: 100000, max_rows: 1000000}}
    measures: {distinct_members: true, events: {tau: 8, tau_is: clipped}, distinct: {city: 16}}
    columns:
      rider_id: {type: string}
      city: {type: string, group_by: true, filter: [in, not_in], domain: [Wien, berlin, "par\\u200bis", rome]}
      promo_code: {type: string, group_by: true, filter: [in, not_in]}
      rating: {type: int64, group_by: true, filter: [in, not_in, range], domain: [1, 2, 3, 4, 5]}
      vehicle: {type: int64, group_by: true, filter: [in, not_in, range]}
      picked_up_at: {type: timestamp, filter: [range]}
    values:
      price_cents: {type: int64, lower: 0, upper: 256, row_lower: 0, row_upper: 16}
    quantiles:
      price_cents: {type: int64, member_value: one_row, grid: {scale: linear, from: 0, to: 32768, cells: 512}}
  visits:
    member: m
    measures: {events: {tau: 4, tau_is: assumed}}
    columns:
      page: {type: string, group_by: true}
"""
RIDES = {"table": "rides"}
LARGE = 2**53 + 2

# A call that is refused, where, and what is said among other things.
REFUSED: list[tuple[dict[str, Any], str | None, str]] = [
    ({}, "table", "expected a table of the catalogue"),
    ({"table": "ridez", "by": "city"}, "table", "there is no table ridez (did you mean rides?)"),
    ({"table": "visits", "by": "pages"}, "by[0]", "did you mean page?"),
    ({"table": "visits"}, "measure", ""),
    ({"sql": "SELEC"}, "sql", "line 1, column 1"),
    ({"sql": "SELECT COUNT(*) FROM rides", **RIDES}, "sql", "expected it alone, without table"),
    ({"sql": "SELECT town, COUNT(*) FROM rides GROUP BY town"}, "sql", "line 1, column"),
    ({**RIDES, "by": 7}, "by", "got a whole number"),
    ({**RIDES, "by": ["rating", "town"]}, "by[1]", "there is no column town; the columns are city"),
    ({**RIDES, "by": "Citty"}, "by[0]", "there is no column Citty (did you mean city?)"),
    (
        {**RIDES, "by": "month"},
        "by[0]",
        'bucket "month:picked_up_at" for each month of each year or by ["EXTRACT(MON',
    ),
    ({**RIDES, "by": ["weekday", "hour"]}, "by[0]", 'by ["EXTRACT(ISODOW FROM picked_up_at)"]'),
    ({**RIDES, "by": ["city", "day:picked_up_at"]}, "by[1]", 'bucket "day:picked_up_at"'),
    ({**RIDES, "by": ["hour:picked_up_at"]}, "by[0]", 'by ["EXTRACT(HOUR FROM picked_up_at)"]'),
    ({**RIDES, "by": "picked_up_at"}, "by", "a column of timestamps"),
    ({**RIDES, "by": "rider_id"}, "by[0]", "the member column is only counted"),
    ({**RIDES, "measure": "money"}, "measure", "expected distinct_members, events or"),
    ({**RIDES, "measure": "distinct:rating"}, "measure", "the columns are city"),
    ({**RIDES, "where": {"town": "Paris"}}, "where[0].column", "there is no column town"),
    ({**RIDES, "where": {"city": ["Rome"]}}, "where[0].one_of[0]", "(did you mean rome?)"),
    ({**RIDES, "where": {"city": "Lyon"}}, "where", "which has Wien, berlin, par\ufffdis, rome"),
    ({**RIDES, "where": {"rating": {"at_least": "four"}}}, "where", "rating: expected integers"),
    ({**RIDES, "where": {"vehicle": LARGE}}, "where[0].one_of[0]", "as texts of digits"),
    ({**RIDES, "where": '[{"column": "cit'}, "where", "breaks off"),
    ({**RIDES, "where": "rating >> 4"}, "where", "line 1, column 9"),
    ({**RIDES, "condition": "promo_code ~ 'x'"}, "condition", "LIKE compares"),
    ({**RIDES, "since": "June"}, "since", "expected a day"),
    ({**RIDES, "since": "2026-06-27", "until": "2026-06-06"}, "until", "expected a later day"),
    ({**RIDES, "max_error": "few"}, "max_error", "a number above 0"),
    ({**RIDES, "by": "promo_code", "max_error": "0.001"}, "max_error", ""),
    (
        {**RIDES, "sums": "city"},
        "sums[0]",
        "there is no column city of this kind; the columns are price_cents",
    ),
    ({**RIDES, "averages": "prices", "by": "city"}, "averages[0]", "there is no column prices"),
    ({**RIDES, "order_by": "foo"}, "order_by", "expected sum:COLUMN"),
    ({**RIDES, "quantiles": {"city": "median"}}, "quantiles[0].column", "the columns are price_cents"),
    ({**RIDES, "quantiles": {"price_cents": "medium"}}, "quantiles", "expected a number between 0 and 1"),
    ({**RIDES, "bucket": "hour"}, "bucket", "expected LENGTH:COLUMN"),
    ({**RIDES, "by": ["city", "rating"], "totals_by": "x"}, "totals_by", "there is no column x"),
    ({**RIDES, "having": "rows > 3"}, "having", "expected count"),
    ({**RIDES, "k": -1, "by": "nope"}, "k", "at least 1"),
    ({**RIDES, "k": 0}, "k", "at least 1"),
    ({**RIDES, "numbers": "avg of x"}, "numbers", "line 1, column 8"),
    ({**RIDES, "counts": "maybe"}, "counts", "expected true or false"),
    ({**RIDES, "ranked": False, "order_by": "count", "bucket": "month"}, "ranked", "expected true"),
    ({**RIDES, "by": ["EXTRACT(YEAR FROM picked_up_at)"]}, "by", "DATE_TRUNC('year', column)"),
    ({**RIDES, "group_by": "city"}, None, "there is no field group_by (did you mean by?)"),
    ({**RIDES, "retention": "month"}, None, "did you mean by?"),
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

    async def explain(self, question: question_pb2.Question) -> Explanation:
        """Return the price."""
        return explanation_of((await self._dp.estimate(question)).estimate)

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
async def test_a_refused_call_is_accepted_with_its_example(
    dp: DpServiceClient, arguments: dict[str, Any], field: str | None, said: str
) -> None:
    """It is of the table that was asked about; a field that is none has to go."""
    failure = await explained(Priced(dp), arguments)
    assert field == failure.get("field")
    assert said in failure["message"]
    kept = {name: each for name, each in arguments.items() if name not in ("group_by", "retention")}
    accepted = await explained(Priced(dp), {**kept, **json.loads(failure["example"])})
    assert "error" not in accepted, (failure, accepted)


async def test_no_example_is_shown_where_none_is_known_to_be_accepted(dp: DpServiceClient) -> None:
    """The catalogue cannot be read, or the table offers nothing of the kind."""
    for arguments, _, _ in REFUSED:
        assert "example" not in await explained(Priced(dp, unreadable=True), arguments)
    nothing: list[dict[str, Any]] = [{"sums": "x"}, {"bucket": "month:day"}, {"quantiles": {"x": "max"}}]
    for arguments in nothing:
        failure = await explained(
            Priced(dp), {"table": "visits", "by": "page", "measure": "rows", **arguments}
        )
        assert "example" not in failure, failure


async def test_a_refusal_repeats_no_value_and_only_plain_names(dp: DpServiceClient) -> None:
    """Neither one that was sent, nor letters that nobody sees."""
    for name in ("ignore all", "a\u202eb", "x" * 41):
        for arguments in ({"by": name}, {"where": {name: name}}, {"sums": [name]}, {"table": name}):
            assert name not in json.dumps(
                await explained(Priced(dp), {**RIDES, **arguments}), ensure_ascii=False
            )
