"""A year of purchases, which has what every client is asked for: lists, a series and sums."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TABLE = "sales"
COLUMNS = ("article", "country", "day", "euros", "member_id")
POLICY = """
epsilon_per: 0.15
delta: 1e-11
count_noise: gaussian
tables:
  sales:
    member: member_id
    time: {column: day, type: date, buckets: {day: 4, month: 4}}
    contributions: {bound: in_query, units: 20, sums: {max_members: 100000, max_rows: 1000000}}
    measures: {distinct_members: true}
    columns:
      member_id: {type: string}
      article: {type: string, group_by: true, typical: 4}
      country: {type: string, group_by: true, typical: 4, filter: [in], domain: [DE, FR, NL]}
      day: {type: date, filter: [range]}
    values:
      euros: {type: decimal, quantum: 0.01, lower: 0, upper: 500, row_lower: 0, row_upper: 100}
"""
_ROWS, _BUYERS, _ARTICLES, _SEED = 30_000, 3000, 40, 2026


def write_sales(folder: Path) -> dict[str, Path]:
    """Write the table and its policy; return its file."""
    (folder / "policy.yaml").write_text(POLICY)
    chance = random.Random(_SEED)
    rows = [_row(chance) for _ in range(_ROWS)]
    names = ("member_id", "article", "country", "day", "euros")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    pq.write_table(pa.table(columns), folder / "sales.parquet")
    return {TABLE: folder / "sales.parquet"}


def _row(chance: random.Random) -> tuple[str, str, str, datetime.date, float]:
    """Return a purchase of 2025; the first articles are bought most, and members stay in one country."""
    member, article = chance.randrange(_BUYERS), int(chance.random() ** 2 * _ARTICLES)
    day = datetime.date(2025, 1, 1) + datetime.timedelta(days=chance.randrange(365))
    return (
        f"m{member}",
        f"article {article:02}",
        ("DE", "FR", "NL")[member % 3],
        day,
        chance.randrange(100, 10_000) / 100,
    )
