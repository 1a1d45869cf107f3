"""Conditions on LOWER, UPPER and LEFT: those that LIKE has, and no others."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import duckdb
import pytest

from dp_service.queries.errors import QuestionError
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql

POLICY = parse_policy("""
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {bound: in_query, units: 10}
    measures: {distinct_members: true}
    columns:
      member: {type: string}
      a: {type: int64, filter: [in, not_in, range]}
      b: {type: string, filter: [in, not_in]}
""")

TEXTS = ("x", "X", "xy", "Xy_", "Xyz", "yX", "%x", "!%", "a\\%", "\\b", "", "É", "é", "kx", "\u212ax")


@pytest.mark.parametrize(
    "condition",
    [
        "LOWER(b) = 'x'",
        "'XY' <> UPPER(b)",
        "LOWER(b) IN ('x', 'xy')",
        "LOWER(b) NOT IN ('x')",
        "LOWER(b) LIKE '%x%'",
        "NOT UPPER(b) NOT LIKE '_X'",
        "LEFT(b, 1) = 'x'",
        "SUBSTR(b, 1, 2) <> 'xy'",
        "LEFT(b, 1) IN ('x', 'y')",
        "LEFT(b, 2) = '%x'",
        "LOWER(b) = 'xy_'",
        r"b LIKE 'Xy\_' ESCAPE '\'",
        r"b NOT LIKE '\%%' ESCAPE '\'",
        r"b ILIKE '%Y\_' ESCAPE '\'",
        r"LOWER(b) LIKE '%y\_' ESCAPE '\'",
        r"b LIKE '%\\\%' ESCAPE '\'",
        "b LIKE '/%%' ESCAPE '/'",
        "b LIKE '!!!%' ESCAPE '!'",
        r"b LIKE '\%' ESCAPE ''",
    ],
)
def test_the_rows_are_those_of_sql(condition: str) -> None:
    """Of texts in which A to Z are the only letters of two cases that any condition names, or a missing text."""
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE t AS SELECT 'm' || i AS member, 0 AS a, b, 'x' AS kept FROM (SELECT unnest(?) AS b, "
            "generate_subscripts(?, 1) AS i)",
            [[*TEXTS, None]] * 2,
        )
        rendered = render(
            resolve(
                parse_sql(f"SELECT COUNT(DISTINCT member) FROM t WHERE {condition}", POLICY), POLICY, now=0
            ),
            "duckdb",
        )
        ((expected,),) = engine.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchall()
        ((count,),) = engine.execute(rendered).fetchall()
    assert 0 < expected == count


@pytest.mark.parametrize(
    "condition",
    [
        "LOWER(b) = 'X'",
        "LEFT(b, 2) = 'x'",
        "LEFT(b, 2) LIKE 'x%'",
        "LOWER(b) > 'x'",
        "SPLIT_PART(b, '-', 1) = 'x'",
        "LOWER(b) = DATE '2024-01-01'",
    ],
)
def test_what_like_does_not_say_is_refused(condition: str) -> None:
    """With what to write instead."""
    with pytest.raises(QuestionError, match=r"write column ILIKE 'a%'"):
        parse_sql(f"SELECT COUNT(DISTINCT member) FROM t WHERE {condition}", POLICY)


def test_a_backslash_escapes_unless_a_pattern_says_otherwise() -> None:
    """As in PostgreSQL and Pinot, where DuckDB takes it for itself; so the question is another one without it."""

    def asked(pattern: str) -> object:
        return parse_sql(f"SELECT COUNT(DISTINCT member) FROM t WHERE b LIKE {pattern}", POLICY)

    assert asked(r"'x\_y'") == asked(r"'x\_y' ESCAPE '\'") == asked("'x!_y' ESCAPE '!'") != asked("'x_y'")
    assert asked(r"'a\\b'") == asked(r"'a\b' ESCAPE '!'") == asked(r"'a\b' ESCAPE ''")


@pytest.mark.parametrize(
    "pattern",
    [
        r"'x\'",
        r"'x\y'",
        "'x!' ESCAPE '!'",
        "'!x' ESCAPE '!'",
        "'x' ESCAPE 'ab'",
        "'x' ESCAPE 1",
        "'x' ESCAPE b",
    ],
)
def test_an_escape_that_means_nothing_is_refused_by_its_name(pattern: str) -> None:
    """Before anything is charged: engines read it in different ways, or fail."""
    with pytest.raises(QuestionError, match=r"escape|ESCAPE"):
        parse_sql(f"SELECT COUNT(DISTINCT member) FROM t WHERE b LIKE {pattern}", POLICY)


def test_a_column_of_numbers_has_no_letters() -> None:
    """Refused by its name."""
    with pytest.raises(QuestionError, match="a: expected a part of a column of texts"):
        parse_sql("SELECT COUNT(DISTINCT member) FROM t WHERE LOWER(a) = 'x'", POLICY)
