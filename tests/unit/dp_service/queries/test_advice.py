"""What a refusal tells to ask instead is answered when it is pasted."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import re
from itertools import product

import pytest

from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql

POLICY = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  events:
    member: user
    measures: {{distinct_members: true{rows}}}
    contributions: {{bound: in_query, units: 5{sums}}}
    columns:
      user: {{type: string}}
      device: {{type: string, group_by: true, typical: 1, domain: [mobile, desktop]}}
      page: {{type: string, group_by: true, typical: 1, filter: [in]}}
    values: {{amount: {{type: int64, {bounds}grid: {{scale: linear, from: 0, to: 100, cells: 20}}}}}}
"""
ROWS, SUMS = ", rows: 8", ", sums: {max_members: 1000000, max_rows: 1000000}"
BOUNDS = "lower: 0, upper: 100, "
EVERY = tuple(product((ROWS, ""), (SUMS, "")))
EACH = "(SELECT user, COUNT(*) AS n FROM events GROUP BY user)"


@pytest.mark.parametrize(
    ("question", "offered"),
    [
        ("SELECT device, AVG(amount) FROM events GROUP BY device", [("", SUMS)]),
        ("SELECT AVG(amount) FROM events", [("", SUMS)]),
        ("SELECT MEDIAN(amount) FROM events", [("", SUMS)]),
        ("SELECT MAX(amount) FROM events", [("", "")]),
        ("SELECT MEDIAN(n) FROM (SELECT user, SUM(amount) AS n FROM events GROUP BY user)", [(ROWS, "")]),
        (f"SELECT MEDIAN(n) FROM {EACH}", EVERY),
        (f"SELECT MAX(n) FROM {EACH}", EVERY),
        (f"SELECT n, COUNT(*) FROM {EACH} GROUP BY n", EVERY),
        (f"SELECT COUNT(*) FROM {EACH} WHERE n > 20", EVERY),
        (f"SELECT COUNT(*) FROM {EACH[:-1]} HAVING COUNT(*) > 20)", EVERY),
        (f"SELECT SUM(n) FROM {EACH[:-1]} ORDER BY n DESC LIMIT 10)", EVERY),
        ("SELECT AVG(m) FROM (SELECT user, MAX(amount) AS m FROM events GROUP BY user)", EVERY),
        ("SELECT AVG(n) FROM (SELECT user, COUNT(DISTINCT page) AS n FROM events GROUP BY user)", EVERY),
        ("SELECT AVG(n) FROM (SELECT page, COUNT(*) AS n FROM events GROUP BY page)", EVERY),
        ("SELECT MIN(amount), MAX(amount), COUNT(*) FROM events", EVERY),
        ("SELECT device, COUNT(*), MEDIAN(amount) FROM events GROUP BY device", EVERY),
        ("SELECT page, MEDIAN(amount) FROM events GROUP BY page", EVERY),
        ("SELECT user, COUNT(*) FROM events GROUP BY user", EVERY),
        ("SELECT COUNT(amount) FROM events", EVERY),
    ],
)
def test_advice_is_answered_when_pasted(question: str, offered: list[tuple[str, str]]) -> None:
    """As it stands in the refusal, whether or not the policy counts rows and has sums."""
    for rows, sums in offered:
        policy = parse_policy(POLICY.format(rows=rows, sums=sums, bounds=BOUNDS if sums else ""))
        with pytest.raises((QuestionError, RefusedByPolicyError)) as refused:
            resolve(parse_sql(question, policy), policy, now=0)
        advised = re.search("SELECT .* FROM .*", str(refused.value).splitlines()[0])
        assert advised is not None
        resolve(parse_sql(advised[0], policy), policy, now=0)
