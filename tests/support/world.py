"""The world that these tests run in: both services as processes, a policy, budgets, and data with known counts."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from tests.support.embedded import embedded
from tests.support.paths import EXAMPLES

COFACTS = EXAMPLES / "cofacts" / "feedback.parquet"
WIDE_ELEMENTS = 100_000

POLICY = """
epsilon_per: 8
delta: 1e-10
tables:
  feedback:
    member: member_id
    time: {column: day, type: date}
    measures:
      distinct_members: true
      events: {tau: 50, tau_is: assumed}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true, filter: [in, not_in]}
      score: {type: int64, group_by: true, filter: [in, not_in, range], domain: [-1, 0, 1]}
      app:
        type: string
        group_by: true
        filter: [in, not_in]
        domain: [DEVELOPMENT_BACKEND, DEVELOPMENT_FRONTEND, RUMORS_LINE_BOT, WEBSITE]
        delta: 4
      cohort: {type: string, group_by: true, filter: [in, not_in], delta: 1}
      day: {type: date, group_by: true, filter: [in, not_in, range]}
  wide:
    member: member_id
    d_bar: 100000
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true, delta: 1}
  small:
    member: member_id
    reserve_first: true
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true, delta: 1}
  growing:
    member: member_id
    time: {column: day, type: date, refresh: month}
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true, delta: 1}
  orders:
    member: member_id
    measures: {events: {tau: 3, tau_is: clipped}}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true, delta: 1}
  pinned:
    member: member_id
    data_version: promised never to change
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true, delta: 1}
"""

BUDGET = """
accounts:
  - path: [t]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [t, "*"]
    limit: {information: 3000, calls: 300}
  - path: [poor]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [poor, "*"]
    limit: {information: 5, calls: 1}
  - path: [alone, one]
    limit: {information: 5, calls: 1}
  - path: [app]
    limit: {information: 1000000, calls: 100000}
  - path: [app, "*"]
    limit: {information: 100000, calls: 10000}
  - path: [app, "*", "*"]
    limit: {information: 3000, calls: 300}
  - path: [app, "*", "*", "*"]
    limit: {information: 3000, calls: 300}
"""

# Enough members in each element to be well above the threshold, and names that make more than 3 MiB together.
_WIDE = "range AS member_id, 'an element that has quite a long name ' || range % 100000 AS element"

_numbers = itertools.count()


@dataclass(frozen=True)
class World:
    """Running services, and where the data are."""

    dp: str
    budget: str
    directory: Path

    @property
    def tables(self) -> dict[str, Path]:
        """The file of each table of the policy."""
        return {
            "feedback": COFACTS,
            "wide": self.directory / "wide.parquet",
            "small": self.directory / "small.parquet",
        }


def new_account(prefix: str = "t") -> str:
    """Returns an account that nobody has used."""
    return f"{prefix}/analyst-{next(_numbers)}"


def write_small(path: Path, members: int) -> None:
    """Writes a table in which so many members have the element "a"; a reader sees the old file or the new."""
    _write_anew(path, f"SELECT range AS member_id, 'a' AS element FROM range({members})")


def write_growing(path: Path, *, members: int, arriving: int = 0) -> None:
    """Writes a table with members of a day that is long over, and of one that is long to come."""
    columns = "range AS member_id, 'a' AS element"
    _write_anew(
        path,
        f"SELECT {columns}, DATE '2019-01-01' AS day FROM range({members}) "
        f"UNION ALL SELECT {columns}, DATE '2999-01-01' FROM range({arriving})",
    )


@contextmanager
def running_world(directory: Path) -> Iterator[World]:
    """Runs both services on the policy above."""
    copy(f"SELECT {_WIDE} FROM range({15 * WIDE_ELEMENTS})", directory / "wide.parquet")
    write_small(directory / "small.parquet", 1000)
    with embedded(directory, POLICY, BUDGET) as services:
        yield World(services.dp_address, services.budget_address, directory)


def _write_anew(path: Path, query: str) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(_parquet(query))
    new.replace(path)


@cache
def _parquet(query: str) -> bytes:
    """Returns the answer of a query as a Parquet file: to open a DuckDB takes longer than most tests that need one."""
    with tempfile.TemporaryDirectory() as folder:
        copy(query, path := Path(folder) / "table.parquet")
        return path.read_bytes()


def copy(query: str, path: Path) -> None:
    """Writes the answer of a query to a Parquet file."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
