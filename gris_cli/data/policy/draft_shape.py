"""How a drafted policy bounds contributions, by one pass over the owner's rows.

Bounds are powers of two, so that they tell little of anybody: the least that leaves nearly all of what members have.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb

from dp_service.mechanisms import Currency
from dp_service.noise.gaussian_price import rho_of_units
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.terms import ColumnType
from gris_cli.data.policy.draft import Draft
from gris_cli.data.table_schema import TableColumn
from pinot_connector.engines.parquet import quoted

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-11"))
UNITS, MOST_UNITS = 10, 50
"""What a question costs, and what one may cost that says how exact it has to be."""

NAMES_SHARE, MOST_NAMES = Fraction(3, 8), 75
"""The part of the units with which a first look names elements, and how many it names."""

MOST_CUT = 1 / 16
"""No bound leaves out more of what members have."""

REACHED_BY = 12
"""How many members reach a bound that is chosen, at least: a few who are far from the others do not decide it."""

_MOST_ELEMENTS, _MOST_ROWS = 2**10, 2**16


@dataclass(frozen=True)
class Shape:
    """What is chosen by the rows of a table.

    Attributes:
        typical: In how many elements a member counts.
        tau: How many rows of a member count in one element; a total of all rows is one element too.
        rows_cut: Which share of the rows that leaves out, in one total of all rows.
        list_tau: What tau would be if only lists by one column had to have nearly all of their rows.
        list_rows_cut: Which share of the rows that would leave out, in one total of all rows.
        buckets: In how many buckets of time a member counts; 0: there is no time.
        most_members: A power of ten far above the number of members.
        most_rows: The same of rows.
        months: The first day of the months of nearly all rows, and the day after the last of them; None: there is no
            time, or hardly a member.
    """

    typical: int
    tau: int
    rows_cut: float
    list_tau: int
    list_rows_cut: float
    buckets: int
    most_members: int
    most_rows: int
    months: tuple[datetime.date, datetime.date] | None

    @property
    def names_typical(self) -> int:
        """In how many elements a member counts in a first look, which names elements."""
        return max(1, self.typical // 2)

    @property
    def rho(self) -> float:
        """What is left of the units for counts, in the currency of a draft."""
        return float(rho_of_units(CURRENCY.epsilon_per, (1 - NAMES_SHARE) * UNITS))


def shape_of(connection: duckdb.DuckDBPyConnection, draft: Draft) -> Shape:
    """Return what is chosen by the rows that a connection reads."""
    rows, members = _one(connection, f"SELECT count(*), count(DISTINCT {_member(draft)}) FROM {_rows(draft)}")  # noqa: S608
    # Days are asked for in buckets, which have a bound of their own.
    columns = [each for each in draft.elements if each.type is not ColumnType.DATE]
    sizes = [_sizes(draft, f"count(DISTINCT {quoted(each.name)})") for each in columns]
    # No element has more rows of a member than the table, so a bound for totals also does for lists.
    total = _sizes(draft, "count(*)")
    tau = _bound(connection, total, _MOST_ROWS)
    of_lists = (_bound(connection, _sizes(draft, "count(*)", each), _MOST_ROWS) for each in columns)
    list_tau = min(tau, max(of_lists, default=tau))
    return Shape(
        typical=max((_bound(connection, each, _MOST_ELEMENTS) for each in sizes), default=4),
        tau=tau,
        rows_cut=_cut(connection, total, tau),
        list_tau=list_tau,
        list_rows_cut=_cut(connection, total, list_tau),
        buckets=_bound(connection, _sizes(draft, _weeks(draft)), _MOST_ELEMENTS) if draft.times else 0,
        most_members=_power_of_ten(members),
        most_rows=_power_of_ten(rows),
        months=_months(connection, draft) if draft.times else None,
    )


def _sizes(draft: Draft, size: str, element: TableColumn | None = None) -> str:
    """Return SQL for the `size` of what each member has, by an aggregate over their rows; of each element if given."""
    who = _member(draft)
    by, has = (who, "") if element is None else (f"{who}, {quoted(element.name)}", quoted(element.name))
    condition = f"{who} IS NOT NULL" + (f" AND {has} IS NOT NULL" if has else "")
    return f"SELECT {who} AS who, {size} AS size FROM {_rows(draft)} WHERE {condition} GROUP BY {by}"  # noqa: S608


def _bound(connection: duckdb.DuckDBPyConnection, sizes: str, most: int) -> int:
    """Return the least power of two that leaves nearly all of the sizes, as far as a dozen members reach."""
    (reached,) = _one(
        connection,
        f"SELECT min(size) FROM (SELECT max(size) AS size FROM ({sizes}) GROUP BY who "  # noqa: S608
        f"ORDER BY 1 DESC LIMIT {REACHED_BY})",
    )
    within = f"SELECT least(size, {reached or 1}) AS size FROM ({sizes})"  # noqa: S608
    bound = 1
    while bound < most and _cut(connection, within, bound) > MOST_CUT:
        bound *= 2
    return bound


def _cut(connection: duckdb.DuckDBPyConnection, sizes: str, bound: int) -> float:
    (cut,) = _one(connection, f"SELECT 1 - sum(least(size, {bound})) / sum(size) FROM ({sizes})")  # noqa: S608
    return float(cut or 0)


def _weeks(draft: Draft) -> str:
    return f"count(DISTINCT date_trunc('week', {time_of(draft.times[0])}))"


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
