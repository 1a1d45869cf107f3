"""Conditions on CASE: of rows with missing values DuckDB counts the same, or the text is refused."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

from collections import Counter
from random import Random

import duckdb
import pytest

from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import QuestionError
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import Free

POLICY = parse_policy("""
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {bound: in_query, delta_0: 2, units: 10}
    measures: {distinct_members: true}
    columns:
      member: {type: string}
      a: {type: int64, filter: [in, not_in, range]}
      b: {type: string, filter: [in, not_in]}
      kept: {type: string, filter: [in, not_in], nulls: keep, null_value: none}
""")
ROWS = """
    SELECT concat_ws('-', a, b, kept, row_number() OVER ()) AS member, a, b, kept
    FROM (VALUES (NULL), (0), (1), (2)) AS of_a(a), (VALUES (NULL), ('x'), ('y')) AS of_b(b),
        (VALUES (NULL), ('x'), ('y')) AS of_kept(kept)
"""
LEAVES = (
    "a = 0",
    "a > 0",
    "a IN (1, 2)",
    "b = 'x'",
    "b <> 'y'",
    "kept = 'x'",
    "kept <> 'none'",
    "kept = 'none'",
)


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    """Return a table with missing values, and `said`, in which the kept ones are as the policy says."""
    found = duckdb.connect()
    found.execute(f"CREATE TABLE t AS {ROWS}")
    found.execute("CREATE VIEW said AS SELECT * REPLACE (coalesce(kept, 'none') AS kept) FROM t")
    return found


def a_condition(random: Random, depth: int) -> str:
    """Return a condition of leaves and cases."""
    match random.randrange(5 if depth else 1):
        case 0:
            return random.choice(LEAVES)
        case 1:
            word = random.choice((" AND ", " OR "))
            return f"({a_condition(random, depth - 1)}{word}{a_condition(random, depth - 1)})"
        case 2:
            return f"NOT {a_condition(random, depth - 1)}"
        case _:
            whens = range(random.randint(1, 3))
            branches = " ".join(
                f"WHEN {a_condition(random, depth - 1)} THEN '{random.choice('pqr')}'" for _ in whens
            )
            case = f"CASE {branches}{random.choice(('', ' ELSE ' + repr(random.choice('pqr'))))} END"
            asked = (
                "= 'p'",
                "<> 'q'",
                "IN ('p', 'r')",
                "NOT IN ('p')",
                "IS NULL",
                "IS NOT NULL",
                "= 'other'",
            )
            return f"({case} {random.choice(asked)})"


def test_what_is_accepted_counts_the_rows_that_sql_counts(engine: duckdb.DuckDBPyConnection) -> None:
    """Those of 1,500 conditions that are accepted; those that rows without a value might meet are refused."""
    random, ends = Random(7), Counter[str]()
    for _ in range(1500):
        condition = a_condition(random, 3)
        try:
            query = parse_sql(f"SELECT COUNT(DISTINCT member) FROM t WHERE {condition}", POLICY)
            resolution = resolve(query, POLICY, now=0)
        except QuestionError as error:
            ends[str(error).partition(": ")[2].splitlines()[0][:40]] += 1
            continue
        ((expected,),) = engine.execute(f"SELECT count(*) FROM said WHERE {condition}").fetchall()
        if query.free is Free.COLUMNS:
            assert 0 == expected, condition
            continue
        ((count,),) = engine.execute(render(resolution, "duckdb")).fetchall()
        assert expected == count, condition
        ends["accepted with CASE" if "CASE" in condition else "accepted"] += 1
    assert ends["accepted with CASE"] > 200, ends
    assert ends["a condition on CASE that rows without a "] > 50, ends


@pytest.mark.parametrize(
    ("case", "plain"),
    [
        ("CASE WHEN a = 0 THEN 'no' WHEN a = 1 THEN 'yes' END = 'yes'", "a = 1"),
        ("'yes' <> CASE WHEN a = 0 THEN 'no' WHEN a = 1 THEN 'yes' END", "a = 0"),
        ("CASE a WHEN 0 THEN 'no' WHEN 1 THEN 'yes' ELSE '?' END IN ('no', 'yes')", "a IN (0, 1)"),
        ("CASE WHEN a < 1 THEN 1 WHEN a < 2 THEN 2 WHEN a < 9 THEN 3 END >= 2", "a >= 1 AND a < 9"),
        ("CASE WHEN a = 0 THEN 'no' ELSE 'yes' END <> 'NULL'", "1 = 1"),
        ("CASE WHEN kept = 'x' THEN TRUE ELSE FALSE END = FALSE", "kept <> 'x'"),
        ("IF(a = 1, 'yes', 'no') = 'yes'", "a = 1"),
    ],
)
def test_a_condition_on_case_is_that_on_its_columns(case: str, plain: str) -> None:
    """So it has the same fingerprint, price and answer."""
    texts = (f"SELECT COUNT(DISTINCT member) FROM t WHERE {each}" for each in (case, plain))
    found = [canonical_bytes(resolve(parse_sql(each, POLICY), POLICY, now=0).query) for each in texts]
    assert found[0] == found[1]


def test_a_case_within_a_case_is_no_more_work_than_its_conditions() -> None:
    """Each would multiply them: a short text is refused at once where they are too many."""
    condition = "a = 0"
    for _ in range(12):
        whens = "".join(f" WHEN a = {number} THEN {number}" for number in (2, 3, 4, 5))
        condition = f"CASE WHEN {condition} THEN 1{whens} WHEN a = 6 THEN 6 END > 1"
    with pytest.raises(QuestionError, match="at most 128 conditions"):
        parse_sql(f"SELECT COUNT(DISTINCT member) FROM t WHERE {condition}", POLICY)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("CASE WHEN a = 0 THEN 'no' ELSE 'yes' END = 'yes'", "rows without a value meet"),
        ("CASE WHEN a = 0 THEN 'no' END IS NULL", "rows without a value meet"),
        ("CASE WHEN a = 0 THEN 'no' WHEN b = 'x' THEN 'yes' END = 'yes'", "rows without a value meet"),
        ("CASE WHEN a = 0 THEN 'no' END = 3", "of the type of those behind THEN"),
        ("CASE WHEN a = 0 THEN 'no' END < 'x'", "expected = or <>"),
        ("CASE WHEN a = 0 THEN b END = 'x'", "expected a text in single quotes"),
    ],
)
def test_conditions_on_case_without_a_meaning_of_their_own_are_refused(condition: str, reason: str) -> None:
    """With what to write instead."""
    with pytest.raises(QuestionError, match=reason):
        parse_sql(f"SELECT COUNT(DISTINCT member) FROM t WHERE {condition}", POLICY)
