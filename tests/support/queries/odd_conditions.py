"""Conditions of every form, and rows that an engine could trip over or read otherwise."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import replace

from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery

from .reference import Row
from .strategies import TEXTS

_POLICY = """
max_k: 1000
epsilon_per: 0.15
delta: 1e-10
tables:
  t:
    member: member
    time: {column: day, type: date}
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    d_bar: 1000
    columns:
      text: {type: string, group_by: true, filter: [in, not_in], KEPT}
      number: {type: int64, group_by: true, filter: [in, not_in, range]}
      flag: {type: bool, group_by: true, filter: [in, not_in]}
      day: {type: date, group_by: true, filter: [in, not_in, range]}
"""
DROPPED: Policy = parse_policy(_POLICY.replace("KEPT", "null_value: 'null'"))
KEPT: Policy = parse_policy(_POLICY.replace("KEPT", "nulls: keep, null_value: 'null'"))
"""NULL among texts is left out, or is a text like any other; both as Pinot stores it."""

_DAYS = (datetime.date(2019, 1, 1), datetime.date(2019, 1, 2), None)
_NUMBERS = (0, -1, 1_000_001, 2**63 - 1, -(2**63), None)
_TEXTS = (*TEXTS, "ak", "A\u212a", "aa", "Aa", "a.[a", "K", "\n", "a\u2028", "\x85", "a" * 500 + "b", None)
# Each text stands beside several of the others.
ROWS = [
    Row(
        f"m{place % 7}", text, _NUMBERS[place % 5 if place % 7 != 3 else 5], bool(place % 2), _DAYS[place % 3]
    )
    for place, text in enumerate(itertools.chain(_TEXTS, _TEXTS, _TEXTS))
]

CONDITIONS = (
    "text LIKE 'a%'",
    "text LIKE '%_%'",
    "text LIKE '___'",
    "text NOT LIKE '_'",
    "text ILIKE '%k%'",
    "text ILIKE 'A_a'",
    "text ILIKE 'a\u212a'",
    "text ILIKE ''",
    "text NOT ILIKE 'NULL'",
    "text LIKE '%\\%'",
    "text LIKE '%a%a%a%a'",
    "text LIKE '%.%[%' OR text ILIKE 'k'",
    "text LIKE '%''%' OR number > 1",
    # The text of two quotes, and a pattern that has them.
    "text = ''''''",
    "text NOT IN ('a', '''''')",
    "text LIKE '%''''%'",
    "text = '\U0001f600' OR text LIKE '%\u4e16'",
    "NOT (text LIKE '%a%' OR flag)",
    "text IS NULL OR number IN (0, 9223372036854775807)",
    "text IS NOT NULL AND (flag OR number < 0 OR number > 1000000)",
    "number < 0 OR number > 1000000",
    "number NOT BETWEEN -5 AND 5 OR day = '2019-01-02'",
    "number < 0 OR text = 'a'",
    "(text = '' AND flag) OR (text <> '' AND NOT flag)",
    "number IS NULL OR text <> 'a'",
    "NOT (number = 0 AND day = '2019-01-01') AND (day IS NOT NULL OR flag)",
)


def asked(
    condition: str, policy: Policy, by: str = "text", counted: str = "DISTINCT member"
) -> HistogramQuery:
    """Return the question for the counts of all elements where a condition holds."""
    query = parse_sql(f"SELECT {by}, COUNT({counted}) FROM t WHERE {condition} GROUP BY {by}", policy)  # noqa: S608
    return replace(query, k=1000)
