"""The RPCs of dp_service over a real gRPC connection: what they answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.queries.render.dialects import DIALECTS
from tests.support.dp_questions import (
    ALL_COLUMNS,
    POLICY,
    Clock,
    answer_of,
    header,
    order_of,
    parts,
    question,
    released,
    streamed,
    translated,
)
from tests.support.dp_server import servicer_of, serving
from tests.support.some import some
from tests.support.statements import texts


@pytest.mark.parametrize(
    ("by", "mechanism", "rows", "worst"),
    [
        ("article", dp_pb2.MECHANISM_UNK_GUMB, 1001, (5, 1)),
        ("cohort", dp_pb2.MECHANISM_UNK_LAP, 1001, (1, 1)),
        ("score", dp_pb2.MECHANISM_KNOWN_GUMB, 3, (4, 0)),
        ("app", dp_pb2.MECHANISM_KNOWN_LAP, 2, (1, 0)),
    ],
)
async def test_translation_picks_mechanism_rows_and_price(
    dp: Any, by: str, mechanism: dp_pb2.Mechanism, rows: int, worst: tuple[int, int]
) -> None:
    """Each of the four settings has its mechanism, fetches its rows and reserves its worst case."""
    plan = await translated(dp, question(by))
    response = await dp.EstimateCost(dp_pb2.EstimateCostRequest(question=question(by)))
    estimate = response.estimate
    assert mechanism == plan.parameters.mechanism == estimate.parameters.mechanism
    assert rows == plan.row_limit
    assert worst == (plan.worst_case_cost.information, plan.worst_case_cost.calls)
    assert estimate.worst_case_cost == plan.worst_case_cost
    assert DIALECTS.keys() == {query.dialect for query in plan.engine_queries}


@pytest.mark.parametrize("by", ALL_COLUMNS)
@pytest.mark.parametrize("omit_counts", [False, True])
async def test_what_one_element_more_costs_is_told(dp: Any, by: str, omit_counts: bool) -> None:
    """The worst cases of k and of k + 1 differ by it; by nothing where every k has one price."""
    ask = order_of if omit_counts else question
    one, two = [await translated(dp, ask(by, k=k)) for k in (1, 2)]
    more = two.worst_case_cost.information - one.worst_case_cost.information
    assert [more, more] == [one.information_per_element, two.information_per_element]


async def test_a_connector_that_names_its_engine_gets_only_that_query(dp: Any) -> None:
    """It is the same query as among those for every engine."""
    plan = await translated(dp, question())
    for query in some(plan.engine_queries):
        request = dp_pb2.TranslateQueryRequest(question=question(), data_version="v1", dialect=query.dialect)
        assert [query] == list((await dp.TranslateQuery(request)).engine_queries)


@pytest.mark.parametrize("by", ALL_COLUMNS)
async def test_unary_and_stream_give_the_same_release(dp: Any, by: str) -> None:
    """However the rows travel, in however many chunks, the release is one and the same."""
    unary = await released(dp, question(by), by)
    plan, answer = await translated(dp, question(by)), answer_of(by)
    responses = await streamed(dp, parts(plan, one_row_chunks(answer), len(answer.counts)))
    for response in responses:
        responses[-1].end.elements.MergeFrom(response.shown)
    assert unary.release == responses[-1].end
    assert len(unary.release.elements.noisy_counts) == unary.release.shown.element_count


def one_row_chunks(answer: histogram_pb2.Histogram) -> Iterable[histogram_pb2.Histogram]:
    """Yield an answer of one column row by row."""
    column = answer.columns[0]
    kind = column.WhichOneof("values")
    assert kind is not None
    for value, count in zip(getattr(column, kind).values, answer.counts, strict=True):
        one = histogram_pb2.ElementColumn(name=column.name, **{kind: {"values": [value]}})
        yield histogram_pb2.Histogram(columns=[one], counts=[count])


@pytest.mark.parametrize("by", ALL_COLUMNS)
async def test_asking_again_gives_the_same_answer_and_the_same_ids(dp: Any, by: str) -> None:
    """Repeating a question averages nothing away."""
    first, second = await released(dp, question(by), by), await released(dp, question(by), by)
    assert first == second


@pytest.mark.parametrize("by", ["cohort", "app"])
async def test_any_k_of_a_laplace_release_is_the_same_release(dp: Any, by: str) -> None:
    """A shorter list of a Laplace mechanism is a part of the longer one, with the same ids and price."""
    whole, cut = [(await released(dp, asked, by)).release for asked in (question(by), question(by, k=1))]
    assert whole.bill == cut.bill
    assert whole.elements.noisy_counts[:1] == list(cut.elements.noisy_counts)
    assert cut.shown.interval_kind == dp_pb2.INTERVAL_KIND_GIVEN_SHOWN
    assert cut.shown.element_count == 1


@pytest.mark.parametrize("by", ["article", "score"])
async def test_another_k_of_a_gumbel_release_is_another_release(dp: Any, by: str) -> None:
    """The Gumbel mechanisms pay for k, so k makes another release with other noise."""
    two, one = [(await released(dp, asked, by)).release.bill for asked in (question(by), question(by, k=1))]
    assert two.release_id != one.release_id
    assert two.query_id != one.query_id


async def test_changed_data_meet_other_noise(dp: Any) -> None:
    """One more member in one count changes the release and its id, under the same query id."""
    plan, answer = await translated(dp, question("cohort")), answer_of("cohort")
    changed = histogram_pb2.Histogram(columns=answer.columns, counts=[901, 600, 300, 3])
    first, second = [
        (await dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=rows))).release
        for rows in (answer, changed)
    ]
    assert first.bill.query_id == second.bill.query_id
    assert first.bill.release_id != second.bill.release_id
    assert first.shown.bottom != second.shown.bottom or first.elements != second.elements


async def test_a_plan_gives_one_release_even_with_fresh_noise(dp: Any) -> None:
    """Sending a fresh plan again repeats its release: a retry is no second look."""
    plan = await translated(dp, question(table="drawn_anew"))
    request = dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=answer_of("article"))
    assert await dp.AddNoiseUnary(request) == await dp.AddNoiseUnary(request)


@pytest.mark.parametrize(("by", "scale"), [("article", "6"), ("cohort", "6"), ("score", "6"), ("app", "6")])
async def test_events_get_noise_for_their_tau(dp: Any, by: str, scale: str) -> None:
    """A member with three events hides behind noise of scale 2 tau / e = 6."""
    plan = await translated(dp, question(by, measure=question_pb2.MEASURE_EVENTS))
    shown = (await released(dp, question(by, measure=question_pb2.MEASURE_EVENTS), by)).release.shown
    for stated in (plan.parameters, shown.parameters):
        kind = getattr(stated, str(stated.WhichOneof("kind")))
        assert (3, scale) == (stated.tau, kind.noise_scale)


@pytest.mark.parametrize(
    ("by", "by_kind", "law", "words"),
    [
        ("article", "gumbel", dp_pb2.COUNT_NOISE_GAUSSIAN, "discrete Gaussian noise of standard deviation 2"),
        ("score", "gumbel", dp_pb2.COUNT_NOISE_GAUSSIAN, "discrete Gaussian noise of standard deviation 2"),
        ("cohort", "laplace", dp_pb2.COUNT_NOISE_LAPLACE, "discrete Laplace noise of scale 2"),
    ],
)
async def test_a_policy_with_gaussian_counts_says_so_everywhere(
    by: str, by_kind: str, law: dp_pb2.CountNoise, words: str
) -> None:
    """Plan, estimate and release name the law, and a sentence says it to people."""
    async with serving(servicer_of("count_noise: gaussian" + POLICY)) as dp:
        plan = await translated(dp, question(by))
        estimate = await dp.EstimateCost(dp_pb2.EstimateCostRequest(question=question(by)))
        shown = (await released(dp, question(by), by)).release.shown
    for stated in (plan.parameters, shown.parameters, estimate.estimate.parameters):
        kind = getattr(stated, by_kind)
        assert kind.noise_scale == "2"
        # The kind says the law, unless there are two.
        assert getattr(kind, "count_noise", dp_pb2.COUNT_NOISE_LAPLACE) == law
    assert any(words in line for line in texts(estimate.estimate.statements))


async def test_omitted_counts_are_not_sent_and_halve_the_price(dp: Any) -> None:
    """Without counts there are neither counts nor intervals, and k + 1 units are the worst case."""
    plan = await translated(dp, order_of())
    release = (await released(dp, order_of(), "article")).release
    assert plan.worst_case_cost.information == 3
    assert [] == list(release.elements.noisy_counts) == list(release.elements.noise_lower)
    assert release.shown.interval_kind == dp_pb2.INTERVAL_KIND_NONE


@pytest.mark.parametrize("by", ALL_COLUMNS)
async def test_the_price_is_never_above_the_worst_case(dp: Any, by: str) -> None:
    """Of any mechanism."""
    plan = await translated(dp, question(by))
    shown = (await released(dp, question(by), by)).release.shown
    assert shown.cost.information <= plan.worst_case_cost.information


async def test_an_empty_answer_is_released_as_bottom_alone(dp: Any) -> None:
    """A question that matches nobody is answered privately too, and paid."""
    plan = await translated(dp, question())
    shown = (await dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan)))).release.shown
    assert (shown.element_count, shown.ended_in_bottom, shown.cost.information) == (0, True, 2)


async def test_an_absent_element_of_a_known_domain_is_shown(dp: Any) -> None:
    """Nobody used one app: noise decides what is shown of it, not its absence."""
    release = await released(dp, question("app"), "app")
    assert {"line", "web"} == set(release.release.elements.columns[0].strings.values)


CLOSED = (
    "measures: {distinct_members: true}\n    time: {column: day, type: date, refresh: day, delay_minutes: 0}"
)


async def test_a_closed_period_has_one_version_whatever_the_engine_says(clock: Clock) -> None:
    """Rows that arrive change the engine's version and no release; at midnight on this clock the question changes."""
    policy = POLICY.replace("consistency: fresh\n    measures: {distinct_members: true}", CLOSED)
    asked = question(table="drawn_anew")
    clock.seconds = 86_400.0 * 12
    async with serving(servicer_of(policy, clock=clock)) as dp:
        requests = [
            dp_pb2.TranslateQueryRequest(question=asked, data_version=version) for version in ("v1", "v2")
        ]
        first, second = [await dp.TranslateQuery(request) for request in requests]
        clock.seconds += 86_399
        third = await dp.TranslateQuery(requests[0])
        estimate = await dp.EstimateCost(dp_pb2.EstimateCostRequest(question=asked))
        clock.seconds += 1
        tomorrow = await dp.TranslateQuery(requests[0])
        releases = [
            (
                await dp.AddNoiseUnary(
                    dp_pb2.AddNoiseUnaryRequest(header=header(plan, version), histogram=answer_of("article"))
                )
            ).release.shown
            for plan, version in ((third, "v1"), (tomorrow, "v1"))
        ]
    assert first.query_id == second.query_id == third.query_id != tomorrow.query_id
    assert first.engine_queries == third.engine_queries != tomorrow.engine_queries
    assert "Only closed periods count: rows with day before 1970-01-13." in texts(
        estimate.estimate.statements
    )
    assert releases[0].release_id != releases[1].release_id
    assert releases[0].data_version != releases[1].data_version


@pytest.mark.slow
async def test_a_hundred_thousand_elements_pass_both_ways(dp: Any) -> None:
    """Large histograms travel in chunks far below gRPC's limits."""
    size = 100_000
    domain = ", ".join(f"element-{i:06d}" for i in range(size))
    policy = POLICY + f"      large: {{type: string, group_by: true, domain: [{domain}], delta: 1}}\n"
    async with serving(servicer_of(policy)) as stub:
        plan = await translated(stub, question("large", table="drawn_anew"))
        names = [f"element-{i:06d}" for i in range(size)]
        chunks = [
            histogram_pb2.Histogram(
                columns=[
                    histogram_pb2.ElementColumn(name="large", strings={"values": names[i : i + 20_000]})
                ],
                counts=[size - j for j in range(i, i + 20_000)],
            )
            for i in range(0, size, 20_000)
        ]
        responses = await streamed(stub, parts(plan, chunks, size))
    assert size == responses[-1].end.shown.element_count
    assert len(responses) > 2
    assert max(response.ByteSize() for response in responses) <= 2**20
    assert size == sum(len(response.shown.noisy_counts) for response in responses[:-1])


@pytest.mark.parametrize(
    ("sql", "alias"),
    [
        ("SELECT article, COUNT(*) AS opinions FROM engagement GROUP BY article LIMIT 2", "opinions"),
        ('SELECT article, COUNT(*) "n" FROM engagement GROUP BY article LIMIT 2', "n"),
        ("SELECT article, COUNT(*) FROM engagement GROUP BY article LIMIT 2", ""),
        ("SELECT article FROM engagement GROUP BY article ORDER BY COUNT(*) DESC LIMIT 2", ""),
    ],
)
async def test_translation_tells_what_sql_calls_the_counts(dp: Any, sql: str, alias: str) -> None:
    """The alias comes back as written, and the question is the same one without it."""
    plan = await translated(dp, question_pb2.Question(sql=sql))
    plain = await translated(
        dp, question_pb2.Question(sql=sql.replace(" AS opinions", "").replace(' "n"', ""))
    )
    assert (alias, plain.query_id) == (plan.count_alias, plan.query_id)


async def test_translation_tells_what_sql_calls_the_columns(dp: Any) -> None:
    """The alias comes back as written beside the column's own name, and the question is the same one without it."""
    sql = 'SELECT article AS "Der Artikel", COUNT(*) FROM engagement GROUP BY article LIMIT 2'
    plan = await translated(dp, question_pb2.Question(sql=sql))
    plain = await translated(dp, question_pb2.Question(sql=sql.replace(' AS "Der Artikel"', "")))
    assert [("article", "Der Artikel")] == [(column.name, column.alias) for column in plan.columns]
    assert (plan.query_id, plan.worst_case_cost) == (plain.query_id, plain.worst_case_cost)
    assert [("article", "")] == [(column.name, column.alias) for column in plain.columns]
