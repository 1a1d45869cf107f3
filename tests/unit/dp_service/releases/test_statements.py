"""What is said of an answer is true of that answer: of what it shows, and of the noise in what it shows."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from dp_service.mechanisms.intervals import CountIntervals
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.views import Counts, IntervalKind, ReleaseView
from dp_service.releases.plan import Plan, sign_plan, verify_plan
from dp_service.releases.saying import of_answer, of_question
from dp_service.releases.translation import IssueContext, plan_for
from tests.support.queries.lookups import content, policy_of
from tests.support.queries.lookups import said as looked_up
from tests.support.some import some
from tests.unit.dp_service import summed_plans
from tests.unit.dp_service.identities import KEY
from tests.unit.dp_service.plans import PLAN


def said(plan: Plan, noisy: int = 100, interval: tuple[int, int] = (90, 110)) -> dict[str, str]:
    """Return what is said of an answer with one count, by code."""
    ends = CountIntervals(*(np.array([end], dtype=np.int64) for end in interval))
    view = ReleaseView(1, ends, IntervalKind.PLAIN)
    counts = Counts(np.array([noisy], dtype=np.int64), 1)
    return {each.code: each.text for each in of_answer(plan, counts, view, bottom=None, confidence=0.95)}


def test_an_interval_that_lay_below_every_possible_count_is_explained() -> None:
    """It covers as often as it says, and is no promise that the count is 0."""
    explained = (
        "so 0 to 0 stands where a whole interval was below it: noise as large as that meets at most 5 %"
    )
    assert explained in said(PLAN, -312, (0, 0))["intervals.cut"]
    assert "intervals.cut" not in said(PLAN, -12, (0, 9))


def test_an_answer_says_how_much_a_member_changes() -> None:
    """As its question does: Delta, tau and the domain are what the noise rests on."""
    tau = PLAN.parameters.tau
    assert said(PLAN)["method.reach"] == (
        f"A member changes any number of elements, each by at most {tau}, over an unknown domain."
    )
    assert "at most 2 elements" in said(summed_plans.plan_of())["method.reach"]
    assert "a known domain of 12 elements." in said(summed_plans.plan_of(known=True))["method.reach"]
    assert said(dataclasses.replace(PLAN, columns=()))["method.reach"] == (
        f"A member changes the total by at most {tau}."
    )


@pytest.mark.parametrize(("k", "is_said"), [(None, False), (2, False), (1000, True)])
def test_a_list_is_said_to_end_for_its_sums_only_if_it_may(k: int | None, is_said: bool) -> None:
    """A k that the question asks for is no limit of results, and of a sum alone no average can be missing."""
    codes = said(summed_plans.plan_of(k=k))
    assert is_said is ("list.at_most" in codes)
    assert "list.at_most" not in said(summed_plans.plan_of(k=k, known=True))
    assert "sums.averages" not in codes


POLICY = """
epsilon_per: 0.5
delta: 1e-3
count_noise: gaussian
tables:
  t:
    member: m
    contributions: {bound: in_query, units: 6, min_count: 1, sums: {max_members: 100000, max_rows: 1000000}}
    measures: {distinct_members: true, rows: 4}
    columns:
      m: {type: string}
      item: {type: string, group_by: true, typical: 2, filter: [in], domain: [element_a, element_b, element_c]}
      place: {type: string, group_by: true, typical: 2, filter: [in, not_in], null_value: element_null, nulls: keep}
    values:
      amount: {type: int64, lower: 0, upper: 10}
      age: {type: int64, grid: {scale: linear, from: 0, to: 100, cells: 50}}
"""
WHERE = "FROM t WHERE place = 'compared_with' AND item IN ('element_a', 'element_b') GROUP BY 1"
QUESTIONS = [
    f"SELECT item AS alias_i, COUNT(DISTINCT m) AS alias_n, SUM(amount) AS alias_s {WHERE} "
    "HAVING alias_n > 73311 ORDER BY alias_s DESC LIMIT 2",
    "SELECT item AS alias_i, COUNT(DISTINCT m) AS alias_n, AVG(alias_t) AS alias_v "  # noqa: S608
    f"FROM (SELECT m, item, SUM(amount) AS alias_t {WHERE.replace('BY 1', 'BY m, item')}) GROUP BY item",
    f"SELECT place AS alias_p, COUNT(DISTINCT m) AS alias_n {WHERE} LIMIT 2",
    f"SELECT item AS alias_i, PERCENTILE(age, 37) AS alias_q, MAX(age) AS alias_m {WHERE}",
]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_statements_hold_no_element_no_value_of_a_condition_and_no_alias(sql: str) -> None:
    """Of an estimate and of an answer; a quantile's q and a LIMIT are numbers of the question, and are said."""
    policy = parse_policy(POLICY)
    resolution = resolve(parse_sql(sql, policy), policy, now=0)
    kind = kind_of(resolution.parameters)
    plan = plan_for(resolution, "v", KEY, IssueContext(0, bytes(32)))
    view = ReleaseView(0, None, IntervalKind.NONE)
    estimated = of_question(resolution, kind.mechanism.worst_case_cost(), kind.accuracy())
    answered = of_answer(plan, None, view, bottom=None, confidence=0.95)
    for each in some((*estimated, *answered)):
        assert not re.search(
            "element_|compared_with|alias_|73311", " ".join((each.text, each.column, *each.values))
        )


@pytest.mark.parametrize(
    ("sql", "is_said"),
    [
        ("SELECT COUNT(DISTINCT m) FROM t WHERE at >= '2026-01-01'", True),
        ("SELECT COUNT(DISTINCT m) FROM t WHERE at >= '2026-01-01' AND at < '2026-02-01'", False),
        ("SELECT COUNT(DISTINCT m) FROM t WHERE at < '2026-01-01' OR flag", True),
        ("SELECT COUNT(DISTINCT m) FROM t WHERE EXTRACT(HOUR FROM at) = 3", True),
        ("SELECT EXTRACT(HOUR FROM at), COUNT(DISTINCT m) FROM t GROUP BY 1", True),
        ("SELECT COUNT(DISTINCT m) FROM t WHERE flag", False),
    ],
)
def test_an_answer_without_far_timestamps_says_so(sql: str, *, is_said: bool) -> None:
    """Before it is asked, and of its answer, which has a plan that was signed and read."""
    columns = {"at": {"type": "timestamp", "filter": ["range"]}, "flag": {"type": "bool", "filter": ["in"]}}
    time = {"column": "at", "type": "timestamp", "zone": "UTC", "parts": {"hour": 2}}
    bound = {"bound": "in_query", "units": 10}
    table = {"member": "m", "time": time, "contributions": bound, "columns": columns}
    table["measures"] = {"distinct_members": True}
    head = {"epsilon_per": "1", "delta": "1e-2", "count_noise": "gaussian"}
    policy = policy_of({**head, "tables": {"t": table}}, content("text", []))
    resolution = resolve(parse_sql(sql, policy), policy, now=0)
    plan = plan_for(resolution, "v", KEY, IssueContext(0, bytes(32)))
    plan = verify_plan(sign_plan(plan, KEY), KEY, now=0)
    kind, view = kind_of(resolution.parameters), ReleaseView(0, None, IntervalKind.NONE)
    estimated = of_question(resolution, kind.mechanism.worst_case_cost(), kind.accuracy())
    answered = of_answer(plan, None, view, bottom=None, confidence=0.95)
    for each in (estimated, answered):
        assert [one.code for one in each if one.code == "rows.far_times"] == ["rows.far_times"] * is_said


@pytest.mark.parametrize(
    ("where", "nulls", "rest"),
    [
        ("topic = 'one'", {}, "are left out."),
        ("topic = 'one' OR flag", {}, "meet no condition on topic."),
        (
            "topic = 'one' OR flag",
            {"nulls": "keep", "null_value": "none"},
            "count with the policy's value for NULL.",
        ),
        ("flag", {}, None),
    ],
)
def test_what_is_looked_up_is_said_wherever_a_question_names_it(
    where: str, nulls: dict[str, str], rest: str | None
) -> None:
    """Also where an alternative alone does, whose condition is on the keys."""
    file = content("text", [("a", "one"), ("b", "two")])
    columns = {
        "text": {"type": "string"},
        "flag": {"type": "bool", "group_by": True, "delta": 2, "filter": ["in"]},
        "topic": looked_up("text", file, **nulls),
    }
    table = {"member": "m", "measures": {"distinct_members": True}, "columns": columns}
    policy = policy_of({"epsilon_per": "1", "delta": "1e-2", "tables": {"t": table}}, file)
    sql = f"SELECT flag, COUNT(DISTINCT m) FROM t WHERE {where} GROUP BY flag"  # noqa: S608 - this test's own
    resolution = resolve(parse_sql(sql, policy), policy, now=0)
    kind = kind_of(resolution.parameters)
    estimated = of_question(resolution, kind.mechanism.worst_case_cost(), kind.accuracy())
    said_of_it = [each.text for each in estimated if each.code == "rows.looked_up"]
    assert len(said_of_it) == (rest is not None)
    assert all(each.endswith(f"rows whose text it does not have {rest}") for each in said_of_it)
