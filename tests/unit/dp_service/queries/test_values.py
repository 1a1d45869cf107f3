"""Value columns of a policy: what is refused, and what a question for sums resolves to."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import pytest

from dp_service.parameters.numbers import Average, Plain
from dp_service.queries.asked_numbers import sum_of
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import PolicyError, RefusedByPolicyError
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.kinds import kind_of, versions
from dp_service.releases.release_ids import release_specification
from dp_service.terms import MechanismName
from tests.support.queries.as_in_plans import carried
from tests.support.queries.sums import NOW, asked, policy

POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {bound: in_query, units: 10, sums: {max_members: 1000, max_rows: 100000}}
    measures: {distinct_members: true}
    columns:
      member: {type: string}
      text: {type: string, group_by: true, typical: 2}
      whole: {type: int64, filter: [in]}
    values:
      number: {type: decimal, quantum: '0.01', lower: 0, upper: 20, row_lower: '-1.5', row_upper: '5.5'}
"""
NUMBER = "{type: decimal, quantum: '0.01', lower: 0, upper: 20, row_lower: '-1.5', row_upper: '5.5'}"
SUMS = ", sums: {max_members: 1000, max_rows: 100000}"


def test_bounds_are_whole_numbers_of_the_quantum() -> None:
    """What is not stated of rows follows from the bounds of totals, and 0."""
    (number,) = parse_policy(POLICY).table("t").values
    assert (number.bounds.rows.low, number.bounds.rows.high) == (-150, 550)
    assert (number.bounds.totals.low, number.bounds.totals.high) == (0, 2000)
    other = POLICY.replace(NUMBER, "{type: int64, quantum: 5, lower: 10, upper: 20}")
    (whole,) = parse_policy(other).table("t").values
    assert (whole.bounds.rows.low, whole.bounds.rows.high) == (0, 4)
    assert (whole.bounds.totals.low, whole.bounds.totals.high) == (2, 4)
    assert whole.null_value == -(2**63)


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("lower: 0, upper: 20", "lower: 20, upper: 20", "number.upper", "expected more than lower"),
        ("row_upper: '5.5'", "row_upper: -2", "number.row_upper", "expected more than row_lower"),
        ("upper: 20,", "upper: '20.005',", "number.upper", "a multiple of the quantum, 0.01"),
        ("quantum: '0.01'", "quantum: '0.03'", "number.quantum", "one divided by a whole number"),
        ("type: decimal", "type: int64", "number.quantum", "a whole number for an int64 column"),
        ("upper: 20,", "upper: '1e15',", "number.upper", "from -2^50 to 2^50"),
        ("row_upper: '5.5'", "row_upper: 5, nulls: keep", "number.null_value", "since NULLs are kept"),
        ("row_upper: '5.5'", "row_upper: '1e12'", "values.number", "sums could reach 2^53"),
        ("upper: 20,", "upper: '1e13',", "values.number", "sums could reach 2^53"),
        ("max_rows: 100000", "max_rows: 90000000001", "sums.max_rows", "less than or equal to 90000000000"),
        ("quantum: '0.01', ", "", "number.quantum", "the step of the column's values"),
        (
            f"{SUMS}}}\n    measures: {{distinct_members: true}}",
            f"{SUMS.replace('1000', '100000000')}}}\n    measures: {{distinct_members: true, rows: 500000}}",
            "number.row_upper",
            "too large to be drawn",
        ),
        (SUMS, "", "contributions.sums", "expected max_members and max_rows"),
        (
            "    values:\n      number: " + NUMBER,
            "",
            "contributions.sums",
            "expected values as well",
        ),
        (
            "measures: {distinct_members: true}",
            "measures: {distinct_members: true, rows: 500000}",
            "number.row_upper",
            "too large to be drawn",
        ),
        ("distinct_members: true", "rows: 2", "measures", "expected true"),
        ("      number: {", "      member: {", "values.member", "other than the member column"),
        ("      number: {", "      MEMBER: {", "values.MEMBER", "differ in more than case"),
        ("      number: {", "      Text: {", "values.Text", "differ in more than case"),
        ("      number: {", "      WHOLE: {", "values.WHOLE", "differ in more than case"),
        ("      number: {", "      whole: {", "values.whole", "the type, int64, and the null_value"),
        ("upper: 20,", "upper: '1e10',", "number.upper", "too large to be drawn"),
    ],
)
def test_values_that_cannot_be_summed_privately_are_refused(
    old: str, new: str, key: str, message: str
) -> None:
    """Every fault names its key: bounds, quantum, overflow, and what has to stand elsewhere in the table."""
    assert old in POLICY
    with pytest.raises(PolicyError) as found:
        parse_policy(POLICY.replace(old, new))
    assert any(key in each.key and message in each.message for each in found.value.problems), found.value


def test_columns_beyond_what_one_question_takes_make_no_noise_larger() -> None:
    """A table may have more columns than a question asks for: their parts of the units are those of 16."""

    def widest(columns: int) -> int:
        """Return the largest power of 2 that all of so many columns may have as an upper end."""
        for power in range(50, 0, -1):
            each = f"{{type: int64, lower: 0, upper: {2**power}, row_lower: 0, row_upper: 1}}"
            values = "".join(f"\n      n{place}: {each}" for place in range(columns))
            with suppress(PolicyError):
                parse_policy(POLICY.replace("\n      number: " + NUMBER.rstrip(), values))
                return power
        raise AssertionError(columns)

    assert widest(1) > widest(16) == widest(60)


@pytest.mark.parametrize("ends", ["lower: 0, upper: 20", "lower: 0, upper: 1", "lower: -10, upper: 10"])
@pytest.mark.parametrize("number", ["SUM(number)", "AVG(number)"])
def test_every_number_over_rows_of_a_policy_that_loads_can_be_drawn(ends: str, number: str) -> None:
    """Steps of averages are finer than those of values, and sums of few steps are on the grid of counts."""
    few = "type: decimal, quantum: 1, row_lower: 0, row_upper: 1"
    text = POLICY.replace(NUMBER, f"{{{few}, {ends}}}")

    def accepted(power: int) -> bool:
        with suppress(PolicyError):
            parse_policy(rows(power))
            return True
        return False

    def rows(power: int) -> str:
        return text.replace("distinct_members: true", f"distinct_members: true, rows: {2**power}")

    most = max(filter(accepted, range(19)))
    assert most < 18
    under = parse_policy(rows(most))
    for sql in (f"SELECT COUNT(*), {number} FROM t", f"SELECT text, COUNT(*), {number} FROM t GROUP BY text"):
        assert resolve(parse_sql(sql, under), under, now=NOW).parameters.sums is not None


def test_rows_of_a_column_stand_in_place_of_the_tables_for_its_noise() -> None:
    """A policy of many rows a member sums columns of which few rows count."""
    text = POLICY.replace("distinct_members: true", "distinct_members: true, rows: 500000")
    with pytest.raises(PolicyError, match="too large to be drawn"):
        parse_policy(text)
    parse_policy(text.replace(NUMBER, NUMBER.replace("}", ", rows: 2}")))


def test_values_without_bounded_contributions_are_refused() -> None:
    """Nothing bounds what a member adds."""
    text = POLICY.replace(f"    contributions: {{bound: in_query, units: 10{SUMS}}}\n", "")
    with pytest.raises(PolicyError, match="expected contributions as well"):
        parse_policy(text)


def resolved(sql: str) -> Resolution:
    """Return what a question in SQL resolves to under two value columns."""
    under = policy()
    return resolve(parse_sql(sql, under), under, now=NOW)


SQL = (
    "SELECT text, COUNT(DISTINCT member), {} FROM (SELECT member, text, SUM(number) AS number, SUM(whole) AS whole "
    "FROM t GROUP BY member, text) GROUP BY text"
)


def test_the_order_of_numbers_changes_neither_question_nor_release() -> None:
    """SUM and AVG in any order are one release. One of them alone, or another column, is another one."""
    texts = ["SUM(number), AVG(number) AS mean", "AVG(number), SUM(number)", "SUM(number)", "AVG(number)"]
    asked_ = [resolved(SQL.format(text)) for text in (*texts, "SUM(number), SUM(whole)")]
    first, second, *others = (
        release_specification(
            canonical_bytes(each.query), each.parameters, drawn_by=versions(each.parameters)
        )
        for each in asked_
    )
    assert first == second
    assert len({first, *others}) == 4
    sums = asked_[1].parameters.sums
    assert sums is not None
    assert sorted(each.form.parts[0] for each in sums.asked) == [0, 1]
    assert [type(each.form) for each in sums.asked] == [Average, Plain]


def test_shares_add_up_to_the_units() -> None:
    """Counts take half, and columns the rest in equal parts."""
    summed = replace(asked("number"), aggregates=(sum_of("number"), sum_of("whole")))
    resolution = resolve(summed, policy(), now=NOW)
    mechanism, sums = kind_of(resolution.parameters).mechanism, resolution.parameters.sums
    assert resolution.parameters.mechanism is MechanismName.BOUND_MOMENTS
    assert sums is not None
    assert [(each.name, each.share) for each in sums.columns] == [
        ("number", Fraction(1, 4)),
        ("whole", Fraction(1, 4)),
    ]
    assert mechanism.share + sum(each.share for each in mechanism.columns) == 1


def test_every_bound_is_part_of_the_question() -> None:
    """What changes a member's total changes the release: other clamps share no noise with these."""
    texts = [
        "{type: int64, lower: 0, upper: 10}",
        "{type: int64, lower: 0, upper: 11, row_upper: 10}",
        "{type: int64, lower: -1, upper: 10, row_lower: 0}",
        "{type: int64, lower: 0, upper: 10, row_upper: 9}",
        "{type: int64, lower: 0, upper: 10, null_value: 5}",
        "{type: int64, lower: 0, upper: 10, null_value: 5, nulls: keep}",
        "{type: int64, lower: 0, upper: 10, quantum: 2}",
        "{type: decimal, quantum: 1, lower: 0, upper: 10}",
    ]
    asked_ = [resolve(asked("whole"), policy(whole=text), now=NOW).query for text in texts]
    assert len(set(map(canonical_bytes, asked_))) == len(texts)


def test_parameters_of_sums_survive_a_plan() -> None:
    """A plan carries every parameter from translation to noise."""
    parameters = resolve(asked("number", "whole"), policy(), now=NOW).parameters
    assert carried(parameters) == parameters


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT text, COUNT(DISTINCT member) FROM t WHERE number > 50 GROUP BY text",
        "SELECT number, COUNT(DISTINCT member) FROM t GROUP BY number",
    ],
)
def test_a_value_column_is_refused_as_one(sql: str) -> None:
    """It is listed, so a guess at another column would lead astray."""
    with pytest.raises(
        RefusedByPolicyError, match=r"number is a value column of the table t: .* neither grouped by nor"
    ):
        resolved(sql)


def test_a_condition_on_a_value_column_is_refused_with_bins_that_are_accepted() -> None:
    """Whatever the condition is, its literal is not repeated; the bins are those between the column's bounds."""
    stated = parse_policy(POLICY)
    with pytest.raises(RefusedByPolicyError) as refused:
        parse_sql("SELECT COUNT(DISTINCT member) FROM t WHERE number < -77", stated)
    text, _, advice = str(refused.value).splitlines()[0].partition("instead: ")
    assert advice == (
        "SELECT WIDTH_BUCKET(number, -1.5, 5.5, 8), COUNT(DISTINCT member) FROM t "
        "GROUP BY WIDTH_BUCKET(number, -1.5, 5.5, 8)"
    )
    assert "77" not in text
    domain = resolve(parse_sql(advice, stated), stated, now=NOW).parameters.domain
    assert domain is not None
    assert len(domain) == 10
