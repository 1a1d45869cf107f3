"""What is asked, and the rows that it is asked of: three tables whose files are exchanged under the questions."""

# ruff: noqa: S608  (the SQL is this campaign's own)
from __future__ import annotations

import os
import random
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from gris_api.dp.v1 import question_pb2

from pinot_connector import structured_question
from pinot_connector.questions import NotIn
from tests.support.world import copy

# The one table whose version is its rows', so that other rows make another question of each.
LIVE = "live"
TABLES = ("closed", LIVE, "pinned")
VERSIONS = 3
MEMBERS = 2000

POLICY = """
epsilon_per: 8
delta: 1e-10
tables:
  closed:
    time: {column: day, type: date, refresh: month}
"""
_TABLE = """
    member: member_id
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true, delta: 1, filter: [in, not_in]}
      tag: {type: string, group_by: true, filter: [in, not_in]}
"""
POLICY = (
    POLICY + _TABLE.lstrip("\n") + f"  {LIVE}:{_TABLE}" + f"  pinned:\n    data_version: promised{_TABLE}"
)


class Shape(Enum):
    """What a question counts."""

    HISTOGRAM = "histogram"
    FIRST_ELEMENTS = "first elements"
    FIRST_TAGS = "first tags"
    TOTAL = "total"


@dataclass(frozen=True, order=True)
class Asked:
    """One question; k is 0 where all is shown. Those that differ only in k may be parts of one release."""

    table: str
    number: int
    shape: str
    k: int = 0

    def question(self) -> question_pb2.Question:
        """Return the message; no row has the element that it leaves out."""
        by = {Shape.FIRST_TAGS.value: ["tag"], Shape.TOTAL.value: []}.get(self.shape, ["element"])
        where = {"element": NotIn([f"none-{self.number}"])}
        return structured_question(self.table, by, k=self.k or None, where=where)


def drawn(rng: random.Random, newest: int) -> Asked:
    """Return a question, rather a new one than one that was asked long ago."""
    number, shape = newest - min(newest, int(rng.expovariate(0.25))), rng.choice(list(Shape))
    cuts = shape in (Shape.FIRST_ELEMENTS, Shape.FIRST_TAGS)
    return Asked(rng.choice(TABLES), number, shape.value, rng.randint(1, 4) if cuts else 0)


@dataclass(frozen=True)
class Rows:
    """The tables' files, and all versions of each."""

    folder: Path

    @classmethod
    def written(cls, folder: Path) -> Rows:
        """Write all versions; in each, some members are gone."""
        rows = cls(folder)
        for version in range(VERSIONS):
            members = f"range({MEMBERS - 7 * version})"
            copy(
                "SELECT range AS member_id, 'e' || range % 7 AS element, 't' || range * tagged % 40 AS tag,"
                f" DATE '2019-01-01' AS day FROM {members}, unnest([1, 3, 7]) AS tags(tagged)",
                rows._version(version),
            )
        for table in TABLES:
            rows.put(table, 0)
        return rows

    def path(self, table: str) -> Path:
        """Return the file of a table."""
        return self.folder / f"{table}.parquet"

    def put(self, table: str, version: int) -> None:
        """Exchange the rows of a table; who reads sees the old file or the new."""
        new = self.folder / f"{table}.new"
        new.unlink(missing_ok=True)
        os.link(self._version(version), new)
        new.replace(self.path(table))

    def _version(self, number: int) -> Path:
        return self.folder / f"rows-{number}.parquet"
