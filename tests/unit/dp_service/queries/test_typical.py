"""Delta of a question follows from what its columns say, from its conditions and from how many elements there are."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from dp_service.queries.canonical_columns import QueryValue
from dp_service.queries.errors import PolicyError
from dp_service.queries.lookups import hash_of
from dp_service.queries.policy import parse_policy, read_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.tables import Policy
from dp_service.queries.typical import Values, elements_of_member
from dp_service.values.bounds import Clamp

TOPICS = b"article,topic\n1,health\n2,politics\n3,health\n4,sports\n"
SUBJECTS = TOPICS.replace(b"topic", b"subject")
POLICY = f"""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: member
    time: {{column: day, type: date, buckets: {{week: 8, month: 4}}, parts: {{weekday: 3, month: 5}}}}
    contributions: {{bound: in_query, units: 20, sums: {{max_members: 1000, max_rows: 1000}}}}
    measures: {{distinct_members: true, rows: 100}}
    columns:
      member: {{type: string}}
      page: {{type: string, group_by: true, filter: [in, not_in], typical: 32}}
      land: {{type: string, group_by: true, filter: [in], typical: 2, domain: [AT, CH, DE]}}
      kind: {{type: string, group_by: true, typical: 9, domain: [a, b, c, d]}}
      stars: {{type: int64, group_by: true, filter: [in, range], typical: 6}}
      article: {{type: int64, group_by: true, typical: 7}}
      topic: {{type: string, group_by: true,
              lookup: {{column: article, file: topics.csv, hash: '{hash_of(TOPICS)}'}}}}
      subject: {{type: string, group_by: true, typical: 2,
                lookup: {{column: article, file: subjects.csv, hash: '{hash_of(SUBJECTS)}'}}}}
    values:
      paid: {{type: int64, lower: 0, upper: 100, typical: 3, rows: 5,
             grid: {{scale: linear, from: 0, to: 100, cells: 50, rows: 7}}}}
      owed: {{type: int64, lower: 0, upper: 100}}
"""
YEAR = "day >= '2024-01-01' AND day < '2025-01-01'"
QUARTER = "day >= '2024-01-01' AND day < '2024-04-01'"
DELTAS = {
    "nothing": ("", "", 1),
    "a column": ("page", "", 32),
    "two columns": ("page, land", "", 64),
    "three": ("page, land, stars", "", 384),
    "a domain that is smaller": ("kind", "", 4),
    "two domains": ("kind, land", "", 8),
    "pinned": ("page", "page = 'a'", 1),
    "a few values": ("page", "page IN ('a', 'b', 'c')", 3),
    "other values": ("page", "page <> 'a'", 32),
    "a range": ("stars", "stars BETWEEN 2 AND 4", 3),
    "a part of a domain": ("land", "land = 'AT'", 1),
    "pinned beside another": ("page, stars", "page = 'a'", 6),
    "either of two": ("page", "page = 'a' OR stars = 1", 32),
    "weeks": ("DATE_TRUNC('week', day)", YEAR, 8),
    "months": ("DATE_TRUNC('month', day)", YEAR, 4),
    "fewer months than typical": ("DATE_TRUNC('month', day)", QUARTER, 3),
    "a part of time": ("EXTRACT(ISODOW FROM day)", "", 3),
    "two parts of time": ("EXTRACT(ISODOW FROM day), EXTRACT(MONTH FROM day)", "", 15),
    "months by a column": ("DATE_TRUNC('month', day), land", YEAR, 8),
    "what is looked up": ("topic", "", 3),
    "what is looked up and has its own": ("subject", "", 2),
    "a part of a text": ("LOWER(page)", "", 32),
    "bins": ("FLOOR(paid / 10) * 10", "", 3),
    "all bins": ("WIDTH_BUCKET(owed, 0, 100, 4)", "", 6),
    "whole bins": ("WIDTH_BUCKET(stars, 0, 10, 2)", "", 4),
    "first times": ("DATE_TRUNC('month', MIN(day))", QUARTER, 1),
    "first times and what is later": ("RETENTION", QUARTER, 3),
}


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    """Return the policy, beside its lookups."""
    (tmp_path / "topics.csv").write_bytes(TOPICS)
    (tmp_path / "subjects.csv").write_bytes(SUBJECTS)
    return read_policy(POLICY.encode(), str(tmp_path / "policy.yaml")).policy


@pytest.mark.parametrize(("by", "where", "expected"), DELTAS.values(), ids=list(DELTAS))
def test_delta_is_the_product_of_what_is_typical_within_what_is_allowed(
    policy: Policy, by: str, where: str, expected: int
) -> None:
    """A column counts at most as many values as the question allows; a member has one first time."""
    later = "DATE_TRUNC('month', MIN(day)), DATE_DIFF('month', MIN(day), day)"
    columns = later if by == "RETENTION" else by
    text = f"SELECT {columns}{', ' if columns else ''}COUNT(DISTINCT member) FROM t"  # noqa: S608 - texts of this file
    text += f" WHERE {where}" if where else ""
    text += f" GROUP BY {columns}" if columns else ""
    found = resolve(parse_sql(text, policy), policy, now=0).parameters.contributions
    assert found is not None
    assert found.typical == expected


TAUS = {
    "nothing": ("", "", 100),
    "a column": ("page", "", 4),
    "two columns": ("page, land", "", 2),
    "more elements than rows": ("page, land, stars", "", 1),
    "a value of a list": ("page", "page = 'a'", 4),
    "some values of a list": ("page", "page IN ('a', 'b', 'c')", 4),
    "a value alone": ("", "page = 'a'", 4),
    "some values together": ("", "page IN ('a', 'b', 'c')", 10),
    "more values than typical": ("", "land IN ('AT', 'CH', 'DE')", 100),
    "all but one value": ("", "page <> 'a'", 100),
    "a value beside a list": ("land", "page = 'a'", 2),
    "a domain that is smaller": ("kind", "", 25),
    "weeks": ("DATE_TRUNC('week', day)", YEAR, 13),
    "fewer weeks": ("DATE_TRUNC('week', day)", "day >= '2024-01-01' AND day < '2024-01-15'", 13),
    "a week alone": ("", "day >= '2024-01-01' AND day < '2024-01-08'", 13),
    "a day": ("", "day >= '2024-01-01' AND day < '2024-01-02'", 13),
    "two months": ("", "day >= '2024-01-01' AND day < '2024-03-01'", 50),
    "a year": ("", YEAR, 100),
    "a month of what began before": ("", "day < '2024-02-01'", 100),
    "a month by weekdays": ("EXTRACT(ISODOW FROM day)", "day >= '2024-01-01' AND day < '2024-02-01'", 34),
}


@pytest.mark.parametrize(("by", "where", "expected"), TAUS.values(), ids=list(TAUS))
def test_the_rows_of_a_member_are_shared_by_the_elements_that_it_typically_has(
    policy: Policy, by: str, where: str, expected: int
) -> None:
    """Whoever has more rows counts with less of them; the query clips at the tau of the noise."""
    text = f"SELECT {by}{', ' if by else ''}COUNT(*) FROM t"  # noqa: S608 - texts of this file
    text += f" WHERE {where}" if where else ""
    text += f" GROUP BY {by}" if by else ""
    found = resolve(parse_sql(text, policy), policy, now=0)
    assert found.parameters.tau == found.query.clip == expected


VALUES = {
    "alone": ("AVG(paid) FROM t", [5]),
    "by a column": ("land, AVG(paid) FROM t GROUP BY land", [3]),
    "beside rows": ("COUNT(*), AVG(paid) FROM t", [5]),
    "beside members": ("COUNT(DISTINCT member), AVG(paid) FROM t", [5]),
    "of which a column says nothing": ("AVG(owed) FROM t", [100]),
    "of both": ("AVG(paid), AVG(owed) FROM t", [100, 5]),
    "beside a condition": ("land, AVG(paid) FROM t GROUP BY land HAVING COUNT(*) > 3", [3]),
}


@pytest.mark.parametrize(("asked", "expected"), VALUES.values(), ids=list(VALUES))
def test_averages_have_the_rows_of_their_columns(policy: Policy, asked: str, expected: list[int]) -> None:
    """Few rows have a value, so fewer rows of a member count, with less noise; also beside a count of all rows."""
    found = resolve(parse_sql(f"SELECT {asked}", policy), policy, now=0)
    assert [each.rows for each in found.query.values if isinstance(each, QueryValue)] == expected
    assert found.parameters.sums is not None
    assert [each.rows for each in found.parameters.sums.columns] == expected


SUMS = {
    "what its rows reach": (20, "", 100),
    "in one of two countries": (20, "land", 60),
    "the total that is stated": (100, "", 100),
}


@pytest.mark.parametrize(("row_upper", "by", "expected"), SUMS.values(), ids=list(SUMS))
def test_a_sum_counts_a_total_in_full_that_the_rows_of_its_column_reach(
    policy: Policy, row_upper: int, by: str, expected: int
) -> None:
    """Of 5 rows, of which an element has a part; and no more than the total that the policy states."""
    (paid,) = (each for each in policy.table("t").values if each.name == "paid")
    bounds = replace(paid.bounds, rows=Clamp(0, row_upper))
    table = policy.table("t")
    values = tuple(
        each.model_copy(update={"bounds": bounds}) if each.name == "paid" else each for each in table.values
    )
    changed = replace(policy, tables=(table.model_copy(update={"values": values}),))
    text = f"SELECT {by}{', ' if by else ''}COUNT(*), SUM(paid) FROM t{' GROUP BY land' if by else ''}"  # noqa: S608
    found = resolve(parse_sql(text, changed), changed, now=0)
    (summed,) = found.query.values
    assert (summed.bounds.totals.low, summed.bounds.totals.high) == (0, expected)


def test_a_median_has_the_rows_of_its_column(policy: Policy) -> None:
    """It is of as many rows of a member as the policy says."""
    found = resolve(parse_sql("SELECT PERCENTILE(paid, 50) FROM t", policy), policy, now=0)
    assert found.query.clip == 7


def test_rows_beside_a_count_of_members_have_the_tau_of_rows(policy: Policy) -> None:
    """As a number of its own, with the range of what one member adds."""
    text = "SELECT page, COUNT(DISTINCT member), COUNT(*) FROM t GROUP BY page"
    found = resolve(parse_sql(text, policy), policy, now=0)
    assert found.parameters.tau == 1
    assert [each.bounds.totals.high for each in found.query.values] == [4]


@pytest.mark.parametrize("typical", list(itertools.product([1, 2, 3], [1, 2, 4])))
@pytest.mark.parametrize("sizes", list(itertools.product([1, 2, 3], [1, 3])))
def test_delta_is_the_most_elements_of_a_member_with_typical_values(
    typical: tuple[int, int], sizes: tuple[int, int]
) -> None:
    """Counted over every member that has rows in all combinations of so many values."""
    columns = [range(min(each)) for each in zip(typical, sizes, strict=True)]
    most = len(set(itertools.product(*columns)))
    stated = [Values(*each) for each in zip(typical, sizes, strict=True)]
    assert elements_of_member(stated) == most
    assert elements_of_member([*stated, Values(None, 5)]) is None


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (", typical: 32", "", "tables.t.columns.page.typical"),
        ("{week: 8, month: 4}", "[week, month]", "tables.t.time.buckets.week:"),
        ("weekday: 3", "weekday: null", "tables.t.time.parts.weekday:"),
        ("typical: 32", "typical: 0", "tables.t.columns.page.typical"),
        ("typical: 32", "typical: 3.5", "tables.t.columns.page.typical"),
        ("typical: 32", "typical: .nan", "tables.t.columns.page.typical"),
        ("typical: 32", "typical: true", "tables.t.columns.page.typical"),
        ("typical: 32", "typical: 100001", "tables.t.columns.page.typical"),
        (
            "bound: in_query",
            "bound: in_query, typical: 3",
            "tables.t.contributions.typical: there is no such key",
        ),
        ("week: 8", "week: 0", "tables.t.time.buckets.week"),
        ("typical: 32", "delta: 32", "tables.t.columns.page.delta"),
        ("bound: in_query", "bound: in_query, delta: 3", "tables.t.contributions.delta"),
        ("bound: in_query", "bound: assumed", "tables.t.contributions.delta"),
        ("bound: in_query", "bound: assumed, delta: 3", "tables.t.columns.page.typical"),
        ("rows: 5", "rows: 101", "values.paid.rows: expected at most rows of the measures"),
        ("rows: 7", "rows: 0", "values.paid.grid.rows"),
    ],
)
def test_a_policy_says_what_is_typical_of_each_column(old: str, new: str, key: str) -> None:
    """Missing, impossible, or beside a promise: the error names the key."""
    with pytest.raises(PolicyError) as error:
        parse_policy(POLICY.replace(old, new, 1))
    assert key in str(error.value)


@pytest.mark.parametrize(
    ("block", "measures", "expected"),
    [
        ("", "{rows: 3}", "measures.rows: expected this key only beside contributions"),
        (
            "contributions: {bound: assumed, delta: 3, units: 20}",
            "{rows: 3}",
            "measures.rows: expected this key",
        ),
        (
            "contributions: {bound: in_query, units: 20}",
            "{events: {tau: 1, tau_is: clipped}}",
            "measures.events: expected rows instead",
        ),
        (
            "contributions: {bound: in_query, units: 20}",
            "{rows: 0}",
            "measures.rows: expected a number greater",
        ),
        (
            "contributions: {bound: in_query, units: 20}",
            "{rows: 500001}",
            "measures.rows: expected a number less",
        ),
    ],
)
def test_rows_are_of_members_that_the_query_bounds(block: str, measures: str, expected: str) -> None:
    """Elsewhere a policy says how many rows of a member there are, or count, in one element."""
    with pytest.raises(PolicyError, match=expected):
        parse_policy(
            f"{{epsilon_per: 1, delta: 1e-9, count_noise: gaussian, tables: {{t: {{member: m, measures: {measures}, "
            f"{block + ', ' if block else ''}columns: {{p: {{type: string}}}}}}}}}}"
        )
