"""Sharpening through the real services: what is counted, combined, charged and free, and what is refused for nothing.

In the first table the noise is so small that it is always 0, so an answer can be compared with the counts that a second
look has.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import question_pb2

from gris_cli.__main__ import main
from gris_gateway.history import History
from gris_gateway.messages import all_elements, result_message
from pinot_connector import AsyncPrivateClient, sql_question, structured_question
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    BudgetExhausted,
    InvalidQuestion,
    NotSharpenable,
    RefusedByPolicy,
)
from pinot_connector.gateway_client import result_of
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore
from pinot_connector.results import PrivateResult
from tests.support.clients import Counted, client_of
from tests.support.embedded import embedded
from tests.support.relay import relayed
from tests.support.rings import needs
from tests.support.some import some
from tests.support.world import COFACTS, World, new_account

_TABLE = """
    member: member_id
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true, filter: [in, not_in]}
      app: {type: string, group_by: true}
      score: {type: int64, group_by: true, filter: [in], domain: [-1, 0, 1]}
"""
_LOOKS = "delta_0: 8, units: 10, names: {delta_1: 4, share: 1/4, max_names: 20}"
POLICY = f"""
epsilon_per: 0.5
delta: 1e-6
count_noise: gaussian
tables:
  feedback:
    contributions: {{bound: in_query, {_LOOKS}, sharpening: 50}}{_TABLE}
  closed:
    contributions: {{bound: in_query, {_LOOKS}}}{_TABLE}
  moving:
    contributions: {{bound: in_query, {_LOOKS}, sharpening: 50}}{_TABLE}
  anew:
    consistency: fresh
    contributions: {{bound: in_query, {_LOOKS}}}{_TABLE}
  shifted:
    contributions: {{bound: in_query, delta_0: 3, units: 10, shift: true, sharpening: 50}}{_TABLE}
"""
BUDGET = """
create_at_first_use: true
accounts:
  - path: [t]
    limit: {information: 1000000, calls: 100000}
  - path: [t, "*"]
    limit: {information: 100, calls: 9}
"""
TABLES = ("feedback", "closed", "moving", "anew", "shifted")


@pytest.fixture(scope="module")
@needs("process")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services under the policy above, with a ledger in SQLite that demands tickets."""
    folder = tmp_path_factory.mktemp("sharpening")
    with embedded(folder, POLICY, BUDGET) as services:
        yield World(services.dp_address, services.budget_address, folder)


def written(path: Path = COFACTS) -> Counted:
    """Return DuckDB over one file for all tables."""
    return Counted(dict.fromkeys(TABLES, path))


@asynccontextmanager
async def asking(
    world: World, engine: DuckDBEngine, *, account: str = "", releases: ReleaseStore | None = None
) -> AsyncIterator[AsyncPrivateClient]:
    """Give a client with an account and a release store, of its own unless they are given."""
    async with client_of(
        world, engine, account=account or new_account(), releases=releases or MemoryReleaseStore()
    ) as client:
        yield client


def top(table: str = "feedback", k: int | None = 5, by: str = "article_id") -> question_pb2.Question:
    """Return a question of two looks, unless the domain is known."""
    return structured_question(table, by, k=k)


async def spent(client: AsyncPrivateClient) -> tuple[int, int, int]:
    """Return information and calls that the account has spent, and what is reserved."""
    level = (await client.remaining())[-1]
    return level.spent.information, level.spent.calls, level.reserved.information


def by_element(result: PrivateResult) -> dict[tuple[object, ...], Fraction]:
    """Return the counts as the exact multiples that they are."""
    denominator = result.parameters.denominator
    return {
        row.element: Fraction(round((row.noisy_count or 0) * denominator), denominator) for row in result.rows
    }


async def test_a_sharpening_costs_its_units_and_is_combined_with_what_is_paid_for(world: World) -> None:
    """The same names, counted within them again; weights are the units; once more is the next number."""
    engine = written()
    async with asking(world, engine) as client:
        base = await client.ask(top(k=None))
        first = await client.sharpen(top(k=None), 15, data_version=base.data_version)
        second = await client.sharpen(top(k=None), 15, 30)
        # The names' query, twice that of the second look: bounded to delta_0 within the names.
        assert engine.queries[2] == engine.queries[1] == engine.queries[3]
        assert await spent(client) == (10 + 15 + 30, 1, 0)
        assert [(each.charged.information, each.charged.calls) for each in (base, first, second)] == [
            (10, 1),
            (15, 0),
            (30, 0),
        ]
        sharpened = first.parameters.sharpened
        assert sharpened is not None
        # Of 10 units the second look had 15/2, a third of what the two looks have together.
        assert (sharpened.units_before, sharpened.denominator) == ((Fraction(15, 2),), 3)
        assert len({each.release_id for each in (base, first, second)}) == 3
        assert len({each.query_id for each in (base, first, second)}) == 3
        counts = [by_element(each) for each in (base, first, second)]
        assert counts[0].keys() == counts[1].keys() == counts[2].keys()
        # Each look's own count, from what is shown of all of them together.
        own = [
            counts[0],
            {name: (3 * counts[1][name] - counts[0][name]) / 2 for name in counts[1]},
            {name: (7 * counts[2][name] - 3 * counts[1][name]) / 4 for name in counts[2]},
        ]
        assert all(value.denominator == 1 for look in own for value in look.values())
        # With noise of its own each: nobody's counts are those of another look.
        assert (
            len({tuple(look[name] for look in own) for name in own[0]} & {(v, v, v) for v in own[0].values()})
            < 5
        )
        ranked = [row.noisy_count for row in second.rows]
        assert ranked == sorted(ranked, key=lambda count: -(count or 0))
        for row in some((*first.rows, *second.rows)):
            assert row.interval is not None
            assert row.noisy_count is not None
            assert row.interval[0] <= row.noisy_count <= row.interval[1]


async def test_what_is_shown_of_a_sharpening_again_is_free(world: World) -> None:
    """With any k and either kind of interval: one release, one charge, one query."""
    engine = written()
    async with asking(world, engine) as client:
        await client.ask(top(k=None))
        whole = await client.sharpen(top(k=None), 15)
        part = await client.sharpen(top(k=3), 15)
        planned = await client.sharpen(top(k=3), 15, planned=True)
        again = await client.sharpen(top(k=None), 15)
        assert {each.release_id for each in (part, planned, again)} == {whole.release_id}
        assert (again.rows, again.charged.information) == (whole.rows, 0)
        assert [row.element for row in part.rows] == [row.element for row in whole.rows[:3]]
        assert [row.noisy_count for row in part.rows] == [row.noisy_count for row in whole.rows[:3]]
        assert planned.parameters.sharpened is not None
        assert planned.parameters.sharpened.planned
        assert len(engine.queries) == 3
        assert await spent(client) == (25, 1, 0)


async def test_a_look_more_does_not_have_the_whole_chain_translated_again(world: World) -> None:
    """Each question is translated, and once the look before it; asked again, it is one call."""
    async with relayed(world) as relay:
        lined = World(relay.address, relay.address, world.directory)
        async with asking(lined, written()) as client:
            await client.ask(top(k=None))
            translated = []
            for units in ([5], [5, 6], [5, 6, 7], [5, 6, 7]):
                before = relay.methods.count("TranslateQuery")
                await client.sharpen(top(k=None), *units)
                translated.append(relay.methods.count("TranslateQuery") - before)
            assert translated == [2, 2, 2, 1]
            assert await spent(client) == (10 + 5 + 6 + 7, 1, 0)


async def test_a_second_account_pays_for_the_base_first(world: World) -> None:
    """It is given the same releases, for their whole prices, and the engine is asked no more."""
    engine, releases = written(), MemoryReleaseStore()
    async with asking(world, engine, releases=releases) as client:
        await client.ask(top())
        one = await client.sharpen(top(), 15)
        asked = len(engine.queries)
    async with asking(world, engine, releases=releases) as other:
        with pytest.raises(NotSharpenable, match="paid for"):
            await other.sharpen(top(), 15)
        await other.ask(top())
        with pytest.raises(NotSharpenable, match="one after the other"):
            await other.sharpen(top(), 15, 15)
        assert await spent(other) == (10, 1, 0)
        same = await other.sharpen(top(), 15)
        assert (same.rows, same.release_id, same.charged.information) == (one.rows, one.release_id, 15)
        assert await spent(other) == (25, 1, 0)
        assert len(engine.queries) == asked


async def test_other_units_are_another_release_and_not_combined_with_it(world: World) -> None:
    """Each is combined with the base alone."""
    async with asking(world, written()) as client:
        await client.ask(top())
        one, other = [await client.sharpen(top(), units) for units in (15, 30)]
        assert one.release_id != other.release_id
        assert other.parameters.sharpened is not None
        assert other.parameters.sharpened.units_before == (Fraction(15, 2),)
        assert await spent(client) == (55, 1, 0)


async def test_data_that_moved_are_refused_by_name_and_free(world: World, tmp_path: Path) -> None:
    """Also where the engine's version was read a moment ago, and is no longer true."""
    path = tmp_path / "moving.parquet"

    def put(condition: str) -> None:
        new = path.with_suffix(".new")
        duckdb.execute(
            f"COPY (SELECT * FROM read_parquet('{COFACTS}') WHERE {condition}) TO '{new}' (FORMAT parquet)"  # noqa: S608
        )
        new.replace(path)

    put("true")
    engine = written(path)
    async with asking(world, engine) as client:
        base = await client.ask(top("moving"))
        put("article_id <> '2uoutqfse7c2o'")
        for stated in (base.data_version, ""):
            with pytest.raises(NotSharpenable, match="version"):
                await client.sharpen(top("moving"), 15, data_version=stated)
        assert await spent(client) == (10, 1, 0)
        assert len(engine.queries) == 2


async def test_a_known_domain_is_sharpened_without_names(world: World) -> None:
    """Its look is the second one alone, with all the units."""
    engine = written()
    async with asking(world, engine) as client:
        await client.ask(top(by="score", k=None))
        result = await client.sharpen(top(by="score", k=None), 30)
        assert len(result.rows) == 3
        assert result.parameters.sharpened is not None
        assert result.parameters.sharpened.units_before == (Fraction(10),)
        assert engine.queries[0] == engine.queries[1]
        assert await spent(client) == (40, 0, 0)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (top("closed"), "the policy allows no sharpening"),
        (top("anew"), "the policy allows no sharpening"),
        (top("shifted", by="score"), "relative to a total"),
        (top("shifted", by="article_id"), "two looks"),
    ],
    ids=["not allowed", "fresh", "shift", "one look"],
)
async def test_what_the_policy_does_not_allow_is_refused(
    world: World, question: question_pb2.Question, message: str
) -> None:
    """By name, free, and without asking the engine."""
    engine = written()
    async with asking(world, engine) as client:
        with pytest.raises(RefusedByPolicy, match=message):
            await client.sharpen(question, 15)
        with pytest.raises(RefusedByPolicy, match=message):
            await client.explain(_sharpened(question, 15))
        assert await spent(client) == (0, 0, 0)
        assert engine.queries == []


def _sharpened(question: question_pb2.Question, *units: int) -> question_pb2.Question:
    asked = question_pb2.Question()
    asked.CopyFrom(question)
    asked.sharpening.units.extend(units)
    return asked


@pytest.mark.parametrize(
    ("units", "message"), [((51,), "at most 50"), ((0,), "at least 1"), ((1,) * 9, "1 to 8"), ((), "units")]
)
async def test_units_out_of_range_are_refused(world: World, units: tuple[int, ...], message: str) -> None:
    """The error names the field."""
    async with asking(world, written()) as client:
        await client.ask(top())
        with pytest.raises(InvalidQuestion, match=message) as refused:
            await client.sharpen(top(), *units)
        assert refused.value.field == "sharpening.units"
        assert await spent(client) == (10, 1, 0)


async def test_what_a_sharpening_costs_is_said_before(world: World) -> None:
    """Also to an account that has not paid for what it sharpens; a budget without so much is not charged."""
    async with asking(world, written()) as client:
        explained = await client.explain(_sharpened(top(), 15, 30))
        in_sql = sql_question(
            "EXPLAIN SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id LIMIT 3"
        )
        priced = (await client.ask(_sharpened(in_sql, 15, 30))).explanation
        assert priced is not None
        assert priced.worst_case_cost == explained.worst_case_cost
        assert (explained.worst_case_cost.information, explained.worst_case_cost.calls) == (30, 0)
        assert any("look more, for 30 units" in line for line in explained.sentences)
        assert any(":names" in query.sql for query in explained.queries)
        await client.ask(top())
        await client.sharpen(top(), 50)
        with pytest.raises(BudgetExhausted):
            await client.sharpen(top(), 50, 50)
        assert await spent(client) == (60, 1, 0)


def test_the_command_line_sharpens(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says the price before, how many looks there are and what intervals mean; a slip names the flag."""
    monkeypatch.setenv("GRIS_RELEASES", str(tmp_path / "releases.sqlite"))
    services = ["--dp", world.dp, "--budget", world.budget, "--account", new_account()]
    words = [
        "--table",
        "feedback",
        "--by",
        "article_id",
        "--k",
        "3",
        *services,
        "--data",
        f"feedback={COFACTS}",
    ]

    def said(command: str, *more: str) -> tuple[int, dict[str, Any]]:
        code = main([command, *words, *more, "--json"])
        return code, json.loads(capsys.readouterr().out)

    code, refused = said("ask", "--sharpen", "15")
    assert (code, "paid for" in refused["error"]["message"]) == (2, True)
    assert said("ask")[0] == 0
    price = said("explain", "--sharpen", "15")[1]["worst_case_cost"]
    assert (price["information"], price["calls"]) == (15, 0)
    result = said("ask", "--sharpen", "15", "--planned")[1]
    sharpened = result["parameters"]["bounded"]["sharpened"]
    assert (sharpened["units_before"], sharpened["planned"]) == (["15/2"], True)
    assert result["charged"]["information"] == 15
    assert main(["ask", *words, "--sharpen", "15"]) == 0
    # However wide the terminal is.
    assert "It is combined with" in " ".join(capsys.readouterr().out.split())
    code, slip = said("ask", "--sharpen", "99")
    assert slip["error"]["message"].startswith("--sharpen")


async def test_a_result_of_several_looks_is_the_same_behind_a_gateway_and_in_its_history(
    world: World,
) -> None:
    """Its counts are fractions, and its elements not the first ones of the release that is kept."""
    releases, account = MemoryReleaseStore(), new_account()
    async with asking(world, written(), account=account, releases=releases) as client:
        await client.ask(top())
        result = await client.sharpen(top(), 13)
    message = result_message(result)
    assert result_of([all_elements(result)], message) == result
    past = app_pb2.PastRelease(question=_sharpened(top(), 13), result=message, elements=all_elements(result))
    past.released_at.GetCurrentTime()
    history = History(releases)
    await history.add(account.split("/"), past)
    (listed,) = (await history.page(account.split("/"), 10, None)).releases
    assert result_of([listed.elements], listed.result) == result
