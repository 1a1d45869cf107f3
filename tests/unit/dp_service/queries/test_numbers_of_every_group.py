"""Every number of every rendered query is one in every group: none is NULL where nobody has a value."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import Resolution, resolve, second_look
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import GRID, MemberValue
from tests.support.queries import buckets, lookups, quantiles, sums
from tests.support.queries.duckdb_rows import store
from tests.support.typical import typically

NOW = sums.NOW
COUNTED = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: member
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    %s
    columns:
      text: {type: string, group_by: true}
      flag: {type: bool, group_by: true, domain: [false, true]}
"""
BOUNDED = "contributions: {bound: in_query, units: 20, min_count: 2%s}"
START, END = (datetime.datetime(2024, month, 1, tzinfo=datetime.UTC) for month in (1, 3))


def summed() -> Iterator[Resolution]:
    """Yield sums and averages, of members' totals and of rows, of columns of each way to treat missing values."""
    for whole, number in zip(sums.WHOLES, sums.NUMBERS, strict=True):
        for by in ((), ("text",)):
            for measure in Measure:
                under = sums.policy(whole=whole, number=number)
                yield resolve(sums.asked("number", "whole", by=by, measure=measure), under, now=NOW)


def counted() -> Iterator[Resolution]:
    """Yield counts: plain, clipped, bounded, relative to their total, and of both looks."""
    for contributions in ("", BOUNDED % ""):
        for by in ((), ("text",), ("flag",)):
            for measure in Measure:
                asked = HistogramQuery("t", by, measure, k=3 if by else None)
                text = COUNTED % contributions
                yield resolve(asked, parse_policy(typically(3, text) if contributions else text), now=NOW)
    looks = parse_policy(typically(3, COUNTED % BOUNDED % ", longest_list: 75"))
    for measure in Measure:
        first = resolve(HistogramQuery("t", ("text",), measure, k=3), looks, now=NOW)
        yield from (first, second_look(first, (("a",), ("b",))))


def measured() -> Iterator[Resolution]:
    """Yield quantiles, whichever value of a member counts."""
    for rule in MemberValue:
        for by in ((), ("text",)):
            for column in ("whole", "number"):
                yield resolve(quantiles.asked(column, by, of=rule), quantiles.policy(), now=NOW)


def grouped() -> Iterator[Resolution]:
    """Yield series by buckets of time, and looked-up columns."""
    for length in BucketLength:
        asked = buckets.asked(length, START, END)
        yield resolve(asked, buckets.policy("milliseconds"), now=buckets.NOW)
    for bounded in (False, True):
        policy, _, questions = lookups.nasty(kept=True, bounded=bounded)
        yield from (resolve(each, policy, now=NOW) for each in questions)


def as_filters(node: exp.Expr) -> exp.Expr:
    """Write a sum of CASE .. ELSE 0 END as Pinot's planner does, by Calcite's AggregateCaseToFilterRule."""
    found = node.this.unnest() if isinstance(node, exp.Sum) else None
    if not isinstance(found, exp.Case) or len(found.args["ifs"]) != 1:
        return node
    otherwise = found.args.get("default")
    if otherwise is not None and otherwise.sql() not in ("0", "NULL"):
        return node
    (only,) = found.args["ifs"]
    return exp.Filter(this=exp.Sum(this=only.args["true"]), expression=exp.Where(this=only.this))


def planned(sql: str, dialect: str) -> exp.Expr:
    """Return a rendered query as Pinot's planner would rewrite it."""
    select = sqlglot.parse(sql, read={"pinot": None}.get(dialect, dialect))[-1]
    assert select is not None
    return select.transform(as_filters)


def no_filter(resolutions: Sequence[Resolution]) -> bool:
    """Whether no number of these questions becomes a filtered one, on any engine."""
    plans = [planned(render(each, dialect), dialect) for each in resolutions for dialect in DIALECTS]
    return bool(plans) and not any(plan.find(exp.Filter) for plan in plans)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [summed, counted, measured, grouped])
def test_no_number_of_a_group_depends_on_a_filter(kind: type[Iterator[Resolution]]) -> None:
    """A filtered sum is NULL where no row passes, and then one member's value decides about the whole answer."""
    assert no_filter([*kind()])


def test_a_group_in_which_nobody_has_a_value_sums_to_zero() -> None:
    """Also after what Pinot's planner makes of the query; the members are counted all the same."""
    own = sums.policy(whole=sums.WHOLES[3], number=sums.NUMBERS[3])
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, whole BIGINT, number DOUBLE)")
        store(connection, "t", [sums.Row("ada", "a", 7, 2.0), sums.Row("eve", "g", None, None)])
        for measure in Measure:
            sql = render(resolve(sums.asked("number", "whole", measure=measure), own, now=NOW), "duckdb")
            rows = connection.execute(planned(sql, "duckdb").sql("duckdb")).fetchall()
            assert rows == connection.execute(sql).fetchall()
            assert [row for row in rows if row[0] == "g"] == [("g", GRID, 0, 0, 0, 0, 0, 0)]


def test_an_element_that_is_nobodys_first_is_the_first_of_nobody() -> None:
    """The one member has two elements; the second is the first of 0 members, and not of NULL."""
    policy = parse_policy(typically(3, COUNTED % "contributions: {bound: in_query, units: 20}"))
    sql = render(resolve(HistogramQuery("t", ("flag",), Measure.DISTINCT_MEMBERS), policy, now=NOW), "duckdb")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, flag BOOLEAN)")
        store(connection, "t", [("ada", "a", True), ("ada", "a", False)])
        rows = connection.execute(planned(sql, "duckdb").sql("duckdb")).fetchall()
    assert sorted(row[1:] for row in rows) == [(1, 0), (1, 1)]
