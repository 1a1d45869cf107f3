"""A stage whose one table is asked for totals and by what a public file says of its articles, with next to no noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dp_service.queries.lookups import hash_of
from tests.support.stage import Stage, running_stage
from tests.support.world import copy

TOPICS = b"article,topic\na0,health\na1,health\na2,health\na3,scam\na4,scam\n"
POLICY = f"""
epsilon_per: 0.5
delta: 1e-7
count_noise: gaussian
tables:
  sales:
    member: member_id
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    contributions:
      {{bound: in_query, typical: 4, units: 400, totals: {{}}, sums: {{max_members: 10000, max_rows: 10000}}}}
    columns:
      member_id: {{type: int64}}
      article: {{type: string, group_by: true}}
      country: {{type: string, group_by: true}}
      topic:
        type: string
        group_by: true
        lookup: {{column: article, file: topics.csv, hash: "{hash_of(TOPICS)}"}}
    values: {{price: {{type: int64, lower: 0, upper: 10}}}}
    quantiles:
      price: {{type: int64, member_value: total, max_rows: 10000, grid: {{scale: linear, from: 0, to: 10, cells: 10}}}}
"""
# Each member has one row. What a5 is about nobody knows, so its rows count nowhere.
ROWS = """
SELECT range AS member_id, 'a' || range % 6 AS article, if(range // 6 % 4 = 0, 'JP', 'TW') AS country,
       range % 10 AS price FROM range(1200)
"""
MEMBERS = {("health", "TW"): 450, ("scam", "TW"): 300, ("health", "JP"): 150, ("scam", "JP"): 100}
SHOWN = 3
"""Of so many pairs one stays out of the list: a hundred members of Japan, which are what it leaves of scams."""
TOTALS = {"health": (600, 0), "scam": (400, 100)}
"""Each topic's total, and what a list of the three largest pairs leaves of it."""
FAR = 30
"""No noisy number is so far off, but with probability below 1e-9: a total less two elements has a deviation below 2."""


@contextmanager
def running_sales(folder: Path) -> Iterator[Stage]:
    """Run services and a gateway on the table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "topics.csv").write_bytes(TOPICS)
    copy(ROWS, folder / "sales.parquet")
    with running_stage(folder, POLICY, {"sales": folder / "sales.parquet"}) as stage:
        yield stage
