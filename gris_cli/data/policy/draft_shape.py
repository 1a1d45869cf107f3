"""How a drafted policy bounds contributions, by the owner's rows.

Bounds are powers of two, so that they tell little of anybody, and none is above what a dozen members reach.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import duckdb

from dp_service.mechanisms import Currency
from dp_service.noise.gaussian_price import rho_of_units
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.policy_types import NAMES_SHARE
from dp_service.queries.time_parts import TimePart
from dp_service.terms import ColumnType
from gris_cli.data.errors import InputError
from gris_cli.data.policy.draft import Draft, Role
from gris_cli.data.policy.draft_bounds import REACHED_BY, UsualLists
from gris_cli.data.policy.draft_contents import has_rows
from gris_cli.data.table_schema import TableColumn
from pinot_connector.engines.parquet import quoted

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-11"))
UNITS, MOST_UNITS = 10, 50
"""What a question costs, and what one may cost that says how exact it has to be."""

RHO = float(rho_of_units(CURRENCY.epsilon_per, UNITS))
NAMED_RHO = float(rho_of_units(CURRENCY.epsilon_per, (1 - NAMES_SHARE) * UNITS))
"""What counts of a known domain cost, and what is left for them where a first look finds names."""


@dataclass(frozen=True)
class Shape:
    """What is chosen by the rows of a table.

    Attributes:
        typical: How many values of each column a member typically has, by name.
        buckets: In how many buckets of time, by their length; empty: there is no time.
        parts: In how many parts of time, by their names; empty: there is no time.
        rows: How many rows of a member count in full, in all elements together.
        rows_cut: Which share of the rows that leaves out, in one total of all rows.
        largest_cut: Which share bounds cut at most of a total, and of each large number of a usual list.
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
    largest_cut: float
    most_members: int
    most_rows: int
    months: tuple[datetime.date, datetime.date] | None

    @property
    def most_typical(self) -> int:
        """How many values of one column, or buckets or parts of time, a member typically has at most."""
        return max((*self.typical.values(), *self.buckets.values(), *self.parts.values()), default=1)


def shape_of(connection: duckdb.DuckDBPyConnection, draft: Draft, lists: UsualLists) -> Shape:
    """Return what is chosen by the rows that a connection reads; the lists of the table become known to `lists`."""
    rows, members = _one(connection, f"SELECT count(*), count(DISTINCT {_member(draft)}) FROM {_rows(draft)}")  # noqa: S608
    columns = [each for each in draft.columns if each.role in (Role.ASKED, Role.WITHHELD)]
    time = next((time_of(each) for each in draft.times), None)
    typical = {
        each.column.name: lists.typical(quoted(each.column.name), NAMED_RHO, is_usual=each.role is Role.ASKED)
        for each in columns
        if each.column.type is not ColumnType.TIMESTAMP
    }
    buckets = {
        each.value: lists.typical(f"date_trunc('{each}', {time})", RHO)
        for each in BucketLength
        if time is not None
    }
    parts = {
        each.value: lists.typical(f"{_PARTS[each]}({time})", RHO)
        for each in (parts_of(draft) if time is not None else ())
    }
    bound = lists.rows()
    cuts = lists.cuts(bound)
    return Shape(
        typical=typical,
        buckets=buckets,
        parts=parts,
        rows=bound,
        rows_cut=cuts[0],
        largest_cut=max(cuts),
        most_members=_power_of_ten(members),
        most_rows=_power_of_ten(rows),
        months=_months(connection, draft) if draft.times else None,
    )


def draft_before(connection: duckdb.DuckDBPyConnection, draft: Draft, before: datetime.date) -> Draft:
    """Return the draft of a table's rows before a day.

    Raises:
        InputError: The table has no time, or no such row with a member.
    """
    # With a space, so that it is no table's name.
    earlier = replace(draft, table=replace(draft.table, name="gris rows before"))
    if draft.times:
        where = f"{time_of(draft.times[0])} < DATE '{before}'"
        connection.execute(f"CREATE TEMP VIEW {_rows(earlier)} AS SELECT * FROM {_rows(draft)} WHERE {where}")  # noqa: S608 - names are quoted
    if not (draft.times and has_rows(connection, earlier.table, draft.member)):
        raise InputError(f"the table {draft.table.name} has no row before {before} to learn bounds from")
    return earlier


def usual_lists(connection: duckdb.DuckDBPyConnection, draft: Draft) -> UsualLists:
    """Return the lists of a table, of which only its total is known yet."""
    return UsualLists(connection, _rows(draft), _member(draft), RHO)


def parts_of(draft: Draft) -> tuple[TimePart, ...]:
    """Return by which parts of time a draft offers to group: days have no hours."""
    are_days = draft.times[0].type is ColumnType.DATE or draft.times[0].time_unit == "days"
    return tuple(each for each in _PARTS if each is not TimePart.HOUR or not are_days)


_PARTS = {TimePart.HOUR: "hour", TimePart.WEEKDAY: "isodow", TimePart.MONTH: "month"}
"""The parts that a draft offers, with what DuckDB calls them."""


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
