"""Questions of two looks through the real services: what is counted, what is free, and what an end in between costs.

In the first table the noise is as small as it gets, so an answer can be compared with the pure reference
(`tests.support.slight_noise`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import grpc
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.terms import GRID
from gris_gateway.rpc_errors import status_of_error
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    ChargedUnanswered,
    DataChanged,
    EngineGone,
    EngineUnavailable,
    PlanExpired,
    ServiceGone,
)
from pinot_connector.parameters import NamesLook
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.results import PrivateResult
from tests.support.bounding import weighted
from tests.support.clients import client_of
from tests.support.embedded import UNHURRIED
from tests.support.relay import relayed
from tests.support.slight_noise import MOST as MOST_NOISE
from tests.support.slight_noise import require_near
from tests.support.two_looks import DELTA_1, DELTA_2, MOST, UNITS, Between, asking, held_and_spent
from tests.support.world import COFACTS, World, new_account

Pairs = list[tuple[str, str]]
Element = tuple[object, ...]


def pairs() -> Pairs:
    """Return members and their articles."""
    query = (
        f"SELECT DISTINCT member_id, article_id FROM read_parquet('{COFACTS}') WHERE member_id IS NOT NULL"  # noqa: S608
    )
    return duckdb.execute(query).fetchall()


def counted(given: Pairs, delta: int) -> dict[str, float]:
    """Return the counts of articles, of members who are weighted so that they add no more than so many articles do."""
    held: dict[str, list[str]] = defaultdict(list)
    for member, article in given:
        held[member].append(article)
    counts: Counter[str] = Counter()
    for articles in held.values():
        added = weighted([1] * len(articles), delta * GRID**2)
        counts.update(dict(zip(articles, added, strict=True)))
    return {article: count / GRID for article, count in counts.items()}


def shown(result: PrivateResult) -> list[tuple[str, float | None]]:
    """Return elements and counts."""
    return [(str(row.element[0]), row.noisy_count) for row in result.rows]


async def test_a_release_is_that_of_the_reference_in_two_looks(looking_world: World) -> None:
    """Names by a small bound, then each member bounded again within the names; one charge, one id, free repeats."""
    engine = Between()
    async with asking(looking_world, engine) as client:
        whole = await client.histogram("feedback", "article_id")
        expected, first = shown(whole), counted(pairs(), DELTA_1)
        names = dict(expected).keys()
        last = sorted(first.values())[-MOST]
        assert len(names) == MOST
        assert all(first[name] >= last - 2 * MOST_NOISE for name in names)
        within = [(member, article) for member, article in pairs() if article in names]
        true = counted(within, DELTA_2)
        require_near(dict(expected), true)
        shown_counts = [each[1] or 0 for each in expected]
        assert shown_counts == sorted(shown_counts, reverse=True)
        # A query that weighted nobody, or not within the names, would count otherwise.
        for other in (counted(within, MOST), counted(pairs(), DELTA_2)):
            assert any(abs(other[name] - true[name]) > 2 * MOST_NOISE for name in names)
        assert len(engine.queries) == 2
        part = await client.top_k("feedback", "article_id", 10)
        more = await client.top_k("feedback", "article_id", 100)
        assert shown(part) == expected[:10]
        assert (more.requested_k, shown(more)) == (100, expected)
        assert {each.release_id for each in (part, more)} == {whole.release_id}
        assert [each.charged.information for each in (whole, part, more)] == [UNITS, 0, 0]
        assert await held_and_spent(client) == (UNITS, 1, 0, 0)
        assert len(engine.queries) == 2
        assert whole.parameters.bounded is not None
        looks = whole.parameters.bounded.looks
        assert isinstance(looks, NamesLook)
        assert (looks.typical, looks.max_names) == (DELTA_1, MOST)


async def test_a_known_domain_takes_one_look(looking_world: World) -> None:
    """All units go into it, and no call."""
    engine = Between()
    async with asking(looking_world, engine) as client:
        result = await client.histogram("feedback", "score")
        assert len(result.rows) == 3
        assert (len(engine.queries), await held_and_spent(client)) == (1, (UNITS, 0, 0, 0))


async def test_a_key_of_several_columns_is_named_whole(looking_world: World) -> None:
    """Elements, and not the values of each column, are what the second look counts."""
    engine = Between()
    async with asking(looking_world, engine) as client:
        result = await client.histogram("feedback", ["article_id", "app"])
        # Two texts in an element: there is room for as many names as the policy says, and each is shown.
        assert len({row.element for row in result.rows}) == MOST
        first, second = (duckdb.execute(_on_file(sql)).fetchall() for sql in engine.queries)
        counts: dict[Element, float] = {(article, app): count / GRID for article, app, count in first}
        least = first[MOST - 1][2] / GRID - 2 * MOST_NOISE
        assert all(counts[row.element] >= least for row in result.rows)
        require_near(
            {row.element: row.noisy_count for row in result.rows},
            {(article, app): count / GRID for article, app, count in second},
        )


def _on_file(sql: str) -> str:
    return sql.replace('"feedback"', f"read_parquet('{COFACTS}')")


async def test_a_first_answer_that_is_streamed_leads_to_a_second_look(
    looking_world: World, tmp_path: Path
) -> None:
    """More than fits into a message; members are bounded by a promise, so only the names make the second query."""
    path = tmp_path / "many.parquet"
    # Two members have each element, and thirty more have each of nine: no noise reaches so far.
    each = (
        "SELECT {} AS member_id, 'an element with a long name ' || (i % {}) AS element FROM range({}) AS t(i)"
    )
    rows = f"{each.format('i', 90000, 180000)} UNION ALL {each.format('180000 + i', 9, 270)}"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    engine = DuckDBEngine({"many": path})
    async with asking(looking_world, engine) as client:
        result = await client.top_k("many", "element", 9)
        require_near(
            {row.element[0]: row.noisy_count for row in result.rows},
            {f"an element with a long name {i}": 32 for i in range(9)},
        )


async def test_no_name_is_an_empty_answer_that_costs_as_any(looking_world: World) -> None:
    """There is no second query; asked again, it is free."""
    engine = Between()
    async with asking(looking_world, engine) as client:
        for charged in (UNITS, 0):
            result = await client.top_k("feedback", "article_id", 5, where={"article_id": "no such"})
            assert (result.rows, result.charged.information) == ((), charged)
        assert (len(engine.queries), await held_and_spent(client)) == (1, (UNITS, 1, 0, 0))


async def test_two_connectors_draw_the_same_release(looking_world: World) -> None:
    """Without a store that both share: same names, same counts, and the ledger knows that it is paid."""
    account = new_account()
    async with asking(looking_world, Between(), account=account) as client:
        first = await client.top_k("fractions", "article_id", 10)
    async with asking(looking_world, Between(), account=account) as client:
        again = await client.top_k("fractions", "article_id", 10)
    assert (first.rows, first.release_id) == (again.rows, again.release_id)
    assert (first.charged.information, again.charged.information) == (10, 0)


async def test_fresh_answers_have_noise_of_their_own_and_are_charged_each(looking_world: World) -> None:
    """In both looks."""
    async with asking(looking_world, Between()) as client:
        one, other = [await client.top_k("anew", "article_id", 5) for _ in range(2)]
        assert one.release_id != other.release_id
        assert await held_and_spent(client) == (20, 2, 0, 0)


async def test_one_reservation_and_one_charge_carry_both_looks(looking_world: World) -> None:
    """The worst case is reserved before the first look, and nothing is sent to the ledger between the two."""
    async with (
        relayed(looking_world) as relay,
        client_of(relay.address, Between(), timeouts=UNHURRIED, releases=MemoryReleaseStore()) as client,
    ):
        await client.top_k("fractions", "article_id", 5)
        order = [each for each in relay.methods if each not in ("TranslateQuery", "GetBudget")]
        assert order == ["ReserveBudget", "AddNoiseUnary", "AddNoiseUnary", "UpdateBudget"]
        (reserved,) = map(budget_pb2.ReserveBudgetRequest.FromString, relay.requests("ReserveBudget"))
        assert (reserved.max_cost.information, reserved.max_cost.calls) == (10, 1)
        # Two queries take twice as long.
        assert reserved.ttl.seconds == 2 * UNHURRIED.reservation
        looks = [
            dp_pb2.AddNoiseUnaryRequest.FromString(each).header for each in relay.requests("AddNoiseUnary")
        ]
        assert looks[0].data_version == looks[1].data_version


def test_a_gateway_says_what_was_charged_and_not_what_failed() -> None:
    """A code that no client tries again by itself: each try would be charged."""
    status = status_of_error(ChargedUnanswered("the engine took too long", 10, 1))
    assert status.code is grpc.StatusCode.ABORTED
    assert "10 information and 1 call" in status.details
    assert "engine" not in status.details


def test_only_ends_that_names_do_not_decide_are_free() -> None:
    """What is refused, late, broken or no longer honoured is none of them."""
    assert not issubclass(PlanExpired, ServiceGone)
    assert not issubclass(DataChanged, EngineGone)
    assert not issubclass(EngineUnavailable, EngineGone)
