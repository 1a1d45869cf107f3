"""Sharpening in dp_service: what a look more draws, what proves the looks before it, and what is shown together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import grpc
import numpy as np
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound
from dp_service.mechanisms.selection import Selection
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import checked_histogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.sharpened import LookMore
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.plan import Plan, sign_plan, verify_plan
from dp_service.releases.releasing import release
from dp_service.releases.sharpening import AskedSharpening, sharpened_question
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import ColumnType, Element
from tests.dp.identities import KEY
from tests.mechanisms.bounded.laws import masses, reach
from tests.support.dp_questions import error_of, question, showing, shown_again
from tests.support.dp_server import servicer_of, serving

POLICY = """
epsilon_per: 0.5
delta: 0.01
count_noise: gaussian
tables:
  engagement:
    member: member_id
    contributions:
      {bound: in_query, delta_0: 3, units: 8, sharpening: 100, names: {delta_1: 2, share: 1/4, max_names: 4}}
    measures: {distinct_members: true}
    columns:
      article: {type: string, group_by: true, filter: [in]}
      score: {type: int64, group_by: true, domain: [-1, 0, 1]}
"""
CURRENCY = Currency(Fraction(1, 2), Fraction(1, 100))
NAMES: tuple[Element, ...] = (("a",), ("b",), ("c",))
BASE = "1" * 64


def plan_of(
    *units: int,
    names: tuple[Element, ...] = NAMES,
    before: Sequence[str] = (BASE,),
    version: str = "v1",
    planned: bool = False,
    k: int | None = None,
    policy: str = POLICY,
) -> Plan:
    """Return the plan of a sharpening."""
    query = HistogramQuery("engagement", ("article",), Measure.DISTINCT_MEMBERS, k=k)
    base = resolve(query, parse_policy(policy), now=0)
    asked = AskedSharpening(units, planned)
    look = sharpened_question(base, asked, most_units=100, names=names, release_ids=tuple(before))
    return plan_for(look, version, KEY, IssueContext(1000, bytes(32)))


def test_a_look_more_is_the_second_look_over_a_known_domain() -> None:
    """Delta_2 within the names, its own units, no threshold and no call; its plan says so to any replica."""
    plan = plan_of(10)
    assert kind_of(plan.parameters).mechanism == BoundGauss(
        CURRENCY, Fraction(10), ContributionBound(3), None
    )
    cost = kind_of(plan.parameters).mechanism.worst_case_cost()
    assert (cost.information, cost.calls) == (10, 0)
    assert (plan.parameters.domain, plan.looks, plan.row_limit) == (NAMES, None, 3)
    assert verify_plan(sign_plan(plan, KEY), KEY, now=1001) == plan
    # The look of the base had 6 of 8 units.
    three = look_more(plan_of(10, 20, before=(BASE, "2" * 64)))
    assert [look.units for look in three.looks] == [6, 10, 20]


def test_every_chain_of_looks_has_noise_of_its_own() -> None:
    """Other names, base, version, units before or now: all have other seeds; k and planned change nothing."""
    two = {"before": (BASE, "2" * 64)}
    others: list[Plan] = [
        plan_of(10, names=NAMES[:2]),
        plan_of(10, before=("3" * 64,)),
        plan_of(10, version="v2"),
        plan_of(11),
        plan_of(10, 10, **two),  # type: ignore[arg-type]
        plan_of(11, 10, **two),  # type: ignore[arg-type]
        plan_of(10, 10, before=(BASE, "4" * 64)),
    ]
    rows = checked_histogram((ColumnType.STRING,), [["a", "b"]], [90, 40], row_limit=2)
    same = [plan_of(10), plan_of(10, planned=True), plan_of(10, k=2)]

    def seeds(plans: Sequence[Plan]) -> set[tuple[str, str]]:
        return {(each.query_id, release(each, rows, KEY, confidence=0.9).release_id) for each in plans}

    assert len(seeds(same)) == 1
    found = seeds([*same, *others])
    assert len({query for query, _ in found}) == len({one for _, one in found}) == 1 + len(others)


def look_more(plan: Plan) -> LookMore:
    """Return the kind of a sharpening."""
    kind = kind_of(plan.parameters)
    assert isinstance(kind, LookMore)
    return kind


def shown(
    plan: Plan, counts: Sequence[int], *before: Sequence[int], confidence: float = 0.9
) -> tuple[list[int], list[tuple[int, int]], list[Fraction], IntervalKind]:
    """Return which names are shown, their intervals and all combined counts, for counts in ascending order of names."""
    order = sorted(range(len(counts)), key=lambda name: (-counts[name], name))
    drawn = Selection(
        np.array(order, dtype=np.int64),
        np.array([counts[name] for name in order], dtype=np.int64),
        ended_in_bottom=False,
    )
    found = look_more(plan).together(
        MechanismOutput(drawn), [np.array(each, dtype=np.int64) for each in before], confidence=confidence
    )
    assert found.view.rows is not None
    assert found.view.intervals is not None
    ends = zip(found.view.intervals.lower.tolist(), found.view.intervals.upper.tolist(), strict=True)
    values = (Fraction(each, found.counts.denominator) for each in found.counts.noisy.tolist())
    combined = dict(zip(order, values, strict=True))
    return (
        [order[row] for row in found.view.rows],
        list(ends),
        [combined[name] for name in range(len(counts))],
        found.view.interval_kind,
    )


def test_counts_are_combined_by_their_units() -> None:
    """6 of the base and 12 of this look; the list is in the order of what comes of it."""
    plan = plan_of(12)
    names, _, combined, kind = shown(plan, [90, 100, 40], [99, 70, 43])
    assert combined == [93, 90, 41]
    assert (names, kind) == ([0, 1, 2], IntervalKind.PLAIN)
    names, ends, _, kind = shown(plan_of(12, k=1), [90, 100, 40], [99, 70, 43])
    assert (names, len(ends), kind) == ([0], 1, IntervalKind.GIVEN_SHOWN)


COUNT = 60
ALPHA = 0.1


def covered(plan: Plan, cut_off: int | None, led: range) -> float:
    """Return the coverage of a count, given what the noise of its base was and that it is shown.

    `led` is the noise with which somebody sharpens; `cut_off` is the other name's count in both looks, None: there is
    no other name.
    """
    first, last = (look.variance for look in look_more(plan).looks)
    others = [] if cut_off is None else [cut_off]
    laws = [dict(zip(range(-reach(v), reach(v) + 1), masses(v), strict=True)) for v in (first, last)]
    hit = all_of = 0.0
    for one in set(led) & set(laws[0]):
        for other, mass in laws[1].items():
            weight = float(mass * laws[0][one])
            if weight < 1e-9:
                continue
            names, ends, _, _ = shown(
                plan, [COUNT + other, *others], [COUNT + one, *others], confidence=1 - ALPHA
            )
            if names[0] == 0:
                all_of += weight
                hit += weight * (ends[0][0] <= COUNT <= ends[0][1])
    return hit / all_of


@pytest.mark.parametrize("cut_off", [None, COUNT + 2], ids=["all", "cut"])
def test_intervals_hold_where_one_sharpens_after_a_high_answer(cut_off: int | None) -> None:
    """By default; combined ones hold for a plan alone."""
    names = NAMES[: 1 if cut_off is None else 2]
    plans = {
        planned: plan_of(
            8, names=names, planned=planned, k=1, policy=POLICY.replace("epsilon_per: 0.5", "epsilon_per: 1")
        )
        for planned in (False, True)
    }
    high, every = range(2, 20), range(-30, 30)
    assert covered(plans[False], cut_off, high) >= 1 - ALPHA - 1e-6
    assert covered(plans[True], cut_off, every) >= 1 - ALPHA - 1e-6
    if cut_off is None:
        assert covered(plans[True], cut_off, high) < 1 - 1.5 * ALPHA


def test_an_interval_holds_the_count_that_it_is_shown_with() -> None:
    """Where the looks lie far apart, the last look's own is extended to the combined count."""
    _, ((lower, upper), *_), (combined, *_), _ = shown(plan_of(1), [500, 0, 0], [100, 0, 0])
    assert lower <= combined <= upper
    assert upper >= 500


@pytest.mark.parametrize("units", [(), (0,), (101,), (1,) * 9], ids=str)
def test_units_out_of_range_are_refused(units: tuple[int, ...]) -> None:
    """Before anything is asked."""
    with pytest.raises(QuestionError) as refused:
        plan_of(*units)
    assert refused.value.field == "sharpening.units"


@pytest.mark.parametrize(
    ("key", "value"),
    [("epsilon_per: 0.5", "epsilon_per: 0.00001"), ("share: 1/4", "share: 0.2500001")],
    ids=["noise too large", "too many values"],
)
def test_units_whose_noise_cannot_be_drawn_or_combined_are_refused(key: str, value: str) -> None:
    """All of that follows from the units and the policy, and never from the data."""
    with pytest.raises(QuestionError, match="combined") as refused:
        plan_of(7, policy=POLICY.replace(key, value))
    assert refused.value.field == "sharpening.units"


def test_a_plan_whose_law_takes_long_to_add_up_is_refused() -> None:
    """By the units and the policy alone; intervals of the last look need no such law."""
    coarse = POLICY.replace("epsilon_per: 0.5", "epsilon_per: 0.002")
    plan_of(4, 4, 4, policy=coarse)
    with pytest.raises(QuestionError, match="too long") as refused:
        plan_of(4, 4, 4, policy=coarse, planned=True)
    assert refused.value.field == "sharpening.planned"


def _rows(names: Sequence[str], counts: Sequence[int]) -> histogram_pb2.Histogram:
    column = histogram_pb2.ElementColumn(name="article")
    column.strings.SetInParent()
    column.strings.values.extend(names)
    return histogram_pb2.Histogram(columns=[column], counts=counts)


async def _drawn(dp: Any, plan: bytes, rows: histogram_pb2.Histogram, version: str = "v1") -> Any:
    header = dp_pb2.ReleaseHeader(plan=plan, data_version=version, keep=True)
    return await dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header, histogram=rows))


async def _translated(
    dp: Any,
    asked: question_pb2.Question,
    before: dp_pb2.LooksBefore | None = None,
    version: str = "v1",
) -> dp_pb2.TranslateQueryResponse:
    request = dp_pb2.TranslateQueryRequest(question=asked, data_version=version, before=before)
    response: dp_pb2.TranslateQueryResponse = await dp.TranslateQuery(request)
    return response


async def _base(dp: Any) -> tuple[dp_pb2.Kept, dp_pb2.LooksBefore]:
    """Return the base release and what a sharpening brings along of it."""
    plan = await _translated(dp, question("article"))
    look = (await _drawn(dp, plan.plan, _rows("abcd", [900, 800, 700, 600]))).next
    names = ["a", "b", "c", "d"]
    kept = (await _drawn(dp, look.plan, _rows(names, [800, 700, 600, 500]))).release.kept
    return kept, _before(kept)


def _before(kept: dp_pb2.Kept) -> dp_pb2.LooksBefore:
    return dp_pb2.LooksBefore(releases=[_without_elements(kept)], names=kept.elements.columns)


def _without_elements(kept: dp_pb2.Kept) -> dp_pb2.Kept:
    looks = dp_pb2.Kept()
    looks.CopyFrom(kept)
    looks.ClearField("elements")
    return looks


def _sharpened(*units: int, version: str = "") -> question_pb2.Question:
    asked = question("article")
    asked.sharpening.units.extend(units)
    asked.sharpening.data_version = version
    return asked


async def test_the_services_messages_are_those_of_a_chain_of_looks() -> None:
    """Translated with what was kept, drawn as a known domain, and shown together with the looks before."""
    async with serving(servicer_of(POLICY)) as dp:
        kept, before = await _base(dp)
        plan = await _translated(dp, _sharpened(10), before)
        assert (plan.worst_case_cost.information, plan.worst_case_cost.calls) == (10, 0)
        assert not plan.HasField("unfinished")
        assert plan.query_id != kept.bill.query_id
        more = (await _drawn(dp, plan.plan, _rows("abcd", [800, 700, 600, 500]))).release.kept
        assert more.bill.release_id != kept.bill.release_id
        counts = dict(zip(kept.elements.columns[0].strings.values, kept.elements.noisy_counts, strict=True))
        names = list(more.elements.columns[0].strings.values)
        before_it = {kept.bill.release_id: [counts[name] for name in names]}
        request = showing(plan.plan, more, before=before_it)
        release = await shown_again(dp, request)
        sharpened = release.shown.parameters.bounded.sharpened
        # 6 units and 10.
        assert (sharpened.denominator, list(sharpened.units_before)) == (8, ["6"])
        assert release.elements.noisy_denominator == 8
        assert list(release.elements.noisy_numerators) == [
            3 * counts[names[row]] + 5 * more.elements.noisy_counts[row] for row in release.rows
        ]
        assert len(release.rows) == 2
        for message, field in (
            (request.chunk, "before"),
            (request.chunk.elements, "noisy_counts"),
            (request.header, "release_ids_before"),
        ):
            message.ClearField(field)
            code, _, metadata = await error_of(shown_again(dp, request))
            assert (code, metadata["field"].rpartition(".")[2]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
        before.releases.append(_without_elements(more))
        again = await _translated(dp, _sharpened(10, 20), before)
        assert list(again.parameters.bounded.sharpened.units_before) == ["6", "10"]


def _with(
    before: dp_pb2.LooksBefore,
    *,
    releases: Sequence[dp_pb2.Kept] | None = None,
    names: Sequence[histogram_pb2.ElementColumn] | None = None,
) -> dp_pb2.LooksBefore:
    """Return looks before with another part."""
    return dp_pb2.LooksBefore(releases=releases or before.releases, names=names or before.names)


async def test_what_is_not_the_release_before_is_refused() -> None:
    """Other names, another version, another chain, a forged ticket, none at all: nothing of it is combined."""
    async with serving(servicer_of(POLICY)) as dp:
        _, before = await _base(dp)
        refused = (grpc.StatusCode.FAILED_PRECONDITION, "NOT_SHARPENABLE")

        async def error(
            asked: question_pb2.Question, given: dp_pb2.LooksBefore | None, version: str = "v1"
        ) -> Any:
            return (await error_of(_translated(dp, asked, given, version)))[:2]

        assert await error(_sharpened(10), None) == refused
        assert await error(_sharpened(10), before, "v2") == refused
        assert await error(_sharpened(10, version="0" * 32), before) == refused
        assert await error(_sharpened(10, 10), before) == refused
        for names in (list("abcde"), list("abc"), list("abce")):
            spoilt = _rows(names, []).columns
            assert await error(_sharpened(10), _with(before, names=spoilt)) == refused
        untagged = dp_pb2.Kept()
        untagged.CopyFrom(before.releases[0])
        untagged.names_tag = b""
        assert await error(_sharpened(10), _with(before, releases=[untagged])) == refused
        given = _with(before)
        given.releases[0].bill.release_id = "0" * 64
        assert (await error(_sharpened(10), given))[1] == "RELEASE_NOT_AUTHENTIC"
        # A longer chain has to be of the same units.
        plan = await _translated(dp, _sharpened(10), before)
        more = await _drawn(dp, plan.plan, _rows("abcd", [800, 700, 600, 500]))
        before.releases.append(_without_elements(more.release.kept))
        assert await error(_sharpened(11, 10), before) == refused
        await _translated(dp, _sharpened(10, 10), before)


async def test_an_empty_release_is_not_sharpened() -> None:
    """There is nothing to count, which the account knows that paid."""
    async with serving(servicer_of(POLICY)) as dp:
        plan = await _translated(dp, question("article"))
        before = _before((await _drawn(dp, plan.plan, _rows([], []))).release.kept)
        code, reason, _ = await error_of(_translated(dp, _sharpened(10), before))
        assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_SHARPENABLE")


def test_a_policy_states_sharpening_only_where_answers_repeat() -> None:
    """Where they do not, none is kept."""
    with pytest.raises(ValueError, match="consistency: fresh"):
        parse_policy(
            POLICY.replace("    member: member_id\n", "    member: member_id\n    consistency: fresh\n")
        )
    stated = parse_policy(POLICY).table("engagement").contributions
    assert stated is not None
    assert stated.sharpening == 100
