"""Questions by buckets of time: which buckets they see, what they mean, and what is refused."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.elements import date_of
from dp_service.queries.errors import PolicyError, QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In, NotIn, TimeRange
from dp_service.queries.functions.buckets import Truncated
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds.views import ExpectedAccuracy
from dp_service.releases.saying import of_question
from dp_service.terms import MechanismName
from tests.support.typical import typically

NOW = int(datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC).timestamp())
BOUNDED = "contributions: {bound: in_query, units: 20}"
SUMMED = f"{BOUNDED[:-1]}, sums: {{max_members: 1000, max_rows: 10000}}}}"
BUCKET = "DATE_TRUNC('month', day)"
MONTHS = f"SELECT {BUCKET} AS m, COUNT(DISTINCT member) FROM t WHERE {{}} GROUP BY {BUCKET}"
YEAR = "day >= '2024-01-15' AND day < '2025-01-01'"


def policy(
    time: str = "column: day, type: date, buckets: [day, month, year]",
    more: str = BOUNDED,
    *,
    events: str = "clipped",
    column: str = "",
) -> Policy:
    """Return a policy with buckets."""
    text = f"""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: member
    time: {{{time}}}
    {more}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: {events}}}}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, domain: [a, b], filter: [in]}}
      {column}
"""
    return parse_policy(typically(3, text) if more.startswith((BOUNDED, SUMMED)) else text)


def resolved(text: str, under: Policy | None = None, *, now: int = NOW) -> Resolution:
    """Return a question in SQL as a policy resolves it."""
    found = policy() if under is None else under
    return resolve(parse_sql(text, found), found, now=now)


def first_days(resolution: Resolution) -> list[str]:
    """Return the buckets of a question by buckets alone."""
    assert resolution.parameters.domain is not None
    return [date_of(int(day)).isoformat() for (day,) in resolution.parameters.domain]


def test_the_buckets_are_those_of_the_range() -> None:
    """The first is there although the range begins within it, and the last ends before the end that is left out."""
    found = first_days(resolved(MONTHS.format(YEAR)))
    assert found == [f"2024-{month:02}-01" for month in range(1, 13)]


def test_sql_and_the_structured_form_are_one_question() -> None:
    """A range as a condition or as a range of time; the name of a bucket and the order are no part of it."""
    start, end = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (2024, 2025))
    query = HistogramQuery(
        "t",
        (Truncated("day", BucketLength.MONTH),),
        Measure.DISTINCT_MEMBERS,
        time_range=TimeRange(start, end),
        ranked=True,
    )
    structured = resolve(query, policy(), now=NOW)
    texts = [
        MONTHS.format("day BETWEEN '2024-01-01' AND '2024-12-31'"),
        MONTHS.format("day >= '2024-01-01' AND day < '2025-01-01'") + " ORDER BY m LIMIT 3",
        MONTHS.format("day >= '2024-01-01' AND day < '2025-01-01'") + " HAVING COUNT(DISTINCT member) > 9",
    ]
    for text in texts:
        found = resolved(text)
        assert canonical_bytes(found.query) == canonical_bytes(structured.query)
        assert found.parameters.domain == structured.parameters.domain


def test_other_lengths_zones_and_columns_are_other_questions() -> None:
    """As the question by the days themselves is, though it has no more rows."""
    zones = [
        f"column: day, type: timestamp, zone: {zone}, buckets: [day, month]" for zone in ("UTC", "Asia/Tokyo")
    ]
    # In both zones the same timestamps.
    range_of = "day >= TIMESTAMP '2024-01-01 00:00:00Z' AND day < TIMESTAMP '2024-02-01 00:00:00Z'"
    days = MONTHS.replace("'month'", "'day'").format(range_of)
    found = {
        canonical_bytes(resolved(text, policy(zone)).query)
        for zone in zones
        for text in (days, MONTHS.format(range_of))
    }
    assert len(found) == 4
    plain = policy(column="day: {type: date, group_by: true}")
    by_day = f"SELECT day, COUNT(DISTINCT member) FROM t WHERE {YEAR} GROUP BY day"
    assert canonical_bytes(resolved(by_day, plain).query) != canonical_bytes(
        resolved(MONTHS.replace("'month'", "'day'").format(YEAR), plain).query
    )


def test_a_bucket_without_an_allowed_day_is_none() -> None:
    """It could only show its noise."""
    found = first_days(
        resolved(MONTHS.format("day IN ('2024-01-31', '2024-03-01', '2024-03-02')"), column_of_days())
    )
    assert found == ["2024-01-01", "2024-03-01"]


def column_of_days() -> Policy:
    """Return a policy that lets questions list days."""
    return policy(column="day: {type: date, filter: [in, range]}")


def test_closed_periods_end_a_series() -> None:
    """The question needs no end of its own, and a month that is not over has no days yet."""
    under = policy("column: day, type: date, refresh: month, buckets: [month]")
    assert first_days(resolved(MONTHS.format("day >= '2026-08-15'"), under)) == [
        "2026-08-01",
        "2026-09-01",
        "2026-10-01",
    ]


@pytest.mark.parametrize(
    ("buckets", "others", "expected", "most"),
    [
        ("[month]", "", 3, None),
        ("[month]", ", text", 6, None),
        ("{month: 7}", "", 7, None),
        ("{month: 7}", ", text", 14, None),
        ("{month: 99}", "", 12, 12),
        ("{day: 2, month: 7}", "", 7, None),
    ],
)
def test_a_member_counts_in_as_many_buckets_as_the_policy_says(
    buckets: str, others: str, expected: int, most: int | None
) -> None:
    """Each length has a number of its own, and in no question are there more buckets than there are.

    A member that is weighted may be in any number of them.
    """
    under = policy(f"column: day, type: date, buckets: {buckets}")
    columns = f"DATE_TRUNC('month', day){others}"
    text = f"SELECT {columns}, COUNT(DISTINCT member) FROM t WHERE {YEAR} GROUP BY {columns}"
    found = resolved(text, under).parameters
    assert found.contributions is not None
    assert (found.contributions.typical, found.delta_l0) == (expected, most)


def test_without_a_bound_a_member_counts_in_all_buckets() -> None:
    """KnownLap: noise for a member in every bucket, and no call."""
    found = resolved(MONTHS.format(YEAR), policy(more="")).parameters
    assert (found.mechanism, found.delta_l0) == (MechanismName.KNOWN_LAP, 12)
    few = policy(more="", column="day: {type: date, group_by: true, delta: 5}")
    assert resolved(MONTHS.format(YEAR), few).parameters.delta_l0 == 5


def test_the_list_is_in_the_order_of_time_unless_a_number_decides() -> None:
    """Without ORDER BY, or by the bucket, by its position or by all columns; not by a count."""
    both = MONTHS.replace("AS m,", "AS m, text,").format(YEAR) + ", text"
    for text in (
        MONTHS.format(YEAR),
        MONTHS.format(YEAR) + " ORDER BY m",
        MONTHS.format(YEAR) + " ORDER BY 1 ASC LIMIT 4",
        both + " ORDER BY DATE_TRUNC('MONTH', day), text",
    ):
        listing = resolved(text).parameters.listing
        assert listing is not None
        assert listing.in_element_order
    assert resolved(MONTHS.format(YEAR) + " ORDER BY 2 DESC").parameters.listing is None
    assert resolved(both + " ORDER BY COUNT(DISTINCT member) DESC, m LIMIT 2").parameters.listing is None


USUAL = "column: day, type: date, from: 2024-01-01, to: 2025-01-01, buckets: [month], parts: [weekday]"


@pytest.mark.parametrize(
    ("condition", "same", "statement"),
    [
        ("1 = 1", "day >= '2024-01-01' AND day < '2025-01-01'", "from 2024-01-01, before 2025-01-01"),
        ("day < '2024-06-01'", "day >= '2024-01-01' AND day < '2024-06-01'", "from 2024-01-01"),
        ("day >= '2024-12-31'", "day BETWEEN '2024-12-31' AND '2024-12-31'", "before 2025-01-01"),
        ("day >= '2020-01-01' AND day < '2021-01-01'", "day BETWEEN '2020-01-01' AND '2020-12-31'", ""),
    ],
)
def test_an_end_that_a_series_leaves_open_is_that_of_the_policy(
    condition: str, same: str, statement: str
) -> None:
    """It is the question that states this end, and what is said of it names what the policy added."""
    under = policy(USUAL)
    found, stated = (resolved(MONTHS.format(each), under) for each in (condition, same))
    assert canonical_bytes(found.query) == canonical_bytes(stated.query)
    assert not stated.usual_range
    said = [
        each.text for each in of_question(found, Cost(1, 0), ExpectedAccuracy()) if each.code == "rows.usual"
    ]
    assert [
        f"As the question leaves an end of the time open, the policy's counts: rows {statement}."
    ] == said or (not said and not statement)


@pytest.mark.parametrize("unit", ["", ", unit: seconds", ", unit: milliseconds", ", unit: microseconds"])
def test_a_time_in_integers_has_the_ends_of_the_policy_too(unit: str) -> None:
    """Though the integer that stands for NULL is none of them, so that the least one is no end; or none is said."""
    times = USUAL.replace("type: date", f"type: timestamp{unit}, zone: Europe/Berlin")
    conditions = ("1 = 1", "day >= '2024-01-01' AND day < '2025-01-01'")
    found, stated = (resolved(MONTHS.format(each), policy(times)) for each in conditions)
    assert canonical_bytes(found.query) == canonical_bytes(stated.query)
    with pytest.raises(QuestionError, match="both ends"):
        resolved(MONTHS.format("1 = 1"), policy(times.replace("from: 2024-01-01, to: 2025-01-01, ", "")))


@pytest.mark.parametrize(
    "condition",
    [
        "day >= '2025-01-01'",
        "day < '2024-01-01'",
        "(day < '2023-01-01' OR day >= '2023-02-01')",
        "(day < '2023-01-01' OR day >= '2023-02-01') AND day >= '2022-01-01'",
    ],
)
def test_a_range_beside_the_usual_one_has_to_state_its_other_end(condition: str) -> None:
    """It is not taken for one that no row can be in."""
    with pytest.raises(QuestionError, match="both ends"):
        resolved(MONTHS.format(condition), policy(USUAL))


def test_only_questions_by_buckets_have_a_usual_range() -> None:
    """Others count all rows, since their answers do not show of which times they are."""
    days = "from 2024-01-01, before 2025-01-01"
    for by, expected in (
        ("text", ""),
        ("EXTRACT(ISODOW FROM day)", ""),
        ("DATE_TRUNC('month', MIN(day))", days),
        ("DATE_DIFF('month', MIN(day), day)", days),
    ):
        under = policy(USUAL)
        assert (
            expected == resolved(f"SELECT {by}, COUNT(DISTINCT member) FROM t GROUP BY 1", under).usual_range
        )


@pytest.mark.parametrize(
    ("columns", "is_said"),
    [
        ("DATE_TRUNC('month', MIN(day))", False),
        ("text, DATE_TRUNC('month', MIN(day))", True),
        ("text", False),
    ],
)
def test_of_which_rows_first_times_are_is_said_beside_other_columns(columns: str, *, is_said: bool) -> None:
    """A member has one in each of their values."""
    keys = ", ".join(map(str, range(1, columns.count("text, ") + 2)))
    found = resolved(f"SELECT {columns}, COUNT(DISTINCT member) FROM t GROUP BY {keys}", policy(USUAL))
    codes = [each.code for each in of_question(found, Cost(1, 0), ExpectedAccuracy())]
    assert ("rows.of_members" in codes) is is_said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("to: 2025-01-01", "to: 2024-01-01", r"time\.to: expected a day after from"),
        ("to: 2025-01-01", "to: 2025-01-01, refresh: day", r"time\.to: expected none beside refresh"),
        ("to: 2025-01-01", "to: 12", r"time\.to: expected a day as YYYY-MM-DD"),
        ("from: 2024-01-01", "from: 2024-02-30", r"time\.from: expected a day of the calendar"),
        ("buckets: [month], ", "", r"time\.from: expected buckets as well"),
    ],
)
def test_a_usual_range_that_is_none_is_refused(old: str, new: str, message: str) -> None:
    """By key."""
    with pytest.raises(PolicyError, match=message):
        policy(USUAL.replace(old, new))


@pytest.mark.parametrize(
    ("text", "under", "reason"),
    [
        (MONTHS.format("text = 'a'"), policy(), "range of time with both ends, .* day >= '.*' AND day < '"),
        (MONTHS.format("day >= '2024-01-01'"), policy(), "range of time with both ends"),
        (MONTHS.format("day < '2024-01-01'"), policy(), "range of time with both ends"),
        (MONTHS.format("day >= '2024-01-01' AND day < '2024-01-01'"), policy(), "contradict"),
        (
            MONTHS.format("day >= '1700-01-01' AND day < '2024-01-01'").replace("'month'", "'day'"),
            policy(),
            "at most 10000 buckets",
        ),
        (
            MONTHS.replace("'month'", "'quarter'").format(YEAR),
            policy(),
            "no.* offer buckets of a quarter; .* day, month, year",
        ),
        (MONTHS.format(YEAR), policy("column: day, type: date", ""), "it offers none"),
        (
            MONTHS.format(YEAR).replace("'month', day", "'month', text"),
            policy(),
            "DATE_TRUNC and EXTRACT of the time column day",
        ),
        (
            MONTHS.format(YEAR).replace("DISTINCT member", "*"),
            policy(more="", events="assumed"),
            "bounds nothing that is computed",
        ),
        (MONTHS.format(YEAR) + " ORDER BY m DESC", policy(), "ascending"),
        (
            MONTHS.replace("SELECT ", "SELECT text, ").format(YEAR) + ", text ORDER BY m",
            policy(),
            "order of SELECT",
        ),
        (
            MONTHS.format("day >= '9990-01-01' AND day < '9999-12-31'"),
            policy(),
            "between the years|both ends",
        ),
        (MONTHS.format("day > 'x'"), policy(), "expected days"),
    ],
)
def test_what_has_no_buckets_is_refused_by_name(text: str, under: Policy, reason: str) -> None:
    """A range without an end, of no bucket or of too many; other lengths, columns and orders."""
    with pytest.raises((QuestionError, RefusedByPolicyError), match=reason):
        resolved(text, under)


def test_two_conditions_beside_buckets_are_refused_alike_in_either_order() -> None:
    """Which buckets there are follows from the conditions, so these are looked at before all else."""
    found = policy()
    question = parse_sql(MONTHS.format(YEAR), found)
    # As a structured question: SQL refuses the first of them while it is read.
    conditions = (In("member", ("x",)), NotIn("text", ("a",)))
    messages = set()
    for filters in (conditions, conditions[::-1]):
        with pytest.raises(RefusedByPolicyError, match="member: ") as refusal:
            resolve(replace(question, filters=filters), found, now=NOW)
        messages.add(str(refusal.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("time", "more", "column", "reason"),
    [
        ("column: day, type: timestamp, buckets: [day]", BOUNDED, "", "time.zone"),
        ("column: day, type: int64, unit: seconds, buckets: [day]", BOUNDED, "", "time.zone"),
        ("column: day, type: date, buckets: [day, day]", "", "", "each of them once"),
        ("column: day, type: date, buckets: [hour]", BOUNDED, "", "time.buckets"),
        (
            "column: day, type: date, buckets: [day]",
            "contributions: {bound: prepared, delta: 3, units: 20, elements: [text], period: all}",
            "",
            "none beside bound: prepared",
        ),
        (
            "column: day, type: date, buckets: {day: 3}",
            "contributions: {bound: assumed, delta: 3, units: 20}",
            "",
            "only beside contributions with bound: in_query",
        ),
        (
            "column: day, type: date, buckets: [day]",
            "contributions: {bound: in_query, units: 21}",
            "",
            "time.buckets.day: expected how many",
        ),
        (
            "column: day, type: date, buckets: [day]",
            BOUNDED,
            "day: {type: date, nulls: keep, null_value: 1900-01-01}",
            "NULLs are kept",
        ),
    ],
)
def test_a_policy_whose_buckets_mean_nothing_is_refused(
    time: str, more: str, column: str, reason: str
) -> None:
    """Each fault names its key."""
    with pytest.raises(PolicyError, match=reason):
        policy(time, more, column=column)


@pytest.mark.parametrize(
    "text",
    [
        # SQLAlchemy, Apache Superset and Apache Pinot.
        "SELECT date_trunc('month', t.day) AS m, count(DISTINCT t.member) AS n FROM t WHERE t.day >= '2024-01-01' "
        "AND t.day < '2024-04-01' GROUP BY date_trunc('month', t.day)",
        "SELECT DATE_TRUNC('MONTH', day) AS day, COUNT(DISTINCT member) AS members FROM t WHERE day >= '2024-01-01' "
        "AND day < '2024-04-01' GROUP BY DATE_TRUNC('MONTH', day) ORDER BY members DESC LIMIT 10000",
        'SELECT DATETRUNC(\'MONTH\', "day") AS "the month", DISTINCTCOUNT(member) FROM t WHERE day BETWEEN '
        "'2024-01-01' AND '2024-03-31' GROUP BY \"the month\" ORDER BY 1",
    ],
)
def test_what_tools_write_is_one_question(text: str) -> None:
    """In any case, with names of tables, quotes and aliases."""
    plain = resolved(MONTHS.format("day >= '2024-01-01' AND day < '2024-04-01'"))
    assert canonical_bytes(resolved(text).query) == canonical_bytes(plain.query)


VALUES = "values: {amount: {type: int64, lower: 0, upper: 10}, more: {type: int64, lower: 0, upper: 10}}"


def test_a_series_with_too_many_sums_is_refused_and_never_cut() -> None:
    """250 days with four numbers each fit into a result, and a year does not, unless the question asks for a part."""
    under = policy(more=f"{SUMMED}\n    {VALUES}")
    columns = "member, DATE_TRUNC('day', day) AS d, SUM(amount) AS a, SUM(more) AS b"
    days = "SELECT d, COUNT(*), SUM(a), AVG(a), SUM(b), AVG(b) "
    days += f"FROM (SELECT {columns} FROM t WHERE {YEAR} GROUP BY member, d) GROUP BY d"
    with pytest.raises(
        QuestionError, match=r"at most 250 elements in a series, got 352: .* Shorten the range"
    ):
        resolved(days, under)
    assert resolved(f"{days} LIMIT 250", under).parameters.k == 250
    assert resolved(days.replace(", SUM(b), AVG(b)", ""), under).parameters.k is None
    ranked = resolved(f"{days} ORDER BY COUNT(DISTINCT member) DESC", under)
    assert (ranked.parameters.k, ranked.requested_k) == (250, 352)
