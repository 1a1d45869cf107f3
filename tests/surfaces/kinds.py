"""One example of every kind of answer: a table for each, and the question that it answers.

Surfaces are tried on all of them (`test_every_surface.py` beside this); a kind that is new gets its line here.
"""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.typical import typically
from tests.support.world import copy

_COLUMNS = "{member_id: {type: int64}, country: {type: string, group_by: true, domain: [JP, TW]}, CITY, DAY}"
KNOWN = _COLUMNS.replace("CITY", "city: {type: string, group_by: true}").replace(
    "DAY", "day: {type: date, group_by: true, filter: [range]}"
)
RESTRICTED = KNOWN.replace("TW]}", "TW], delta: 1}")
UNKNOWN = "{user_id: {type: int64}, member_id: {type: int64, group_by: true}}"
_MEMBERS = "measures: {distinct_members: true}"
_ONE_LOOK = "bound: in_query, units: 400"
_SUMS = "sums: {max_members: 100000, max_rows: 1000000}"
_VALUES = (
    "{amount: {type: int64, quantum: 1, lower: 0, upper: 10, row_lower: 0, row_upper: 10},"
    " price: {type: decimal, quantum: '0.25', lower: -2, upper: 9}}"
)
_CELLS = "grid: {scale: linear, from: 0, to: 100, cells: 20}"
_DAYS = "day: {type: date, grid: {scale: dates, from: 2024-01-01, to: 2024-01-29, step: 7}}"
_GRID = f"{{amount: {{type: int64, quantum: 1, {_CELLS}}}, {_DAYS}}}"
_BOTH = _VALUES.replace("row_upper: 10", f"row_upper: 100, {_CELLS}").replace("{amount", f"{{{_DAYS}, amount")
_PER_MEMBER = (
    "SELECT member_id, country, SUM(amount) AS paid, SUM(price) AS cost FROM clamped "
    "GROUP BY member_id, country"
)
POLICY = f"""
epsilon_per: 0.5
delta: 1e-7
count_noise: gaussian
tables:
  plain: {{member: member_id, {_MEMBERS}, columns: {KNOWN}}}
  restricted: {{member: member_id, {_MEMBERS}, columns: {RESTRICTED}}}
  unknown: {{member: user_id, measures: {{events: {{tau: 1, tau_is: assumed}}}}, columns: {UNKNOWN}}}
  clipped: {{member: member_id, measures: {{events: {{tau: 2, tau_is: clipped}}}}, columns: {KNOWN}}}
  bounded: {{member: member_id, contributions: {{{_ONE_LOOK}}}, {_MEMBERS}, columns: {typically(1, KNOWN)}}}
  shifted:
    {{member: member_id, contributions: {{{_ONE_LOOK}}}, {_MEMBERS}, columns: {typically(2, KNOWN)}}}
  looks:
    member: member_id
    contributions: {{{_ONE_LOOK}, min_count: 2, {_SUMS}, longest_list: 3}}
    {_MEMBERS}
    columns: {typically(1, KNOWN)}
    values: {_BOTH}
  clamped:
    member: member_id
    time: {{column: day, type: date, buckets: {{week: 1}}}}
    contributions: {{{_ONE_LOOK}, {_SUMS}, largest_cut: 1/16}}
    measures: {{distinct_members: true, rows: 2, distinct: {{city: 2}}}}
    columns: {typically(1, KNOWN)}
    values: {_VALUES}
  quantiles: {{member: member_id, contributions: {{{_ONE_LOOK}}},
    measures: {{distinct_members: true, rows: 1}}, columns: {typically(1, KNOWN)},
    values: {_GRID}}}
"""
TABLES = (
    *("plain", "restricted", "unknown", "clipped", "bounded"),
    *("shifted", "looks", "clamped", "quantiles"),
)
# No two countries or cities have the same numbers, so that one that is shown with those of another is noticed.
_ROWS = """
SELECT range % 300 AS member_id, if(range % 300 < 200, 'JP', 'TW') AS country, 'city ' || size AS city,
  DATE '2024-01-01' + CAST(range % if(range % 300 < 200, 28, 14) AS INTEGER) AS day, range % 3 + 2 * size AS amount,
  if(range % 3 = 0, NULL, range % 11 / 4) AS price, range AS user_id
FROM (SELECT range, CAST(floor(sqrt(range % 300) / 3.5) AS INTEGER) AS size FROM range(1500))
"""


@dataclass(frozen=True)
class Kind:
    """A question, and codes that its answer has among its statements at least."""

    sql: str
    codes: frozenset[str]


def _kind(sql: str, *codes: str) -> Kind:
    return Kind(sql, frozenset(codes))


_PEOPLE = "COUNT(DISTINCT member_id)"
_BY = f"SELECT country, {_PEOPLE} FROM"
_JANUARY = "day >= '2024-01-01' AND day < '2024-01-29'"
KINDS = {
    "plain": _kind(f"{_BY} plain GROUP BY country ORDER BY 2 DESC LIMIT 2", "intervals.plain"),
    "clipped": _kind(
        "SELECT country, COUNT(*) FROM clipped GROUP BY country ORDER BY 2 DESC LIMIT 2",
        *("counts.clipped", "intervals.at_least"),
    ),
    "empty": _kind(
        "SELECT member_id, COUNT(*) FROM unknown GROUP BY member_id ORDER BY 2 DESC LIMIT 2",
        *("list.ended", "list.few", "order.apart", "intervals.plain"),
    ),
    "cut": _kind(f"{_BY} restricted GROUP BY country ORDER BY 2 DESC LIMIT 1", "intervals.given_shown"),
    "filtered": _kind(
        f"{_BY} restricted GROUP BY country HAVING {_PEOPLE} > 9", "intervals.simultaneous", "list.filtered"
    ),
    "ranked": _kind(
        f"SELECT country FROM plain GROUP BY country ORDER BY {_PEOPLE} DESC LIMIT 2", "intervals.none"
    ),
    "bounded": _kind(f"{_BY} bounded GROUP BY country", "counts.bounded", "intervals.at_least"),
    "relative": _kind(f"{_BY} shifted GROUP BY country", "counts.relative"),
    "two looks": _kind(
        f"SELECT city AS town, {_PEOPLE} AS people FROM looks GROUP BY city", "counts.bounded"
    ),
    "distinct values": _kind(
        "SELECT country, COUNT(DISTINCT city) AS cities FROM clamped GROUP BY country", "counts.distinct"
    ),
    "sums": _kind(
        f"SELECT country, {_PEOPLE}, SUM(paid), AVG(paid), AVG(cost) FROM ({_PER_MEMBER}) GROUP BY country",
        *("sums.of", "sums.clamped", "sums.averages", "intervals.noise"),
    ),
    "sums of rows": _kind(
        "SELECT country, COUNT(*), SUM(amount) AS paid, AVG(price), AVG(amount) FILTER (WHERE day < '2024-01-08') "
        "FROM clamped GROUP BY country",
        *("sums.of", "sums.conditions", "sums.own_count"),
    ),
    "the order of a sum": _kind(
        f"SELECT country, {_PEOPLE}, SUM(amount) AS paid FROM clamped GROUP BY country ORDER BY paid DESC LIMIT 1",
        "intervals.simultaneous",
    ),
    "numbers with conditions": _kind(
        f"SELECT country, {_PEOPLE}, COUNT(*), {_PEOPLE} FILTER (WHERE day < '2024-01-08'), SUM(amount) FILTER (WHERE "
        "day < '2024-01-08'), SUM(CASE WHEN day >= '2024-01-20' THEN price ELSE 0 END) AS late FROM clamped "
        "GROUP BY country",
        *("sums.conditions", "sums.number"),
    ),
    "quotients": _kind(
        f"SELECT country, {_PEOPLE}, 100.0 * {_PEOPLE} FILTER (WHERE day < '2024-01-08') / {_PEOPLE} AS early, "
        f"SUM(amount) / {_PEOPLE}, 100.0 * {_PEOPLE} / SUM({_PEOPLE}) OVER () AS share FROM clamped GROUP BY country "
        "ORDER BY early DESC",
        "numbers.arithmetic",
    ),
    "shares of the shown": _kind(
        f"SELECT city, {_PEOPLE}, 100.0 * SUM(amount) / SUM(SUM(amount)) OVER () AS share FROM clamped GROUP BY city "
        "ORDER BY share DESC LIMIT 2",
        *("numbers.arithmetic", "intervals.simultaneous"),
    ),
    "funnel": _kind(
        f"SELECT FUNNEL_COUNT(STEPS({_JANUARY}, day >= '2024-01-15'), CORRELATE_BY(member_id)) AS n FROM clamped",
        *("counts.reached", "intervals.plain", "order.of_elements"),
    ),
    "retention": _kind(
        f"SELECT DATE_TRUNC('week', MIN(day)) AS first, DATE_DIFF('week', MIN(day), day), {_PEOPLE} FROM clamped "
        f"WHERE {_JANUARY} GROUP BY 1, 2",
        *("intervals.plain", "order.of_elements"),
    ),
    "numbers of several": _kind(
        f"SELECT country, {_PEOPLE}, SUM(amount) / {_PEOPLE} FILTER (WHERE {_JANUARY}) AS each, "
        f"{_PEOPLE} FILTER (WHERE day < '2024-01-08') - "
        f"{_PEOPLE} FILTER (WHERE day >= '2024-01-20') FROM clamped GROUP BY country ORDER BY each DESC LIMIT 1",
        *("numbers.arithmetic", "intervals.simultaneous"),
    ),
    "sums of two looks": _kind(f"SELECT city, {_PEOPLE}, SUM(price) FROM looks GROUP BY city", "sums.of"),
    "empty sums": _kind(
        f"SELECT city, {_PEOPLE}, SUM(price) FROM looks WHERE day < '2020-01-01' GROUP BY city", "sums.of"
    ),
    "series": _kind(
        f"SELECT DATE_TRUNC('week', day) AS week, {_PEOPLE} FROM clamped "
        "WHERE day >= '2024-01-08' AND day < '2024-02-01' GROUP BY 1"
    ),
    "quantiles": _kind(
        "SELECT country, PERCENTILE(amount, 50), MAX(amount) AS most FROM quantiles GROUP BY country",
        *("quantiles.of", "quantiles.cells", "quantiles.bounded", "quantiles.rank"),
    ),
    "days": _kind(
        "SELECT country, PERCENTILE(last, 50) AS half FROM (SELECT member_id, country, MAX(day) AS last FROM quantiles "
        "GROUP BY member_id, country) GROUP BY country",
        "quantiles.of",
    ),
}


def write_rows(path: Path) -> None:
    """Write the rows that all tables have."""
    copy(_ROWS, path)
