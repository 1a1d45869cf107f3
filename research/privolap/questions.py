"""What is asked, of which data and for which promise, and the four verbs of a system that answers.

A question is a small value. Systems with SQL take its text, which DuckDB answers in the clear as well: what is true is
of all rows, before any member is bounded.
"""

from __future__ import annotations

import datetime
import importlib.metadata
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

import duckdb

Key = str | int | None
Answer = Mapping[Key, float]
"""A number for each name, month (`2019-04`) or step (1, 2); a number alone is that of 0."""

MEMBERS, ROWS, SUM = "COUNT(DISTINCT member)", "COUNT(*)", "SUM(amount)"


class Kind(Enum):
    """What is asked, by the words of the table that is printed."""

    TOP = "top list"
    ROWS = "count of rows"
    SUM = "sum"
    MEMBERS = "distinct members"
    SERIES = "series"
    FUNNEL = "funnel"


@dataclass(frozen=True)
class Question:
    """A question about the days from `start` to before `end`, of all members or of one slice.

    A top list names `k` items by members; a series counts members by month; a funnel counts members with a row of the
    data's first tag, and those who have one of the second tag too.
    """

    kind: Kind
    start: datetime.date
    end: datetime.date
    of_slice: str = ""
    without_tag: str = ""
    k: int = 0

    @property
    def conditions(self) -> str:
        """The conditions in SQL."""
        restricted = f" AND slice = '{self.of_slice}'" if self.of_slice else ""
        without = f" AND tag <> '{self.without_tag}'" if self.without_tag else ""
        return f"day >= DATE '{self.start}' AND day < DATE '{self.end}'{restricted}{without}"

    def sql(self, data: Data, table: str) -> str:
        """Return the question as DuckDB reads it; of a series and a list the first column is the key."""
        ending = f"FROM {table} WHERE {self.conditions}"
        first, second = data.tags
        steps = (
            f"COUNT(DISTINCT member) FILTER (tag = '{first}'), COUNT(DISTINCT member) FILTER (tag = '{second}' "
            f"AND member IN (SELECT member {ending} AND tag = '{first}'))"
        )
        return {
            Kind.TOP: f"SELECT item, {MEMBERS} {ending} GROUP BY item ORDER BY 2 DESC, item LIMIT {self.k}",
            Kind.ROWS: f"SELECT 0, {ROWS} {ending}",
            Kind.SUM: f"SELECT 0, COALESCE({SUM}, 0) {ending}",
            Kind.MEMBERS: f"SELECT 0, {MEMBERS} {ending}",
            Kind.SERIES: f"SELECT strftime(day, '%Y-%m'), {MEMBERS} {ending} GROUP BY 1",
            Kind.FUNNEL: f"SELECT {steps} {ending}",
        }[self.kind]

    def answer_in_the_clear(self, data: Data, connection: duckdb.DuckDBPyConnection) -> Answer:
        """Return the exact answer."""
        rows = connection.execute(self.sql(data, f"'{data.path}'")).fetchall()
        if self.kind is Kind.FUNNEL:
            return {step: float(number) for step, number in enumerate(rows[0], 1)}
        return {key: float(number) for key, number in rows}


@dataclass(frozen=True)
class Data:
    """A Parquet file with the columns member, item, slice, tag, day and amount, and what is public of it.

    Bounds are the same for every system: `items` and `months` are in how many of these most members are, `rows` how
    many rows and `total` how much of the amount a member may count with, of which each row has at most `row`.
    """

    path: Path
    first: datetime.date
    last: datetime.date
    slices: tuple[str, ...]
    tags: tuple[str, str]
    items: int
    months: int
    rows: int
    row: int
    total: int


@dataclass(frozen=True)
class Budget:
    """A user-level promise for a whole script, and the questions that it consists of."""

    epsilon: float
    delta: float
    script: tuple[Question, ...]

    def share(self, question: Question, *, weighted: bool) -> float:
        """Return a question's part of the budget: an equal one, or lists get three times what a number gets."""
        if not weighted:
            return 1 / len(self.script)
        return _weight(question) / sum(map(_weight, self.script))

    @property
    def share_of_a_list(self) -> float:
        """Return an equal part for each list, of what nothing else needs."""
        return 1 / max(1, sum(each.kind is Kind.TOP for each in self.script))


def _weight(question: Question) -> int:
    return 3 if question.kind is Kind.TOP else 1


class CannotAnswerError(Exception):
    """The system has no such question."""


class BudgetSpentError(Exception):
    """What is left does not pay for the question."""


class AdapterError(Exception):
    """A system cannot be tried, and why."""


class Session(Protocol):
    """Data that are open, and what is left of the budget."""

    def price(self, question: Question) -> float:
        """Return which part of the whole budget a question costs."""

    def ask(self, question: Question) -> Answer:
        """Answer a question and charge it, or raise CannotAnswerError or BudgetSpentError."""

    def left(self) -> float:
        """Return which part of the budget is left: from 1 to 0, and never more than before."""


class System(Protocol):
    """What is measured."""

    name: str
    of_the_adapter: frozenset[str] = frozenset()
    """Traps that meet the code around the library, which keeps what is left or prepares rows, and not the library."""

    def open(self, data: Data, budget: Budget, state: Path) -> AbstractContextManager[Session]:
        """Open data with a budget; what must outlive the program is kept below `state`, beside that of others."""

    def version(self) -> str:
        """Return the version of what is measured, which is kept beside scores; empty where nothing has one."""
        return ""

    def close(self) -> None:
        """End what still runs."""
        return


def version_of(package: str) -> str:
    """Return an installed package's version, or nothing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
