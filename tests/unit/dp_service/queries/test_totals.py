"""A count without GROUP BY: one total, of a known domain with one element."""

# ruff: noqa: S608  (the SQL is these tests' own)

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import HistogramError, checked_histogram, over_domain
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import kind_of
from dp_service.releases.plan import sign_plan, verify_plan
from dp_service.releases.releasing import release
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import MechanismName
from tests.support.queries.policies import fingerprint, resolved

MEMBERS = "SELECT COUNT(DISTINCT member_id) FROM engagement"
EVENTS = "SELECT COUNT(*) FROM orders"
KEY = NoiseKey(bytes(range(32)))


@pytest.mark.parametrize(("sql", "tau"), [(MEMBERS, 1), (EVENTS, 3)])
def test_a_total_is_the_one_element_of_a_known_domain(sql: str, tau: int) -> None:
    """Each member is in it and changes it by at most tau, so KnownLap counts it for one unit and no call."""
    parameters = resolved(sql).parameters
    assert (MechanismName.KNOWN_LAP, 1, tau) == (parameters.mechanism, parameters.delta_l0, parameters.tau)
    assert ((),) == parameters.domain
    assert Cost(information=1, calls=0) == kind_of(parameters).mechanism.worst_case_cost()
    assert resolved(sql).row_limit == 1


@pytest.mark.parametrize(
    "text",
    [
        "select count( distinct member_id) as n from engagement order by n desc",
        "SELECT DISTINCTCOUNT(e.member_id) FROM engagement AS e ORDER BY 1 DESC LIMIT 100;",
        f"{MEMBERS} LIMIT 1",
    ],
)
def test_every_spelling_of_a_total_is_the_same_release(text: str) -> None:
    """A total has no largest elements to choose, so neither an order nor a limit changes it."""
    context = IssueContext(0, bytes(32))
    plans = [plan_for(resolved(sql), "v", KEY, context) for sql in (MEMBERS, text)]
    assert plans[0].query_id == plans[1].query_id


def test_a_total_shares_its_fingerprint_with_no_other_question() -> None:
    """Not with any that groups, filters, counts something else or asks another table."""
    others = [
        f"SELECT {name}, COUNT(DISTINCT member_id) FROM engagement GROUP BY {name} LIMIT 1"
        for name in ("article_id", "country", "active", "day")
    ]
    others += [f"{MEMBERS} WHERE country = 'DE'", f"{MEMBERS} WHERE country IN ('DE', 'FR', 'AT')"]
    others += ["SELECT COUNT(DISTINCT user) FROM clicks", EVENTS, f"{EVENTS} WHERE item = 'x'"]
    prints = [canonical_bytes(resolved(each).query) for each in (MEMBERS, *others)]
    assert len(set(prints)) == len(prints)
    assert fingerprint(HistogramQuery("engagement", (), Measure.DISTINCT_MEMBERS)) == prints[0]


def test_a_total_of_events_needs_a_tau_that_the_query_enforces() -> None:
    """What is assumed of the rows of one element says nothing of all rows of a member together."""
    with pytest.raises(RefusedByPolicyError, match="tau_is: clipped") as refusal:
        resolved("SELECT COUNT(*) FROM engagement WHERE country = 'DE'")
    assert refusal.value.rule is Rule.MEASURE
    assert "COUNT(DISTINCT member_id)" in str(refusal.value)


def test_a_total_without_its_count_is_refused() -> None:
    """There would be nothing to show, and nobody should pay for it."""
    with pytest.raises(QuestionError) as refusal:
        HistogramQuery("engagement", (), Measure.DISTINCT_MEMBERS, omit_counts=True)
    assert refusal.value.field == "omit_counts"


ORDERS = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  orders:
    member: customer
    measures: {distinct_members: true, events: {tau: 3, tau_is: clipped}}
    columns:
      item: {type: string, group_by: true, filter: [in]}
""")


@pytest.fixture(scope="module")
def orders() -> Iterator[duckdb.DuckDBPyConnection]:
    """Seven orders: five of one customer, one of another, and one of nobody."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE orders (customer VARCHAR, item VARCHAR)")
        rows = [("a", "tea")] * 4 + [("a", "jam"), ("b", "jam"), (None, "jam")]
        connection.executemany("INSERT INTO orders VALUES (?, ?)", rows)
        yield connection


@pytest.mark.parametrize(
    ("count", "where", "expected"),
    [
        ("COUNT(DISTINCT customer)", "", 2),
        ("COUNT(DISTINCT customer)", "WHERE item = 'tea'", 1),
        ("COUNT(DISTINCT customer)", "WHERE item = 'none'", 0),
        ("COUNT(*)", "", 4),
        ("COUNT(*)", "WHERE item = 'jam'", 2),
        ("COUNT(*)", "WHERE item = 'none'", 0),
    ],
)
def test_a_total_is_always_one_row(
    orders: duckdb.DuckDBPyConnection, count: str, where: str, expected: int
) -> None:
    """Also where nothing matches: no member's rows decide whether there is one; tau clips each customer once."""
    resolution = resolve(parse_sql(f"SELECT {count} FROM orders {where}", ORDERS), ORDERS, now=0)
    assert [(expected,)] == orders.execute(render(resolution, "duckdb")).fetchall()


@pytest.mark.parametrize("counts", [[], [0], [41]])
def test_a_total_that_an_engine_leaves_out_is_zero(counts: list[int]) -> None:
    """An engine may answer nothing where nothing matches; what is released then is the total 0."""
    answer = checked_histogram((), [], counts, row_limit=1)
    whole = over_domain(answer, ((),), row_limit=1)
    assert ([()], [sum(counts)]) == (whole.elements, whole.counts.tolist())


def test_an_answer_of_several_totals_is_refused() -> None:
    """They would be two counts of one element."""
    with pytest.raises(HistogramError):
        checked_histogram((), [], [2, 1], row_limit=1)
    with pytest.raises(HistogramError, match="each element once"):
        checked_histogram((), [], [2, 1], row_limit=2)


def test_a_released_total_is_one_count_with_an_interval() -> None:
    """By way of a signed plan, as it comes back from a client."""
    signed = sign_plan(plan_for(resolved(f"{MEMBERS} LIMIT 3"), "v", KEY, IssueContext(0, bytes(32))), KEY)
    plan = verify_plan(signed, KEY, now=1)
    released = release(plan, checked_histogram((), [], [1000], row_limit=1), KEY, confidence=0.95)
    assert [()] == released.elements
    assert released.noisy_counts is not None
    assert released.intervals is not None
    assert abs(released.noisy_counts[0] - 1000) < 500
    assert released.intervals.lower[0] <= released.noisy_counts[0] <= released.intervals.upper[0]
    assert Cost(information=1, calls=0) == released.cost


def test_a_table_that_offers_no_count_of_members_names_no_other_total() -> None:
    """The refusal offers what the policy offers."""
    policy = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  t: {member: m, measures: {events: {tau: 2, tau_is: assumed}}, columns: {c: {type: string, group_by: true}}}
""")
    with pytest.raises(RefusedByPolicyError) as refusal:
        resolve(parse_sql("SELECT COUNT(*) FROM t", policy), policy, now=0)
    assert "COUNT(DISTINCT" not in str(refusal.value)
