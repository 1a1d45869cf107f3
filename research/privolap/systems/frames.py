"""What a programmer with the raw data prepares for a library: the rows that a question is about, with their keys.

Conditions and keys are of one row, and steps of one member's rows alone, so that neighbours stay neighbours.
"""

from __future__ import annotations

import datetime
import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.privolap.questions import Answer, Budget, BudgetSpentError, Data, Kind, Question, System

ABOUT_CHARGES = frozenset({"a repeat", "a retry after a crash", "two at once"})


def keyed_rows(question: Question, data: Data) -> Any:
    """Return the columns member, key and amount of the rows that a question counts, as a frame of Polars."""
    import polars as pl  # noqa: PLC0415 - no part of the project needs it

    rows = pl.read_parquet(data.path)
    day = pl.col("day")
    rows = rows.filter((day >= question.start) & (day < question.end))
    if question.of_slice:
        rows = rows.filter(pl.col("slice") == question.of_slice)
    if question.without_tag:
        rows = rows.filter(pl.col("tag") != question.without_tag)
    keys = {Kind.TOP: pl.col("item"), Kind.SERIES: day.dt.strftime("%Y-%m")}
    if question.kind is Kind.FUNNEL:
        first, second = (rows.filter(pl.col("tag") == tag).select("member").unique() for tag in data.tags)
        both = first.join(second, on="member")
        rows = pl.concat([first.with_columns(key=pl.lit("1")), both.with_columns(key=pl.lit("2"))])
        rows = rows.with_columns(amount=pl.lit(0.0))
    else:
        rows = rows.with_columns(key=keys.get(question.kind, pl.lit("0")))
    rows = rows.select("member", "key", "amount").drop_nulls("key")
    counts_members = question.kind not in (Kind.ROWS, Kind.SUM)
    return rows.unique(["member", "key"], maintain_order=False) if counts_members else rows


def total_of_a_member(data: Data) -> Any:
    """Return what a member's amount is added up to, within the bound that is public; NaN is 0."""
    import polars as pl  # noqa: PLC0415 - no part of the project needs it

    each = pl.col("amount").fill_nan(0.0).fill_null(0.0).clip(-data.row, data.row)
    return each.sum().clip(0, data.total)


def added_up(rows: Any, question: Question, data: Data) -> dict[str, list[Any]]:
    """Return each member's rows or amount, of which all that a member may count with is 1."""
    import polars as pl  # noqa: PLC0415 - no part of the project needs it

    amount = total_of_a_member(data)
    counted = pl.len().clip(0, data.rows) / data.rows if question.kind is Kind.ROWS else amount / data.total
    found: dict[str, list[Any]] = rows.group_by("member").agg(amount=counted).to_dict(as_series=False)
    return found


def with_nobody(rows: Any, keys: list[str] | None, number: int = 1) -> Any:
    """Return rows with so many of nobody in each key."""
    import polars as pl  # noqa: PLC0415 - no part of the project needs it

    made = [(f"nobody {key} {place}", key) for key in keys or () for place in range(number)]
    nobody = pl.DataFrame(made, schema={"member": pl.String, "key": pl.String}, orient="row")
    return pl.concat([rows.select("member", "key"), nobody])


def known_keys(question: Question) -> list[str] | None:
    """Return the keys that follow from the question; None: they have to be found."""
    if question.kind is Kind.TOP:
        return None
    if question.kind is Kind.FUNNEL:
        return ["1", "2"]
    if question.kind is not Kind.SERIES:
        return ["0"]
    days = (question.end - question.start).days
    return sorted({f"{question.start + datetime.timedelta(day):%Y-%m}" for day in range(days)})


def keys_of_a_member(question: Question, data: Data) -> int:
    """Return in how many keys a member may count."""
    return {Kind.TOP: data.items, Kind.SERIES: data.months, Kind.FUNNEL: 2}.get(question.kind, 1)


@dataclass(frozen=True)
class Looks:
    """How a specialist finds a list: names by a first look of few items of each member, and numbers by a second one.

    Best with Cofacts of five settings that were tried: a quarter and three quarters of the items that a member counts
    in as documented, half as many names more than are asked for, and a quarter of the list's part for the first look.
    """

    narrow: int
    wide: int
    most: int
    share: float = 0.25

    def names(self, found: dict[str, float]) -> list[str]:
        """Return the most common names that the first look found."""
        return sorted(found, key=lambda name: (-found[name], name))[: self.most]


def looks_of(question: Question, data: Data) -> Looks:
    """Return how a list is found."""
    return Looks(max(1, data.items // 4), max(1, data.items * 3 // 4), math.ceil(1.5 * question.k))


def answer_of(question: Question, found: dict[str, float]) -> Answer:
    """Return an answer with the keys that questions have, and of a list the largest."""
    if question.kind is Kind.TOP:
        return {**dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[: question.k])}
    return {key if question.kind is Kind.SERIES else int(key): value for key, value in found.items()}


class Library(System):
    """A library that answers one question for a promise; its program divides the budget, and forgets when it ends.

    Charges are counted here, so that the library's own account is not tried. Tuned, amounts are added up here as well.
    """

    def __init__(self, name: str, *, tuned: bool = False) -> None:
        self.name = f"{name}, tuned" if tuned else name
        self.tuned = tuned
        self.of_the_adapter = ABOUT_CHARGES | ({"NaN"} if tuned else set())

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[_Session]:
        """Open data with the whole budget: nothing is kept."""
        del state
        yield _Session(self, data, budget)

    @abstractmethod
    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question for its part of the budget."""


class _Session:
    def __init__(self, library: Library, data: Data, budget: Budget) -> None:
        self._library, self._data, self._budget = library, data, budget
        self._spent = 0.0

    def price(self, question: Question) -> float:
        return self._budget.share(question, weighted=self._library.tuned)

    def left(self) -> float:
        return 1 - self._spent

    def ask(self, question: Question) -> Answer:
        share = self.price(question)
        if self._spent + share > 1 + 1e-9:
            raise BudgetSpentError
        self._spent += share
        return answer_of(question, self._library.release(question, self._data, self._budget, share))
