"""Questions from beginning to end, on real services, real data and all four mechanisms."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction

import pytest

from pinot_connector import AsyncPrivateClient, Cost, Mechanism
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import InvalidQuestion, ServiceRefused
from pinot_connector.parameters import IntervalKind
from tests.support.clients import blocking_client_of, client_of
from tests.support.relay import relayed
from tests.support.some import some
from tests.support.world import WIDE_ELEMENTS, World

ARTICLES = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
)


async def test_an_unknown_unrestricted_domain_is_ranked_by_unk_gumb(client: AsyncPrivateClient) -> None:
    """Top articles: k rows, intervals around the noisy counts, and the price that its mechanism states."""
    result = await client.top_k("feedback", "article_id", 5)
    assert (result.mechanism, len(result.rows), result.ended_in_bottom) == (Mechanism.UNK_GUMB, 5, False)
    assert (result.cost.information, result.cost.calls) == (11, 1)
    assert result.charged == result.cost
    for row in result.rows:
        assert row.interval is not None
        assert row.noisy_count is not None
        assert row.interval[0] <= row.noisy_count <= row.interval[-1]


async def test_an_unknown_restricted_domain_is_counted_by_unk_lap(client: AsyncPrivateClient) -> None:
    """Cohorts: a released threshold, and intervals that are true given that the element is shown."""
    result = await client.histogram("feedback", "cohort")
    assert (result.mechanism, result.interval_kind) == (Mechanism.UNK_LAP, IntervalKind.GIVEN_SHOWN)
    assert result.bottom is not None
    assert all(row.noisy_count is not None and row.noisy_count > result.bottom for row in some(result.rows))
    assert (result.cost.information, result.cost.calls) == (1, 1)


async def test_a_known_unrestricted_domain_is_ranked_by_known_gumb(client: AsyncPrivateClient) -> None:
    """Scores: integers come back as integers."""
    result = await client.top_k("feedback", "score", 2)
    assert (result.mechanism, [row.element for row in result.rows]) == (Mechanism.KNOWN_GUMB, [(1,), (-1,)])
    assert (result.cost.information, result.cost.calls) == (4, 0)


async def test_a_known_restricted_domain_is_counted_by_known_lap(client: AsyncPrivateClient) -> None:
    """Programs: every element of the domain is there."""
    result = await client.histogram("feedback", "app")
    assert (result.mechanism, len(result.rows)) == (Mechanism.KNOWN_LAP, 4)
    assert (result.cost.information, result.cost.calls) == (4, 0)


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("app IN ('WEBSITE', 'RUMORS_LINE_BOT')", {"WEBSITE", "RUMORS_LINE_BOT"}),
        (
            "app LIKE 'DEV%' AND app <> 'DEVELOPMENT_BACKEND' OR app = 'WEBSITE'",
            {"DEVELOPMENT_FRONTEND", "WEBSITE"},
        ),
    ],
)
async def test_what_a_condition_leaves_out_of_a_listed_domain_is_not_released(
    client: AsyncPrivateClient, condition: str, shown: set[str]
) -> None:
    """Neither shown nor paid for; and a spelling more of it is the same release, for nothing."""
    asked = "SELECT app, COUNT(DISTINCT member_id) FROM feedback WHERE {} GROUP BY app"
    result = await client.sql(asked.format(condition))
    assert {row.element[0] for row in result.rows} == shown
    assert (result.cost.information, result.charged.information) == (2, 2)
    again = await client.sql(asked.format(" OR ".join(f"app = '{each}'" for each in sorted(shown))))
    assert (again.rows, again.charged.information) == (result.rows, 0)


async def test_a_total_is_one_row_of_no_columns(client: AsyncPrivateClient) -> None:
    """Structured and in SQL it is one release for one unit, and free the second time."""
    result = await client.total("feedback", where={"score": 1})
    (row,) = result.rows
    assert (result.mechanism, result.columns, row.element) == (Mechanism.KNOWN_LAP, (), ())
    assert row.noisy_count is not None
    assert row.interval is not None
    assert row.interval[0] <= row.noisy_count <= row.interval[-1]
    assert (result.cost.information, result.cost.calls) == (1, 0)
    sql = "SELECT COUNT(DISTINCT member_id) AS n FROM feedback WHERE score = 1 ORDER BY n DESC LIMIT 9"
    again = await client.sql(sql)
    assert (result.rows, result.release_id) == (again.rows, again.release_id)
    assert (again.charged.information, again.charged.calls, again.count_alias) == (0, 0, "n")


async def test_a_total_of_nothing_is_shown_and_paid_like_any_other(client: AsyncPrivateClient) -> None:
    """Nobody's rows decide whether there is an answer; an interval ends at 0 at the lowest."""
    result = await client.total("feedback", where={"article_id": "no such article"})
    (row,) = result.rows
    assert row.noisy_count is not None
    assert row.interval is not None
    # As far below the count as the other end is above it, which is mostly below 0.
    assert row.interval[0] == max(0, 2 * row.noisy_count - row.interval[-1])
    assert result.charged == result.cost == Cost(1, 0, result.cost.unit_id)


async def test_the_same_question_gets_the_identical_answer_for_nothing(client: AsyncPrivateClient) -> None:
    """Asked again, as SQL this time, the release is the same and is charged 0."""
    first = await client.top_k("feedback", "article_id", 5)
    again = await client.sql(ARTICLES)
    assert (first.rows, first.release_id) == (again.rows, again.release_id)
    assert (again.charged.information, again.charged.calls) == (0, 0)
    # It is given from what is kept, so the ledger is not asked.
    assert ((), first.remaining) == (again.remaining, await client.remaining())


@pytest.mark.parametrize("column", ["cohort", "app"])
async def test_another_k_is_free_where_k_draws_nothing(client: AsyncPrivateClient, column: str) -> None:
    """For UnkLap and KnownLap, a smaller k only shows less of what was paid for."""
    whole = await client.histogram("feedback", column)
    part = await client.top_k("feedback", column, 2)
    assert whole.rows[:2] == part.rows
    assert (part.charged.information, part.charged.calls) == (0, 0)


async def test_an_order_without_counts_is_cheaper(client: AsyncPrivateClient) -> None:
    """Without counts there are neither counts nor intervals, and k + 1 is the price."""
    result = await client.sql(
        "SELECT article_id FROM feedback GROUP BY 1 ORDER BY COUNT(DISTINCT member_id) DESC LIMIT 5"
    )
    assert {(None, None)} == {(row.noisy_count, row.interval) for row in result.rows}
    assert result.cost.information == 6


async def test_days_come_back_as_days(client: AsyncPrivateClient) -> None:
    """An element of a date column is a date, and the whole result is JSON."""
    result = await client.top_k(
        "feedback", "day", 3, time_range=(datetime.date(2019, 3, 1), datetime.date(2019, 4, 1))
    )
    assert all(isinstance(row.element[0], datetime.date) for row in result.rows)
    reported = json.loads(json.dumps(result.to_dict()))
    assert str(result.rows[0].element[0]) == reported["rows"][0]["element"][0]


async def test_explaining_costs_nothing_and_tells_the_worst_case(client: AsyncPrivateClient) -> None:
    """The estimate is the price that a full ranking has."""
    explanation = await client.explain(ARTICLES)
    assert (explanation.worst_case_cost.information, explanation.worst_case_cost.calls) == (11, 1)
    assert explanation.sentences
    assert [
        ("information", 11, 3000, Fraction(11, 3000)),
        ("calls", 1, 300, Fraction(1, 300)),
    ] == [(share.unit, share.cost, share.limit, share.of_limit) for share in explanation.shares[-2:]]
    levels = await client.remaining()
    assert (levels[-1].spent.information, levels[-1].reserved.information) == (0, 0)


async def test_a_budget_says_what_it_is_worth(client: AsyncPrivateClient) -> None:
    """The limit of an account buys a guarantee in its own currency; in another one it is none."""
    (*_, level) = await client.remaining()
    found = (await client.guarantee(level.limit)).own.guarantee
    assert found is not None
    assert found == (await client.guarantee()).own.guarantee
    assert found.epsilon > 0
    assert found.delta == pytest.approx(2 * 300 * 1e-10 + 1e-9)
    with pytest.raises(ServiceRefused) as refused:
        await client.guarantee(Cost(1, 1, "0" * 32))
    assert refused.value.reason == "UNIT_MISMATCH"
    with pytest.raises(InvalidQuestion):
        await client.guarantee(Cost(-1, 1, ""))


async def test_a_hundred_thousand_elements_are_streamed(world: World, engine: DuckDBEngine) -> None:
    """A histogram beyond 3 MiB goes through the stream and comes back whole."""
    async with relayed(world) as relay:
        async with client_of(relay.address, engine) as client:
            result = await client.histogram("wide", "element")
        assert "AddNoise" in relay.methods
        assert "AddNoiseUnary" not in relay.methods
    assert len(result.rows) == len({row.element for row in result.rows}) == WIDE_ELEMENTS
    assert result.mechanism is Mechanism.UNK_LAP


async def test_the_blocking_client_works_inside_a_running_loop(world: World, engine: DuckDBEngine) -> None:
    """As in a notebook: a loop runs in this thread already."""
    with blocking_client_of(world, engine) as client:
        result = client.top_k("feedback", "score", 1)
        assert result.rows[0].element == (1,)
        assert result.remaining == client.remaining()
        assert client.explain(ARTICLES).worst_case_cost.calls == 1
    client.close()
