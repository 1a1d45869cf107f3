"""Three tables, a policy of each as an owner would state it, and 24 questions with the SQL of their truth.

Orders: some members have many, and beyond every bound of the policy. Subscriptions: a member has up to three. People:
one row each, as `assumed` states, so nothing of them can be cut.
"""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.world import copy

_ROWS = {
    "orders": (
        "SELECT 'm' || member AS member, ['DE', 'FR', 'IT', 'PL', 'SE'][1 + (member % 7) % 5] AS country, "
        "'P' || CAST(floor(sqrt(hash(i) % 400)) AS INTEGER) AS product, ['web', 'app', 'shop'][1 + (i % 3)::INTEGER] "
        "AS channel, DATE '2026-01-01' + (hash(i * 7) % 181)::INTEGER AS day, CAST(1 + hash(i * 13) % 90 "
        "AS BIGINT) AS amount FROM "
        "(SELECT i, CAST(floor(3000 * pow((i % 997) / 997, 2)) AS INTEGER) AS member FROM range(40000) AS rows(i))"
    ),
    "subscriptions": (
        "SELECT 's' || i % 5000 AS member, ['basic', 'plus', 'pro'][1 + (hash(i) % 3)::INTEGER] AS plan, "
        "['DE', 'FR', 'IT'][1 + (i % 3)::INTEGER] AS country, hash(i * 3) % 4 = 0 AS ended, "
        "CAST(5 + hash(i * 5) % 40 AS BIGINT) AS "
        "amount FROM range(11000) AS rows(i)"
    ),
    "people": (
        "SELECT 'p' || i AS member, ['DE', 'FR', 'IT', 'PL'][1 + (hash(i) % 4)::INTEGER] AS country, "
        "['a', 'b', 'c'][1 + (hash(i * 3) % 3)::INTEGER] AS ward FROM range(8000) AS rows(i)"
    ),
}
_VALUES = "{amount: {type: int64, quantum: 1, lower: 0, upper: 128, row_lower: 0, row_upper: 128}}"
_NAMES = "{typical: 4, share: 3/8, max_names: 30}"
_SIZES = "sums: {max_members: 100000, max_rows: 1000000}"
POLICY = f"""
epsilon_per: 0.15
delta: 1e-9
count_noise: gaussian
tables:
  orders:
    member: member
    consistency: fresh
    time: {{column: day, type: date, from: 2026-01-01, to: 2026-07-01, buckets: {{week: 4, month: 4}}}}
    contributions: {{bound: in_query, typical: 4, units: 20, names: {_NAMES}, {_SIZES}}}
    measures: {{distinct_members: true, events: {{tau: 4, tau_is: clipped}}}}
    columns:
      member: {{type: string}}
      country: {{type: string, group_by: true, domain: [DE, FR, IT, PL, SE], filter: [in]}}
      product: {{type: string, group_by: true, filter: [in]}}
      channel: {{type: string, group_by: true, domain: [app, shop, web], filter: [in]}}
      day: {{type: date, filter: [range]}}
    values: {_VALUES}
  subscriptions:
    member: member
    consistency: fresh
    contributions: {{bound: in_query, typical: 2, units: 20, largest_cut: 1/4, {_SIZES}}}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    columns:
      member: {{type: string}}
      plan: {{type: string, group_by: true, domain: [basic, plus, pro], filter: [in]}}
      country: {{type: string, group_by: true, domain: [DE, FR, IT], filter: [in]}}
      ended: {{type: bool, group_by: true, filter: [in]}}
    values: {_VALUES}
  people:
    member: member
    consistency: fresh
    contributions: {{bound: assumed, delta: 1, units: 20}}
    measures: {{distinct_members: true, events: {{tau: 1, tau_is: assumed}}}}
    columns:
      member: {{type: string}}
      country: {{type: string, group_by: true, domain: [DE, FR, IT, PL], filter: [in]}}
      ward: {{type: string, group_by: true, domain: [a, b, c], filter: [in]}}
"""
TABLES = tuple(_ROWS)


@dataclass(frozen=True)
class Asked:
    """A question, and the SQL of its truth where that is written otherwise."""

    sql: str
    truth: str = ""


_PEOPLE = "COUNT(DISTINCT member)"
_FIRST = "FILTER (WHERE channel = 'web')"
QUESTIONS = {
    "members who ordered": Asked(f"SELECT {_PEOPLE} FROM orders"),
    "orders of each member": Asked(f"SELECT {_PEOPLE}, COUNT(*), 1.0 * COUNT(*) / {_PEOPLE} FROM orders"),
    "orders by country": Asked("SELECT country, COUNT(*) FROM orders GROUP BY country"),
    "members by country": Asked(f"SELECT country, {_PEOPLE} FROM orders GROUP BY country"),
    "members by channel": Asked(f"SELECT channel, {_PEOPLE} FROM orders GROUP BY channel"),
    "top products by members": Asked(
        f"SELECT product, {_PEOPLE} FROM orders GROUP BY product ORDER BY 2 DESC LIMIT 10"
    ),
    "top products by orders": Asked(
        "SELECT product, COUNT(*) FROM orders GROUP BY product ORDER BY 2 DESC LIMIT 10"
    ),
    "members by month": Asked(
        f"SELECT DATE_TRUNC('month', day) AS m, {_PEOPLE} FROM orders GROUP BY 1 ORDER BY 1",
        f"SELECT CAST(DATE_TRUNC('month', day) AS DATE), {_PEOPLE} FROM orders GROUP BY 1",
    ),
    "orders by month": Asked(
        "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1",
        "SELECT CAST(DATE_TRUNC('month', day) AS DATE), COUNT(*) FROM orders GROUP BY 1",
    ),
    "revenue": Asked("SELECT COUNT(*), SUM(amount) FROM orders"),
    "revenue by country": Asked("SELECT country, COUNT(*), SUM(amount) FROM orders GROUP BY country"),
    "average order by channel": Asked("SELECT channel, COUNT(*), AVG(amount) FROM orders GROUP BY channel"),
    "share of the web": Asked(f"SELECT {_PEOPLE}, 1.0 * {_PEOPLE} {_FIRST} / {_PEOPLE} FROM orders"),
    "web and all": Asked(f"SELECT country, {_PEOPLE}, {_PEOPLE} {_FIRST} FROM orders GROUP BY country"),
    "subscribers": Asked(f"SELECT {_PEOPLE} FROM subscriptions"),
    "subscribers by plan": Asked(f"SELECT plan, {_PEOPLE} FROM subscriptions GROUP BY plan"),
    "subscriptions by plan": Asked("SELECT plan, COUNT(*) FROM subscriptions GROUP BY plan"),
    "subscribers by plan and country": Asked(
        f"SELECT plan, country, {_PEOPLE} FROM subscriptions GROUP BY plan, country"
    ),
    "ended": Asked(f"SELECT {_PEOPLE} FROM subscriptions WHERE ended"),
    "paid by plan": Asked("SELECT plan, COUNT(*), SUM(amount) FROM subscriptions GROUP BY plan"),
    "people": Asked(f"SELECT {_PEOPLE} FROM people"),
    "people by country": Asked(f"SELECT country, {_PEOPLE} FROM people GROUP BY country"),
    "people by country and ward": Asked(
        f"SELECT country, ward, {_PEOPLE} FROM people GROUP BY country, ward"
    ),
    "rows by ward": Asked("SELECT ward, COUNT(*) FROM people GROUP BY ward"),
}


def write_tables(folder: Path) -> dict[str, Path]:
    """Write the tables into a folder, and return where they are."""
    paths = {name: folder / f"{name}.parquet" for name in _ROWS}
    for name, rows in _ROWS.items():
        copy(rows, paths[name])
    return paths
