"""What a refused number over rows is told to ask instead is answered when it is pasted."""

from __future__ import annotations

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
    {values}
    quantiles: {{amount: {{type: int64, grid: {{scale: linear, from: 0, to: 100, cells: 20}}}}}}
"""
ROWS, SUMS = ", rows: 8", ", sums: {max_members: 1000000, max_rows: 1000000}"
VALUES = "values: {amount: {type: int64, lower: 0, upper: 100}}"


@pytest.mark.parametrize(
    ("question", "rows", "sums"),
    [
        ("SELECT device, COUNT(DISTINCT user), AVG(amount) FROM events GROUP BY device", ROWS, SUMS),
        ("SELECT COUNT(DISTINCT user), AVG(amount) FROM events", ROWS, SUMS),
        ("SELECT device, AVG(amount) FROM events GROUP BY device", "", SUMS),
        ("SELECT AVG(amount) FROM events", "", SUMS),
        ("SELECT MEDIAN(amount) FROM events", "", SUMS),
        ("SELECT MAX(amount) FROM events", "", ""),
        ("SELECT MEDIAN(n) FROM (SELECT user, SUM(amount) AS n FROM events GROUP BY user)", ROWS, ""),
    ],
)
def test_advice_is_answered_when_pasted(question: str, rows: str, sums: str) -> None:
    """As it stands in the refusal."""
    policy = parse_policy(POLICY.format(rows=rows, sums=sums, values=VALUES if sums else ""))
    with pytest.raises((QuestionError, RefusedByPolicyError)) as refused:
        resolve(parse_sql(question, policy), policy, now=0)
    _, advised, text = str(refused.value).splitlines()[0].partition("SELECT ")
    assert advised
    resolve(parse_sql(advised + text, policy), policy, now=0)
