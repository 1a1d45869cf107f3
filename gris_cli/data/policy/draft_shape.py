"""How a drafted policy bounds contributions, by one pass over the owner's rows.

Bounds are powers of two, so that they tell little of anybody: the least that leaves nearly all of what members have.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb

from dp_service.mechanisms import Currency
from dp_service.noise.gaussian_price import rho_of_units
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.policy_types import DEFAULT_NAMES_SHARE
from dp_service.queries.time_parts import TimePart
from dp_service.terms import ColumnType
from gris_cli.data.policy.draft import Draft, Role
from gris_cli.data.table_schema import TableColumn
from pinot_connector.engines.parquet import quoted

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-11"))
UNITS, MOST_UNITS = 10, 50
"""What a question costs, and what one may cost that says how exact it has to be."""

MOST_CUT = 1 / 16
"""No bound leaves out more of what members have."""

REACHED_BY = 12
"""How many members reach a bound that is chosen, at least: a few who are far from the others do not decide it."""

_MOST_ELEMENTS, _MOST_ROWS = 2**10, 2**15


@dataclass(frozen=True)
class Shape:
    """What is chosen by the rows of a table.

    Attributes:
        typical: How many values of each column a member typically has, by name.
        buckets: In how many buckets of time, by their length; empty: there is no time.
        parts: In how many parts of time, by their names; empty: there is no time.
        rows: How many rows of a member count in full, in all elements together.
        rows_cut: Which share of the rows that leaves out, in one total of all rows.
        most_members: A power of ten far above the number of members.
        most_rows: The same of rows.
        months: The first day of the months of nearly all rows, and the day after the last of them; None: there is no
            time, or hardly a member.
    """

    typical: Mapping[str, int]
    buckets: Mapping[str, int]
    parts: Mapping[str, int]
    rows: int
    rows_cut: float
    most_members: int
    most_rows: int
    months: tuple[datetime.date, datetime.date] | None

    @property
    def most_typical(self) -> int:
        """How many values of one column, or buckets or parts of time, a member typically has at most."""
        return max((*self.typical.values(), *self.buckets.values(), *self.parts.values()), default=1)

    @property
    def rho(self) -> float:
        """What is left of the units for counts, in the currency of a draft."""
        return float(rho_of_units(CURRENCY.epsilon_per, (1 - DEFAULT_NAMES_SHARE) * UNITS))


def shape_of(connection: duckdb.DuckDBPyConnection, draft: Draft) -> Shape:
    """Return what is chosen by the rows that a connection reads."""
    rows, members = _one(connection, f"SELECT count(*), count(DISTINCT {_member(draft)}) FROM {_rows(draft)}")  # noqa: S608
    columns = [each.column for each in draft.columns if each.role in (Role.ASKED, Role.WITHHELD)]

    def typical(value: str) -> int:
        return _bound(connection, _sizes(draft, f"count(DISTINCT {value})"), _MOST_ELEMENTS)

    total = _sizes(draft, "count(*)")
    of_member = _bound(connection, total, _MOST_ROWS)
    times = [time_of(each) for each in draft.times[:1]]
    return Shape(
        typical={
            each.name: typical(quoted(each.name)) for each in columns if each.type is not ColumnType.TIMESTAMP
        },
        buckets={each: typical(f"date_trunc('{each}', {time})") for time in times for each in BucketLength},
        parts={each: typical(f"{_PARTS[each]}({time})") for time in times for each in parts_of(draft)},
        rows=of_member,
        rows_cut=_cut(connection, total, of_member),
        most_members=_power_of_ten(members),
        most_rows=_power_of_ten(rows),
        months=_months(connection, draft) if draft.times else None,
    )


def parts_of(draft: Draft) -> tuple[TimePart, ...]:
    """Return by which parts of time a draft offers to group: days have no hours."""
    are_days = draft.times[0].type is ColumnType.DATE or draft.times[0].time_unit == "days"
    return tuple(each for each in _PARTS if each is not TimePart.HOUR or not are_days)


_PARTS = {TimePart.HOUR: "hour", TimePart.WEEKDAY: "isodow", TimePart.MONTH: "month"}
"""The parts that a draft offers, with what DuckDB calls them."""


def _sizes(draft: Draft, size: str) -> str:
    """Return SQL for the `size` of what each member has, by an aggregate over their rows."""
    who = _member(draft)
    return f"SELECT {who} AS who, {size} AS size FROM {_rows(draft)} WHERE {who} IS NOT NULL GROUP BY {who}"  # noqa: S608


def _bound(connection: duckdb.DuckDBPyConnection, sizes: str, most: int) -> int:
    """Return the least power of two that leaves nearly all of the sizes, as far as a dozen members reach."""
    (reached,) = _one(
        connection,
        f"SELECT min(size) FROM (SELECT max(size) AS size FROM ({sizes}) GROUP BY who "  # noqa: S608
        f"ORDER BY 1 DESC LIMIT {REACHED_BY})",
    )
    within = f"SELECT least(size, {reached or 1}) AS size, count(*) FROM ({sizes}) GROUP BY 1"  # noqa: S608
    found = connection.execute(within).fetchall()
    allowed = MOST_CUT * sum(size * often for size, often in found)
    bound = 1
    while bound < most and sum(max(0, size - bound) * often for size, often in found) > allowed:
        bound *= 2
    return bound


def _cut(connection: duckdb.DuckDBPyConnection, sizes: str, bound: int) -> float:
    (cut,) = _one(connection, f"SELECT 1 - sum(least(size, {bound})) / sum(size) FROM ({sizes})")  # noqa: S608
    return float(cut or 0)


def _months(
    connection: duckdb.DuckDBPyConnection, draft: Draft
) -> tuple[datetime.date, datetime.date] | None:
    """Return months that leave out rows of fewer members than a dozen before them, and after them."""
    month = f"CAST(date_trunc('month', {time_of(draft.times[0])}) AS DATE)"
    ends = (
        f"SELECT min({month}) AS first, max({month}) AS last FROM {_rows(draft)} "  # noqa: S608 - names are quoted
        f"GROUP BY {_member(draft)} HAVING first IS NOT NULL"
    )
    members, first, last = _one(
        connection,
        f"SELECT count(*), min(first, {REACHED_BY})[-1], max(last, {REACHED_BY})[-1] FROM ({ends})",  # noqa: S608
    )
    return None if members < REACHED_BY else (first, BucketLength.MONTH.day_after(last))


def time_of(column: TableColumn) -> str:
    """Return SQL for the time of a row, in DuckDB's own type."""
    name = quoted(column.name)
    factor = {"seconds": 1_000_000, "milliseconds": 1000, "microseconds": 1}.get(column.time_unit, 0)
    return f"make_timestamp({name} * {factor})" if factor else name


def _member(draft: Draft) -> str:
    return quoted(draft.member.name)


def _rows(draft: Draft) -> str:
    return quoted(draft.table.name)


def _power_of_ten(number: int) -> int:
    """Return a power of ten, ten times as large as a number or more."""
    return int(10 ** (math.ceil(math.log10(max(number, 1))) + 1))


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    return connection.execute(query).fetchone() or ()
