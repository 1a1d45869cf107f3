"""What analysts ask in `bench.answers`, and when an answer is useful: questions in SQL, judged beside the true answer.

Every question is one text, which Gris is asked and which DuckDB answers in the clear. What is true is therefore of all
rows, before any member is bounded: an error is of noise and of bounds together.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb
import numpy as np

from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue

RIGHT_NAMES, MEAN_ERROR, RANK_ERROR = 0.95, 0.10, 0.02
SLICED = 0.8
"""Which part of an audience's questions is about one slice."""

FEW_ITEMS = 200
LISTS = (10, 50)
QUANTILES = (25, 50, 75)
REFRESHES = 90
MONTHS, WEEKS = 6, 8
"""How many buckets a series shows: no more than a member counts in."""


@dataclass(frozen=True)
class Rows:
    """Rows of the columns member, item, slice, tag, day and amount; a member has one slice, the largest is first."""

    title: str
    path: Path
    first: datetime.date
    last: datetime.date
    items: int
    slices: tuple[str, ...]
    tags: tuple[str, ...]
    largest_amount: int

    @classmethod
    def of(cls, title: str, path: Path) -> Rows:
        """Read what is public of a file, and whether its amounts are worth more than a count."""
        with duckdb.connect() as connection:
            table = connection.read_parquet(str(path))
            first, last, items, largest = table.aggregate(
                "min(day), max(day), count(DISTINCT item), max(amount)"
            ).fetchall()[0]
            slices, tags = (_values_of(table, name) for name in ("slice", "tag"))
        return cls(title, path, first, last, items, slices, tags, largest)


def _values_of(table: duckdb.DuckDBPyRelation, name: str) -> tuple[str, ...]:
    """Return the values of a column, the one of most members first."""
    counted = table.aggregate(f"{name}, count(DISTINCT member) AS members", name)
    return tuple(value for value, _ in counted.order(f"members DESC, {name}").fetchall())


@dataclass(frozen=True)
class Asked:
    """A question, and whether a result answers it well enough, given DuckDB with the tables that the text names."""

    text: str
    is_useful: Callable[[PrivateResult, duckdb.DuckDBPyConnection], bool]


def audience(rows: Rows, random: Random) -> Iterator[Asked]:
    """Yield top lists, most of them of one slice: the largest slice as often as Zipf's law says, and so on."""
    weights = [1 / rank for rank in range(1, len(rows.slices) + 1)]
    while True:
        of_slice = random.choices(rows.slices, weights)[0] if random.random() < SLICED else ""
        yield top_list(random.choice(LISTS), _conditions(_nearly_all(rows, random), of_slice))


def dashboard(rows: Rows, random: Random) -> Iterator[Asked]:
    """Yield twelve panels for each of the last days, one day after the other."""
    for ago in reversed(range(REFRESHES)):
        end = rows.last - datetime.timedelta(ago)
        month = _month_before(end.replace(day=1), MONTHS - 1)
        week = end - datetime.timedelta(7 * (WEEKS - 1) + end.weekday())
        so_far, quarter = (rows.first, end), (end - datetime.timedelta(90), end)
        panels = [
            some_numbers("", "COUNT(DISTINCT member)", so_far),
            some_numbers("", "COUNT(DISTINCT member), SUM(amount)", so_far),
            some_numbers("", "COUNT(*)", quarter),
            some_numbers("DATE_TRUNC('month', day)", "COUNT(DISTINCT member)", (month, end)),
            some_numbers("DATE_TRUNC('month', day)", "COUNT(DISTINCT member), SUM(amount)", (month, end)),
            some_numbers("DATE_TRUNC('month', day)", "COUNT(*)", (month, end)),
            some_numbers("DATE_TRUNC('week', day)", "COUNT(DISTINCT member)", (week, end)),
            some_numbers("slice", "COUNT(DISTINCT member)", so_far),
            some_numbers("tag", "COUNT(DISTINCT member), SUM(amount)", quarter),
            top_list(10, _conditions(so_far)),
            top_list(50, _conditions(quarter)),
            top_list(10, _conditions(quarter, rows.slices[0])),
        ]
        yield from random.sample(panels, len(panels))


def retail(rows: Rows, random: Random) -> Iterator[Asked]:
    """Yield questions of a shop: revenue by month and by slice, averages, quantiles, top products."""
    weights = [1 / rank for rank in range(1, len(rows.slices) + 1)]
    while True:
        span = _nearly_all(rows, random)
        of_slice = random.choice(("", random.choices(rows.slices, weights)[0]))
        last_month = _month_before(rows.last.replace(day=1), random.randrange(3))
        months = (
            _month_before(last_month, MONTHS - 1),
            last_month + datetime.timedelta(random.randrange(15, 29)),
        )
        yield random.choice(
            [
                some_numbers(
                    "DATE_TRUNC('month', day)", "COUNT(DISTINCT member), SUM(amount)", months, of_slice
                ),
                some_numbers("slice", "COUNT(DISTINCT member), SUM(amount)", span),
                some_numbers("", "COUNT(*), AVG(amount)", span, of_slice),
                some_quantiles(span, of_slice),
                top_list(random.choice(LISTS), _conditions(span, of_slice)),
            ]
        )


WORKLOADS: dict[str, Callable[[Rows, Random], Iterator[Asked]]] = {
    "audience": audience,
    "dashboard": dashboard,
    "retail": retail,
}


def workloads_for(rows: Rows) -> tuple[str, ...]:
    """Return the workloads that make sense: no long lists of few items, no revenue of amounts of 0 and 1."""
    lists = ("audience",) if rows.items >= FEW_ITEMS else ()
    return (*lists, "dashboard", *(("retail",) if rows.largest_amount > 1 else ()))


def _nearly_all(rows: Rows, random: Random) -> tuple[datetime.date, datetime.date]:
    """Return a range of which no other question has both ends, by and large."""
    tenth = (rows.last - rows.first).days // 10
    start, end = (datetime.timedelta(random.randrange(tenth)) for _ in range(2))
    return rows.first + start, rows.last - end


def _month_before(month: datetime.date, months: int) -> datetime.date:
    place = month.year * 12 + month.month - 1 - months
    return datetime.date(place // 12, place % 12 + 1, 1)


def _conditions(span: tuple[datetime.date, datetime.date], of_slice: str = "") -> str:
    start, end = span
    restricted = f" AND slice = '{of_slice}'" if of_slice else ""
    return f"day >= DATE '{start}' AND day < DATE '{end}'{restricted}"


def top_list(k: int, conditions: str) -> Asked:
    """Ask for the largest items."""
    text = f"SELECT item, COUNT(DISTINCT member) FROM lists WHERE {conditions} GROUP BY item ORDER BY 2 DESC"  # noqa: S608

    def is_useful(result: PrivateResult, connection: duckdb.DuckDBPyConnection) -> bool:
        counts: dict[object, int] = dict(connection.execute(text).fetchall())
        if not counts:
            return False
        wanted = min(k, len(counts))
        # Elements with as many as the last of them are as right.
        least = sorted(counts.values(), reverse=True)[wanted - 1]
        shown = {row.element[0]: row.noisy_count or 0 for row in result.rows}
        right = sum(counts.get(item, 0) >= least for item in shown)
        errors = [
            abs(noisy - counts.get(item, 0)) / max(counts.get(item, 0), 1) for item, noisy in shown.items()
        ]
        return right >= math.floor(RIGHT_NAMES * wanted) and _is_exact(errors)

    return Asked(f"{text} LIMIT {k}", is_useful)


def some_numbers(
    by: str, numbers: str, span: tuple[datetime.date, datetime.date], of_slice: str = ""
) -> Asked:
    """Ask for numbers of every bucket or slice; what is not shown is off by all of it."""
    ending = f"FROM numbers WHERE {_conditions(span, of_slice)}" + (f" GROUP BY {by}" if by else "")

    def is_useful(result: PrivateResult, connection: duckdb.DuckDBPyConnection) -> bool:
        cells = connection.execute(f"SELECT {by or '1'}, {numbers} {ending}").fetchall()
        shown = {
            _plain(row.element[0]) if by else 1: _values(row.noisy_count, row.values) for row in result.rows
        }
        errors = [
            abs((found or 0.0) - float(number)) / max(abs(float(number)), 1)
            for key, *numbers in cells
            for found, number in zip(shown.get(_plain(key), [None] * len(numbers)), numbers, strict=True)
        ]
        return _is_exact(errors)

    return Asked(f"SELECT {f'{by}, ' if by else ''}{numbers} {ending}", is_useful)


def some_quantiles(span: tuple[datetime.date, datetime.date], of_slice: str) -> Asked:
    """Ask for quantiles of members' totals; an error is the part of the members between it and the wanted rank."""
    ending = f"FROM numbers WHERE {_conditions(span, of_slice)}"
    asked = ", ".join(f"PERCENTILE(amount, {each})" for each in QUANTILES)

    def is_useful(result: PrivateResult, connection: duckdb.DuckDBPyConnection) -> bool:
        rows = connection.execute(f"SELECT SUM(amount) {ending} GROUP BY member").fetchall()
        totals = np.array([total for (total,) in rows], dtype=float)
        found = [number for row in result.rows for number in _values(None, row.values)]
        if len(found) != len(QUANTILES):
            return False
        errors = [
            max(
                float(np.mean(totals < value)) - each / 100, each / 100 - float(np.mean(totals <= value)), 0.0
            )
            for each, value in zip(QUANTILES, found, strict=True)
        ]
        return max(errors) <= RANK_ERROR

    return Asked(f"SELECT {asked} {ending}", is_useful)


def _values(noisy_count: float | None, values: tuple[object, ...]) -> list[float]:
    counted = [] if noisy_count is None else [float(noisy_count)]
    return counted + [float(each.value) for each in values if isinstance(each, AggregateValue)]


def _plain(key: object) -> object:
    return key.date() if isinstance(key, datetime.datetime) else key


def _is_exact(errors: list[float]) -> bool:
    return bool(errors) and sum(errors) / len(errors) <= MEAN_ERROR
