"""Releases relative to a total: what the engine has to answer, what is drawn, shown, and shown again."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import ContributionBound, Counted, Shift
from dp_service.mechanisms.histogram import Histogram
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import HistogramError, TypedHistogram, checked_histogram, over_domain
from dp_service.releases.kinds import kind_of, versions
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.plan import Plan, sign_plan, verify_plan
from dp_service.releases.release_ids import release_seed
from dp_service.releases.releasing import release
from dp_service.terms import ColumnType
from tests.support.dp_questions import header, showing, shown_again, translated
from tests.support.dp_server import servicer_of_file, serving
from tests.support.shift_estimates import estimates
from tests.unit.dp_service.bounded_plans import STATED, plan_of
from tests.unit.dp_service.identities import KEY
from tests.unit.dp_service.kept_releases import with_names_and_counts

NAMES = [*"abcdefgh"]
MEMBERS = dataclasses.replace(STATED, typical=9, of_events=False, shifted=True)
EVENTS = dataclasses.replace(MEMBERS, of_events=True)
COUNTS = [900, 870, 820, 790, 88, 85, 3, 1]
FIRSTS = [500, 300, 90, 20, 10, 0, 3, 0]
TOTAL = sum(FIRSTS)

POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: m
    contributions: {bound: in_query, units: 4}
    measures: {distinct_members: true, rows: 8}
    columns:
      m: {type: string}
      day: {type: string, group_by: true, typical: 4, domain: [mo, tu, we, th]}
      open: {type: string, group_by: true, typical: 4}
      wide: {type: int64, group_by: true, typical: 4, domain: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}
      one: {type: string, group_by: true, typical: 4, domain: [x]}
      pair: {type: string, group_by: true, typical: 4, domain: [x, y]}
"""


def shifted_plan(*, k: int | None = None, events: bool = False) -> Plan:
    """Return a plan over the eight names and one that nobody has, for members with all of them."""
    plan = plan_of(k=k, known=True)
    stated = dataclasses.replace(EVENTS if events else MEMBERS, min_count=None)
    parameters = dataclasses.replace(plan.parameters, tau=2 if events else 1, contributions=stated)
    return dataclasses.replace(plan, parameters=parameters, drawn_by=versions(parameters))


def answered(firsts: Sequence[int] | None = FIRSTS) -> TypedHistogram:
    """Return what an engine answers."""
    types = (ColumnType.STRING,)
    return checked_histogram(types, [NAMES], COUNTS, row_limit=100, first_counts=firsts)


@pytest.mark.parametrize("events", [False, True])
def test_a_release_is_what_the_shift_draws(events: bool) -> None:
    """Bound, units and domain of the plan are those of the draw; n is the sum of first elements."""
    plan = shifted_plan(events=events)
    counted = Counted.EVENTS if events else Counted.MEMBERS
    bound = ContributionBound(9, 2 if events else 1, 1, counted)
    mechanism = Shift(Currency(Fraction(1, 4), Fraction(1, 100)), Fraction(5), bound, 9)
    assert mechanism == kind_of(plan.parameters).mechanism
    whole = over_domain(answered(), plan.parameters.domain or (), row_limit=100)
    seed = release_seed(KEY, plan.specification, plan.data_version, whole.digest(), plan.fresh)
    drawn = mechanism.run(Histogram.from_element_order([*COUNTS, 0]), TOTAL, KeyedNoise(KeyedStream(seed)))
    found = release(plan, answered(), KEY, confidence=0.9)
    assert found.noisy_counts is not None
    assert found.shown.total is not None
    assert [(Fraction(int(each), found.denominator)) for each in found.noisy_counts] == sorted(
        estimates(drawn), reverse=True
    )
    assert (found.shown.total.noisy, found.shown.total.interval) == (
        drawn.total,
        drawn.total_interval(alpha=Fraction(1, 10)),
    )
    assert found.intervals is not None
    ends = zip(found.intervals.lower.tolist(), found.intervals.upper.tolist(), strict=True)
    assert [*ends] == drawn.intervals(9, alpha=Fraction(1, 10))
    assert (found.cost.information, found.cost.calls, found.denominator) == (5, 0, 2)
    assert IntervalKind.PLAIN is found.interval_kind


def test_the_total_is_a_part_of_what_the_noise_is_drawn_for() -> None:
    """Two totals with the same counts share no noise: their difference would be the true one."""
    other = release(shifted_plan(), answered([*FIRSTS[:-1], 1]), KEY, confidence=0.9)
    assert other.release_id != release(shifted_plan(), answered(), KEY, confidence=0.9).release_id
    plain = checked_histogram((ColumnType.STRING,), [NAMES], COUNTS, row_limit=100)
    assert plain.digest() != answered([0] * 8).digest()


def test_rows_outside_of_the_domain_count_in_the_total() -> None:
    """A member whose first element an engine finds outside may count inside: n must have it."""
    types, names, counts = (ColumnType.STRING,), [*NAMES, "outside"], [*COUNTS, 1]
    found = checked_histogram(types, [names], counts, row_limit=100, first_counts=[*FIRSTS, 1])
    kept = over_domain(found, shifted_plan().parameters.domain or (), row_limit=100)
    assert (len(kept.elements), kept.total) == (9, TOTAL + 1)


@pytest.mark.parametrize(
    "firsts", [[0] * 7, [901, *FIRSTS[1:]], [-1, *FIRSTS[1:]], [True, *FIRSTS[1:]], [0.5, *FIRSTS[1:]]]
)
def test_first_elements_that_no_query_answers_are_refused(firsts: Any) -> None:
    """One for each row, from 0 to the row's count."""
    with pytest.raises(HistogramError):
        answered(firsts)


def test_a_total_is_there_exactly_where_it_is_asked_for() -> None:
    """Neither is a shift drawn without one, nor another release with one."""
    with pytest.raises(HistogramError):
        release(shifted_plan(), answered(None), KEY, confidence=0.9)
    with pytest.raises(HistogramError):
        release(plan_of(known=True), answered(), KEY, confidence=0.9)


def test_a_plan_carries_the_shift() -> None:
    """From translation to noise, on whichever replica; it is another release than the one without."""
    plan = dataclasses.replace(shifted_plan(), specification=b"s")
    assert plan == verify_plan(sign_plan(plan, KEY), KEY, now=plan.issued_at)
    stated = plan.parameters.contributions
    assert stated is not None
    assert ("shifted", True) in stated.specified()
    assert "shifted" not in dict(dataclasses.replace(stated, shifted=False).specified())


@pytest.mark.parametrize(
    ("dimensions", "measure", "shifted"),
    [
        (("day",), Measure.DISTINCT_MEMBERS, True),
        (("pair",), Measure.EVENTS, True),
        (("day",), Measure.EVENTS, True),
        # More elements than a member counts in in full, an unknown domain, one element, none.
        (("wide",), Measure.DISTINCT_MEMBERS, False),
        (("open",), Measure.DISTINCT_MEMBERS, False),
        (("one",), Measure.DISTINCT_MEMBERS, False),
        ((), Measure.DISTINCT_MEMBERS, False),
        (("day", "open"), Measure.DISTINCT_MEMBERS, False),
        (("day", "pair"), Measure.DISTINCT_MEMBERS, True),
    ],
)
def test_the_shift_is_used_where_domain_and_bound_say_that_it_helps(
    dimensions: tuple[str, ...], measure: Measure, shifted: bool
) -> None:
    """Chosen from the policy and the question; never where a single draw has less noise."""
    policy = parse_policy(POLICY)
    resolution = resolve(HistogramQuery("t", dimensions, measure), policy, now=0)
    assert resolution.parameters.contributions is not None
    assert resolution.parameters.contributions.shifted is shifted
    if shifted:
        stated = dataclasses.replace(resolution.parameters.contributions, shifted=False)
        plain = kind_of(dataclasses.replace(resolution.parameters, contributions=stated)).mechanism
        found = kind_of(resolution.parameters).mechanism
        assert isinstance(found, Shift)
        assert found.error_variance < plain.variance


@pytest.fixture
async def dp(tmp_path: Path) -> AsyncIterator[Any]:
    """Give a service under the policy above."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    async with serving(servicer_of_file(tmp_path / "policy.yaml")) as stub:
        yield stub


def asked(**fields: Any) -> question_pb2.Question:
    """Return a question by day."""
    query = question_pb2.HistogramQuery(
        table="t", dimensions=["day"], measure=question_pb2.MEASURE_DISTINCT_MEMBERS, **fields
    )
    return question_pb2.Question(structured=query)


def days(*, first_counts: Sequence[int] = (60, 30, 9)) -> histogram_pb2.Histogram:
    """Return an engine's answer."""
    values = histogram_pb2.StringValues(values=["tu", "mo", "th"])
    column = histogram_pb2.ElementColumn(name="day", strings=values)
    return histogram_pb2.Histogram(columns=[column], counts=[90, 60, 30], first_counts=first_counts)


async def test_a_kept_release_is_shown_as_a_new_one_is(dp: Any) -> None:
    """Every k, with and without counts: numerators, intervals, total, ids and ticket."""
    order = question_pb2.Question(sql="SELECT day FROM t GROUP BY day ORDER BY COUNT(DISTINCT m) DESC")
    views = [asked(), order, *(asked(k=k) for k in (1, 3, 4))]
    head = header(await translated(dp, views[-2]))
    head.keep = True
    drawn: dp_pb2.AddNoiseUnaryResponse = await dp.AddNoiseUnary(
        dp_pb2.AddNoiseUnaryRequest(header=head, histogram=days())
    )
    kept, shift = drawn.release.kept, drawn.release.shown.parameters.bounded.shift
    assert not kept.elements.noisy_counts
    assert kept.elements.noisy_denominator == shift.denominator > 1
    names = list(kept.elements.columns[0].strings.values)
    assert sorted(names) == ["mo", "th", "tu", "we"]
    for view in views:
        request = dp_pb2.AddNoiseUnaryRequest(header=header(await translated(dp, view)), histogram=days())
        fresh: dp_pb2.AddNoiseUnaryResponse = await dp.AddNoiseUnary(request)
        shown = await shown_again(dp, showing(request.header.plan, kept))
        count = shown.shown.element_count
        assert list(fresh.release.elements.columns[0].strings.values) == names[:count]
        if not view.sql:
            numerators = kept.elements.noisy_numerators[:count]
            assert list(fresh.release.elements.noisy_numerators) == list(numerators)
        assert fresh.release == with_names_and_counts(shown, kept)
        assert fresh.release.shown.total.count == kept.total


async def test_a_query_says_that_its_client_has_to_know_first_elements(dp: Any) -> None:
    """A client that does not stops before it reserves."""
    plan = await translated(dp, asked())
    assert {each.dialect for each in plan.engine_queries} == {"duckdb", "spark", "pinot"}
    assert all(dp_pb2.ENGINE_FEATURE_FIRST_COUNTS in each.requires for each in plan.engine_queries)
    assert all("gris_first_count" in each.sql for each in plan.engine_queries)


@pytest.mark.parametrize("first_counts", [(), (60, 30), (91, 0, 0)])
async def test_an_answer_without_first_elements_is_refused(dp: Any, first_counts: tuple[int, ...]) -> None:
    """In whatever form: nothing is drawn around a total that is not there."""
    head = header(await translated(dp, asked()))
    request = dp_pb2.AddNoiseUnaryRequest(header=head, histogram=days(first_counts=first_counts))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await dp.AddNoiseUnary(request)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_nobody_counts_where_there_are_no_rows(dp: Any) -> None:
    """An empty answer is four elements and a total of 0, each with noise."""
    request = dp_pb2.AddNoiseUnaryRequest(
        header=header(await translated(dp, asked())), histogram=histogram_pb2.Histogram()
    )
    found: dp_pb2.Release = (await dp.AddNoiseUnary(request)).release
    assert len(found.elements.noisy_numerators) == 4
    assert found.shown.HasField("total")
    assert found.shown.total.noise_lower == 0


def test_counts_in_the_order_of_release_are_those_of_their_elements() -> None:
    """The numerators that are sent belong to the elements beside them; nobody's count is at the end."""
    found = release(shifted_plan(), answered(), KEY, confidence=0.999)
    assert found.noisy_counts is not None
    assert found.intervals is not None
    true = dict(zip(NAMES, COUNTS, strict=True)) | {"nobody": 0}
    inside = [
        lower <= true[str(element[0])] <= upper
        for element, lower, upper in zip(
            found.elements, found.intervals.lower, found.intervals.upper, strict=True
        )
    ]
    assert np.all(inside)
