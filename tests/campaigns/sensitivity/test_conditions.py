"""Numbers of the rows that meet a condition: a member changes each by no more than was priced, and its wrong forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.canonical_columns import Coordinate
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render, sums, where
from dp_service.queries.render.dialects import Dialect, identifier
from dp_service.queries.resolution import Resolution, resolve, second_look
from dp_service.queries.sql import parse_sql
from tests.support.examples import examples
from tests.support.queries.sums import NOW, ROWS, Row

from .sums import CHARGED, Asked, faults

POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions:
      {{bound: in_query, units: 10, min_count: 1, sums: {{max_members: 1000, max_rows: 100000}}}}
    measures: {{distinct_members: true, rows: {rows}}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, typical: {typical}, filter: [in, not_in]{domain}}}
      whole: {{type: int64, filter: [in, not_in, range]}}
    values:
      whole: {{type: int64, lower: {lower}, upper: 10, row_lower: -4, row_upper: 15}}
      number: {{type: decimal, quantum: '0.25', lower: -10, upper: 10}}
"""
CONDITIONS = (
    "whole > 1",
    "whole <= 1",
    "text <> 'a'",
    "text = 'b' OR whole = 3",
    "whole IS NOT NULL",
    "NOT (whole < 0 AND text LIKE 'a%')",
)
OF_MEMBERS = (
    "COUNT(DISTINCT member) FILTER (WHERE {})",
    "COUNT(*) FILTER (WHERE {})",
    "COUNT(*)",
    "SUM(whole) FILTER (WHERE {})",
    "SUM(CASE WHEN {} THEN number ELSE 0 END)",
    "SUM(whole)",
    "SUM(number) FILTER (WHERE {}) / SUM(number)",
    "SUM(number) - SUM(number) FILTER (WHERE {})",
)
AVERAGES = ("AVG(whole) FILTER (WHERE {})", "AVG(number) FILTER (WHERE {})")
OF_ROWS = (OF_MEMBERS[1], *OF_MEMBERS[3:5], *AVERAGES, *OF_MEMBERS[5:])


def policy(*, typical: int = 2, known: bool = False, lower: int = 5) -> Policy:
    """Return a policy whose values are conditions as well."""
    domain = ", domain: [a, b, z]" if known else ""
    return parse_policy(POLICY.format(typical=typical, rows=2 * typical, domain=domain, lower=lower))


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Draw a question for some numbers with conditions."""
    count, forms = draw(st.sampled_from([("COUNT(DISTINCT member)", OF_MEMBERS), ("COUNT(*)", OF_ROWS)]))
    chosen = draw(st.lists(st.sampled_from(forms), min_size=1, max_size=4, unique=True))
    numbers = [each.format(draw(st.sampled_from(CONDITIONS))) for each in chosen]
    by = draw(st.sampled_from(["text", "text", "", "LEFT(text, 1)", "FLOOR(number / 3) * 3"]))
    selected = [each for each in (by, count, *numbers) if each]
    return f"SELECT {', '.join(selected)} FROM t{f' GROUP BY {by}' if by else ''}"  # noqa: S608


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(
    rows=ROWS,
    sql=statements(),
    typical=st.integers(1, 2),
    known=st.booleans(),
    lower=st.sampled_from([-3, 0, 5]),
)
def test_a_member_changes_numbers_with_conditions_within_the_price(
    asked_of: Asked, *, rows: list[Row], sql: str, typical: int, known: bool, lower: int
) -> None:
    """Members with rows that meet a condition, that do not, and of both; NULL, 2^63, repeated and negative values."""
    under = policy(typical=typical, known=known, lower=lower)
    assert faults(asked_of, parse_sql(sql, under), under, rows) == []


SIZES = (1, 2, 5, 49, 50, 625, 10_000)
MANY = [
    Row(f"m{size}", str(element), (element * size) % 19 - 5, float(element % 23 - 11))
    for size in SIZES
    for element in range(size)
    for _ in range(1 + (element % 7 == 0))
]


def _of_any_size(asked_of: Asked, typical: int, counted: str, looks: int) -> list[str]:
    under = policy(typical=typical, lower=-3)
    numbers = ", ".join(each.format("whole > 1") for each in (OF_MEMBERS if "D" in counted else OF_ROWS)[:4])
    sql = SQL.replace("COUNT(DISTINCT member)", counted).format(numbers)

    def looked_at(resolution: Resolution) -> Resolution:
        names = tuple((str(element),) for element in range(0, 400, 3))
        return resolution if looks == 1 else second_look(resolution, tuple(sorted(names)))

    return faults(asked_of, parse_sql(sql, under), under, MANY, translate=looked_at)


@pytest.mark.slow
@pytest.mark.parametrize("counted", ["COUNT(DISTINCT member)", "COUNT(*)"])
@pytest.mark.parametrize(("typical", "looks"), [(1, 1), (4, 1), (4, 2)])
def test_members_of_any_size_change_numbers_within_the_price(
    asked_of: Asked, typical: int, counted: str, looks: int
) -> None:
    """Counts, filtered counts, sums and averages together, of members of 1 to 10,000 elements."""
    assert _of_any_size(asked_of, typical, counted, looks) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        lambda sql: sql.replace("FLOOR(SQRT(", "CEIL(SQRT("),
        lambda sql: sql.replace('* "gris_weight_2"', "* 100"),
        lambda sql: sql.replace('* "gris_weight_2"', '* "gris_weight"'),
        lambda sql: sql.replace('ABS((CASE WHEN "gris_total_2"', '0 * ABS((CASE WHEN "gris_total_2"'),
    ],
    ids=["rounded up", "values without a weight", "values with the weight of rows", "cells of nothing"],
)
def test_wrong_weights_of_numbers_are_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[str], str]
) -> None:
    """A weight that is too large by one step, or that values do not have."""

    def broken(resolution: Resolution, dialect: str) -> str:
        sql = render(resolution, dialect)
        assert wrong(sql) != sql
        return wrong(sql)

    monkeypatch.setattr("tests.campaigns.sensitivity.sums.render", broken)
    found = _of_any_size(asked_of, 4, "COUNT(*)", 1)
    assert {CHARGED, BEYOND}.intersection(found)


# Ada has a row that meets the condition in each text, and others.
HEAVY = [Row("ada", text, value, float(value)) for text in "abc" for value in (20, 20, 20, -30)]
HEAVY += [Row("bob", "a", 1, 1.0), Row("eve", "b", None, None), Row("eve", "a", 9, 2.0)]
SQL = "SELECT text, COUNT(DISTINCT member), {} FROM t GROUP BY text"
BEYOND = "a member changes a sum by more than its width"


def found_of(asked_of: Asked, number: str, counted: str = "COUNT(DISTINCT member)") -> list[str]:
    """Return what is wrong with one number."""
    under = policy()
    sql = SQL.replace("COUNT(DISTINCT member)", counted).format(number)
    return faults(asked_of, parse_sql(sql, under), under, HEAVY)


@pytest.mark.parametrize(
    ("number", "counted"),
    [(each, "COUNT(DISTINCT member)") for each in OF_MEMBERS] + [(each, "COUNT(*)") for each in AVERAGES],
)
def test_the_true_query_has_no_fault(asked_of: Asked, number: str, counted: str) -> None:
    """Nothing is found of the rows on which every wrong query is."""
    assert found_of(asked_of, number.format("whole > 1"), counted) == []


def unclamped(value: Coordinate, place: int, dialect: Dialect) -> str:
    """Write the number as it is: of a member all rows that meet the condition."""
    return f"2 * {identifier(f'gris_total_{place + 1}', dialect)} - ({value.bounds.totals.centre})"


def every_row(value: Coordinate, place: int, tau: int, dialect: Dialect) -> str:
    """Write the number of all of a member's rows, centred by those that count."""
    total, count = (identifier(name, dialect) for name in (f"gris_total_{place + 1}", "gris_member_count"))
    rows = value.bounds.rows
    return f"2 * {rows.parts} * {total} - ({rows.finer.centre}) * LEAST({count}, {tau})"


@pytest.mark.parametrize("number", [each.format("whole > 1") for each in OF_MEMBERS[:5]])
def test_numbers_without_a_bound_of_their_own_are_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """Ada has three rows that meet the condition: she would move a count of members by 3, and one of rows beyond 2."""
    monkeypatch.setattr(sums, "_of_total", unclamped)
    assert BEYOND in found_of(asked_of, number)


@pytest.mark.parametrize(
    "number", ["COUNT(*) FILTER (WHERE whole > 1)", "AVG(whole) FILTER (WHERE whole > 1)"]
)
def test_a_condition_over_rows_that_were_not_bounded_is_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """Of Ada's four rows two count: more of them may not meet a condition."""
    assert found_of(asked_of, number, "COUNT(*)") == []
    monkeypatch.setattr(sums, "_centred_rows", every_row)
    assert BEYOND in found_of(asked_of, number, "COUNT(*)")


def test_an_average_of_members_without_a_row_is_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eve has no value in b: she must not move the sum by low + high beside an own count without her."""

    def of_everybody(query: CanonicalQuery, dialect: Dialect) -> Iterator[tuple[int, str, str]]:
        for place, number, name in sums.numbers_of_member(query, dialect):
            has_row = sums.at_most(1, f"gris_used_{place + 1}", dialect)
            yield place, number.removesuffix(f" * ({has_row})"), name

    monkeypatch.setattr(
        import_module("dp_service.queries.render.statement"), "numbers_of_member", of_everybody
    )
    under = policy()
    of_members = "SELECT member, text, SUM(whole) AS value FROM t GROUP BY member, text"
    sql = f"SELECT text, AVG(value) FROM ({of_members}) GROUP BY text"  # noqa: S608
    assert BEYOND in faults(asked_of, parse_sql(sql, under), under, HEAVY)


def test_a_condition_that_also_leaves_rows_out_is_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounding is of the question's rows: by those of the condition, a count of all members would be another one."""
    under = policy()
    resolution = resolve(parse_sql(SQL.format("COUNT(*) FILTER (WHERE whole > 1)"), under), under, now=NOW)
    unconditioned = resolve(parse_sql(SQL.format("COUNT(*)"), under), under, now=NOW)

    def counts(asked: Resolution) -> list[tuple[object, ...]]:
        asked_of.write(HEAVY)
        return [row[:2] for row in asked_of.connection.execute(render(asked, "duckdb")).fetchall()]

    true = counts(unconditioned)
    assert counts(resolution) == true
    real = where.conditions_of_question

    def with_its_own(*args: object, **given: object) -> object:
        yield from real(*args, **given)  # type: ignore[arg-type]
        yield "whole > 1"

    monkeypatch.setattr(where, "conditions_of_question", with_its_own)
    assert counts(resolution) != true


def nothing_otherwise(value: Coordinate, number: str, dialect: Dialect) -> str:
    """Write a number without what it is where the condition does not hold."""
    return _REAL(value, number, dialect).replace("ELSE 0", "ELSE NULL")


_REAL: Callable[[Coordinate, str, Dialect], str] = sums._used_or_not


def test_null_in_the_place_of_0_is_found(asked_of: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member without a row that meets the condition has a total of 0, and an element of such members a number."""
    under = policy()
    resolution = resolve(parse_sql(SQL.format("COUNT(*) FILTER (WHERE whole > 100)"), under), under, now=NOW)
    asked_of.write(HEAVY)
    assert None not in asked_of.connection.execute(render(resolution, "duckdb")).fetchall()[0]
    monkeypatch.setattr(sums, "_used_or_not", nothing_otherwise)
    answer = asked_of.connection.execute(render(resolution, "duckdb")).fetchall()
    assert any(None in row for row in answer)
