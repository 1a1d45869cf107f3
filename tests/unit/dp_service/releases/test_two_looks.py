"""Releases of two looks: what each draws, what the plan between them holds, and what is sent."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2
from hypothesis import assume, given, settings

from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import ContributionBound, TwoLooks
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.intervals import gaussian_noise_interval
from dp_service.mechanisms.parameters import Cost
from dp_service.mechanisms.selection import selection_thresholds
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import MAXIMUM_TEXT_LENGTH
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.looks import Named, is_first_look, names_of, second_plan, second_question
from dp_service.releases.plan import Plan, sign_plan, verify_plan
from dp_service.releases.release_ids import look_specification, release_id, release_seed
from dp_service.releases.releasing import Released, release
from dp_service.releases.ticket import charge_ticket
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import GRID, ColumnType, Element
from tests.support.dp_questions import KEY as SERVICE_KEY
from tests.support.dp_questions import Clock, header, parts, question, streamed, translated
from tests.support.dp_server import servicer_of, serving
from tests.support.examples import examples
from tests.support.queries.as_in_plans import carried
from tests.support.queries.strategies import NOW, policies, questions
from tests.unit.dp_service.identities import KEY

CURRENCY = Currency(Fraction(1, 4), Fraction(1, 100))
BLOCK = "bound: in_query, units: 5, min_count: 2, longest_list: 4"
LOOKS = TwoLooks(
    CURRENCY,
    5,
    Fraction(15, 8),
    ContributionBound(2, grid=GRID),
    ContributionBound(3, grid=GRID),
    min_count=2,
    most_names=4,
)
TEXT = """
epsilon_per: 0.25
delta: 0.01
count_noise: gaussian
tables:
  engagement:
    member: member_id
    contributions: {%s}
    measures: {distinct_members: true}
    columns:
      article: {type: string, group_by: true, typical: 3, filter: [in]}
      day: {type: date, group_by: true, typical: 3}
      score: {type: int64, group_by: true, typical: 3, domain: [-1, 0, 1]}
"""
POLICY = TEXT % BLOCK
NAMES = list("abcdefgh")
FIRST_COUNTS = [GRID * each for each in (400, 390, 380, 370, 360, 350, 1, 1)]


def plan_of(by: str = "article", k: int | None = None, policy: str = POLICY, version: str = "v1") -> Plan:
    """Return the plan of the first look at a question."""
    query = HistogramQuery("engagement", (by,), Measure.DISTINCT_MEMBERS, k=k)
    resolution = resolve(query, parse_policy(policy), now=0)
    return plan_for(resolution, version, KEY, IssueContext(1000, bytes(32)), dialects=("duckdb",))


def first_answer(names: Iterable[str] = NAMES, counts: Iterable[int] = FIRST_COUNTS) -> TypedHistogram:
    """Return what an engine answered to the first query."""
    return checked_histogram((ColumnType.STRING,), [list(names)], list(counts), row_limit=10**6)


def counts_of(names: Iterable[Element]) -> dict[str, int]:
    """Return the counts within the names; the last of them is held by nobody."""
    texts = [str(name) for (name,) in names]
    return {name: GRID * (500 - 60 * i) for i, name in enumerate(texts[:-1])}


def second_answer(plan: Plan) -> TypedHistogram:
    """Return what an engine answers to the second query, whose plan this is."""
    assert plan.looks is not None
    counts = counts_of(plan.looks.names or ())
    return checked_histogram(
        (ColumnType.STRING,), [list(counts)], list(counts.values()), row_limit=plan.row_limit
    )


def both_looks(plan: Plan) -> tuple[Named, Plan, Released]:
    """Return the names, the plan that holds them, and the release."""
    found = names_of(plan, first_answer(), KEY)
    second = second_plan(plan, found, now=1001)
    return found, second, release(second, second_answer(second), KEY, confidence=0.9, whole=True)


def test_a_release_is_what_the_mechanism_draws_in_two_looks() -> None:
    """Names by noisy rank with noise of the first seed, counts with noise of the second; intervals given both."""
    plan = plan_of(k=2)
    assert kind_of(plan.parameters).mechanism == LOOKS
    found, second, released = both_looks(plan)
    seen = first_answer().with_count(2 * GRID)
    first_seed = release_seed(KEY, look_specification(plan.specification, 1), "v1", seen.digest())
    named = LOOKS.draw_names(
        Histogram.from_element_order(FIRST_COUNTS[:6]), KeyedNoise(KeyedStream(first_seed))
    )
    assert sorted(NAMES[i] for i in named) == [name for (name,) in found.names]
    assert len(found.names) == 4
    assert release_id(first_seed) == found.release_id
    counts = counts_of(found.names)
    # A name that nobody holds counts 0.
    whole = TypedHistogram(seen.types, list(found.names), np.array([*counts.values(), 0]))
    specification = look_specification(plan.specification, 2, found.names, found.release_id)
    seed = release_seed(KEY, specification, "v1", whole.digest())
    drawn = LOOKS.draw_counts(
        Histogram.from_element_order([*counts.values(), 0]), KeyedNoise(KeyedStream(seed))
    )
    assert [found.names[i] for i in drawn.indices] == released.elements
    assert drawn.noisy_counts is not None
    assert released.noisy_counts is not None
    assert drawn.noisy_counts.tolist() == released.noisy_counts.tolist()
    assert release_id(seed) == released.release_id
    assert (released.cost.information, released.cost.calls) == (5, 1)
    assert (released.bottom, released.ended_in_bottom) == (None, False)
    thresholds = selection_thresholds(drawn, 2)
    assert thresholds is not None
    expected = selected_gaussian_interval(
        drawn.noisy_counts[:2], thresholds, LOOKS.counts_look.variance, alpha=Fraction(1, 10), minimum=0
    )
    assert released.intervals is not None
    assert np.array_equal(expected.lower // GRID, released.intervals.lower)
    assert np.array_equal(-(-expected.upper // GRID), released.intervals.upper)
    assert IntervalKind.GIVEN_SHOWN is released.interval_kind
    assert second.query_id == plan.query_id


def test_the_largest_are_named_by_their_noisy_counts() -> None:
    """The noise of this policy moves counts by more than they lie apart: on other versions of the data others win."""
    chosen = {names_of(plan_of(version=f"v{i}"), first_answer(), KEY).names for i in range(200)}
    # By true counts it would be the first four, always.
    assert len(chosen) > 2


def test_all_names_are_shown_with_plain_intervals() -> None:
    """Given the names nothing else selects."""
    _, _, released = both_looks(plan_of())
    assert released.noisy_counts is not None
    assert released.intervals is not None
    plain = gaussian_noise_interval(
        released.noisy_counts, LOOKS.counts_look.variance, alpha=Fraction(1, 10), minimum=0
    )
    assert np.array_equal(plain.lower // GRID, released.intervals.lower)
    assert IntervalKind.PLAIN is released.interval_kind


def test_each_look_has_a_seed_of_its_own() -> None:
    """It holds the number, all names and what the look before released; so does the id of the release."""
    base = look_specification(b"s", 2, (("a",), ("b",)), "before")
    others = [
        look_specification(b"s", 1),
        look_specification(b"s", 2, (("a",),), "before"),
        look_specification(b"s", 2, (("a",), ("b",)), "other"),
        look_specification(b"t", 2, (("a",), ("b",)), "before"),
        look_specification(b"s", 3, (("a",), ("b",)), "before"),
    ]
    assert len({base, *others}) == 6
    plan = plan_of()
    found = names_of(plan, first_answer(), KEY)
    one = second_plan(plan, found, now=1)
    other = second_plan(plan, dataclasses.replace(found, release_id="0" * 64), now=1)
    ids = {release(each, second_answer(one), KEY, confidence=0.9).release_id for each in (one, other)}
    assert len({*ids, found.release_id}) == 3


def test_both_looks_take_what_makes_a_questions_noise_its_own() -> None:
    """Where answers do not repeat, neither do the names."""
    plan = plan_of()
    plans = [dataclasses.replace(plan, fresh=bytes([i]) * 32) for i in range(2)]
    names = [names_of(each, first_answer(), KEY) for each in plans]
    assert names[0].release_id != names[1].release_id
    ids = {
        release(second, second_answer(second), KEY, confidence=0.9).release_id
        for second in (second_plan(each, names[0], now=1) for each in plans)
    }
    assert len(ids) == 2


def test_every_k_is_the_same_release() -> None:
    """How many names there are at most is the policy's; a k above it shows as many."""
    assert len({plan_of(k=k).query_id for k in (1, 3, 4, 1000, None)}) == 1
    assert plan_of(k=1000).parameters.k == 4
    other = POLICY.replace("longest_list: 4", "longest_list: 5")
    assert plan_of(policy=other).query_id != plan_of().query_id


@pytest.mark.parametrize(
    ("key", "value"),
    [("longest_list: 4", "longest_list: 5"), ("typical: 3", "typical: 5"), ("units: 5", "units: 6")],
)
def test_another_first_look_is_another_release(key: str, value: str) -> None:
    """All that the policy says of it is in the specification."""
    assert plan_of(policy=POLICY.replace(key, value)).query_id != plan_of().query_id


def test_a_known_domain_is_only_counted() -> None:
    """One look with all the units, and no call."""
    plan = plan_of("score")
    assert plan.looks is None
    assert plan.parameters.contributions is not None
    assert plan.parameters.contributions.names is None
    cost = kind_of(plan.parameters).mechanism.worst_case_cost()
    assert (cost.information, cost.calls) == (5, 0)


def test_the_second_plan_carries_all_that_the_second_look_needs() -> None:
    """From one replica to another, whatever policy that one holds."""
    plan = plan_of(k=3)
    assert is_first_look(plan)
    assert verify_plan(sign_plan(plan, KEY), KEY, now=1001) == plan
    second = second_plan(plan, Named((("a",), ("it's",)), "1" * 64), now=1500)
    assert not is_first_look(second)
    assert verify_plan(sign_plan(second, KEY), KEY, now=2099) == second
    assert second_question(second).names == (("a",), ("it's",))
    assert second_question(second).query == second_question(plan).query


def test_the_second_look_at_a_prepared_copy_counts_its_weights_too() -> None:
    """Weights of the query would need an engine that the first look did not need."""
    block = (
        "bound: prepared, delta: 3, units: 5, longest_list: 4, elements: [article, day, score], period: all"
    )
    policy = re.sub("typical: [0-9]+, |, typical: [0-9]+", "", TEXT % block)
    plan = verify_plan(sign_plan(plan_of(policy=policy), KEY), KEY, now=1001)
    second = second_plan(plan, Named((("a",),), "1" * 64), now=1500)
    assert 'MAX("weight")' in render(second_question(second), "duckdb")


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(policy=policies(), query=questions())
def test_every_question_comes_back_from_a_plan(policy: Policy, query: HistogramQuery) -> None:
    """Restrictions, NULL's values and units of all types."""
    try:
        asked = resolve(query, policy, now=NOW).query
    except (QuestionError, RefusedByPolicyError):
        assume(False)
    assert carried(asked) == asked


def test_an_element_that_no_query_can_name_is_left_out_before_noise_is_drawn() -> None:
    """A NUL, and a day that no calendar has: not the names decide whether there is an answer, but never these."""
    plan = plan_of()
    spoilt = first_answer(["a\0", *NAMES], [900_000, *FIRST_COUNTS])
    assert names_of(plan, spoilt, KEY) == names_of(plan, first_answer(), KEY)
    days = checked_histogram(
        (ColumnType.DATE,), [[10**7, 5, -(10**7)]], [900_000, 800_000, 700_000], row_limit=9
    )
    assert [(5,)] == [*names_of(plan_of("day"), days, KEY).names]


def test_no_name_at_all_is_an_empty_answer_with_the_same_price() -> None:
    """As any other."""
    plan = plan_of(k=2)
    found = names_of(plan, first_answer([], []), KEY)
    assert found.names == ()
    second = second_plan(plan, found, now=1001)
    released = release(second, first_answer([], []), KEY, confidence=0.9, whole=True)
    assert (released.elements, released.cost.information, released.cost.calls) == ([], 5, 1)


def test_rows_of_other_elements_than_the_names_change_nothing() -> None:
    """An engine whose texts are equal to others by rules of its own answers more than was asked."""
    plan = plan_of()
    second = second_plan(plan, Named((("a",), ("b",), ("c",)), "1" * 64), now=1001)
    right = first_answer(["a", "b"], [50, 40])
    more = first_answer(["a", "A", "b"], [50, 45, 40])
    wide = dataclasses.replace(second, row_limit=9)
    one, other = (release(wide, each, KEY, confidence=0.9) for each in (right, more))
    assert (one.elements, one.release_id) == (other.elements, other.release_id)


async def test_the_services_messages_are_those_of_two_looks() -> None:
    """A signed plan and a query with the names in between, the release afterwards; both ways of sending agree."""
    clock = Clock()
    async with serving(servicer_of(POLICY, clock=clock)) as dp:
        plan = await translated(dp, question("article"))
        assert [query.look for query in plan.engine_queries] == [1, 1, 1]
        assert all(query.look == 1 for query in plan.engine_queries)
        assert (plan.unfinished.cost.information, plan.unfinished.cost.calls) == (5, 1)
        look, streamed_look = await _both_ways(dp, plan, _histogram(NAMES, FIRST_COUNTS))
        assert look.row_limit == 4
        assert {query.dialect for query in look.engine_queries} == {"duckdb", "pinot", "spark"}
        assert [query.look for query in look.engine_queries] == [2, 2, 2]
        assert look.engine_queries == streamed_look.engine_queries
        request = dp_pb2.AddNoiseUnaryRequest(
            header=dp_pb2.ReleaseHeader(plan=look.plan, data_version="v1"), histogram=_histogram([], [])
        )
        response = await dp.AddNoiseUnary(request)
        assert response.WhichOneof("result") == "release"
        shown = response.release.shown
        assert shown.query_id == plan.query_id
        assert shown.cost == plan.worst_case_cost
        assert shown.parameters == plan.parameters
        names = shown.parameters.bounded.names_look
        assert (names.typical, names.units, names.max_names) == (2, "15/8", 4)
        assert LOOKS.names_look.threshold is not None
        assert Fraction(names.threshold) == Fraction(LOOKS.names_look.threshold, GRID)
        estimate = await dp.EstimateCost(dp_pb2.EstimateCostRequest(question=question("article")))
        assert [query.look for query in estimate.engine_queries] == [1, 1, 1, 2, 2, 2]
        assert any(":names" in query.sql for query in estimate.engine_queries)


async def _both_ways(
    dp: Any, plan: dp_pb2.TranslateQueryResponse, rows: histogram_pb2.Histogram
) -> tuple[dp_pb2.NextLook, dp_pb2.NextLook]:
    unary = await dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=rows))
    (only,) = await streamed(dp, parts(plan, [rows], len(rows.counts)))
    assert unary.WhichOneof("result") == only.WhichOneof("part") == "next"
    return unary.next, only.next


def _histogram(names: list[str], counts: list[int]) -> histogram_pb2.Histogram:
    column = histogram_pb2.ElementColumn(name="article", strings=histogram_pb2.StringValues(values=names))
    return histogram_pb2.Histogram(columns=[column], counts=counts)


@pytest.mark.parametrize("column", ["article", "score"])
async def test_the_ticket_of_an_unanswered_question_has_its_worst_case_and_no_release(column: str) -> None:
    """The ledger charges it and records no answer of the question; it takes one look or two."""
    async with serving(servicer_of(POLICY, clock=Clock())) as dp:
        plan = await translated(dp, question(column))
        worst = plan.worst_case_cost
        assert plan.unfinished.cost == worst
        assert plan.unfinished.charge_ticket == charge_ticket(
            SERVICE_KEY,
            release_id="",
            query_id=plan.query_id,
            cost=Cost(worst.information, worst.calls),
            unit_id=worst.unit_id,
        )


@pytest.mark.slow
@pytest.mark.parametrize("character", ["'", "$", "\\", "\N{GRINNING FACE}", "\x01"])
async def test_the_second_look_at_the_longest_names_fits_into_a_message(character: str) -> None:
    """Whatever they are and for all engines; the plan goes back with the rows."""
    policy = TEXT % BLOCK.replace("longest_list: 4", "longest_list: 500")
    names = [f"{i:04}" + character * (MAXIMUM_TEXT_LENGTH - 4) for i in range(600)]
    async with serving(servicer_of(policy, clock=Clock())) as dp:
        plan = await translated(dp, question("article"))
        (only,) = await streamed(
            dp, parts(plan, [_histogram(names[i : i + 50], [10**6] * 50) for i in range(0, 600, 50)], 600)
        )
        look = only.next
        assert look.row_limit == 500
        assert look.ByteSize() < 2**24
        second = dp_pb2.ReleaseHeader(plan=look.plan, data_version="v1", keep=True)
        head = dp_pb2.AddNoiseRequest(header=second)
        end = dp_pb2.AddNoiseRequest(end=dp_pb2.ReleaseEnd(row_count=0))
        responses = await streamed(dp, [head, end])
        assert responses[-1].end.kept.element_count == 500


@pytest.mark.parametrize("kind", ["string", "int64", "date", None])
def test_both_looks_write_a_member_in_the_same_way(kind: str | None) -> None:
    """Of whatever type it is; only how many of its elements count in full is another number."""
    listed = "" if kind is None else f"      member_id: {{type: {kind}}}\n"
    policy = POLICY.replace("      article:", f"{listed}      article:")
    plan = plan_of(policy=policy)
    second = second_plan(plan, Named((("a",), ("b",)), "00"), now=2000)
    asked = second_question(verify_plan(sign_plan(second, KEY), KEY, now=2000))
    first = resolve(
        HistogramQuery("engagement", ("article",), Measure.DISTINCT_MEMBERS), parse_policy(policy), now=0
    )
    for dialect in DIALECTS:
        (one, other) = (
            re.findall(r"COUNT\(\*\)(?: OVER \(.*?\))? AS .gris_square.", render(each, dialect))
            for each in (first, asked)
        )
        assert one == other
        assert len(one) == 1
