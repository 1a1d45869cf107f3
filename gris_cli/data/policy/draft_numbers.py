"""The value columns of a drafted policy: which numbers are summed, between which bounds, and what these cut.

Bounds are powers of two: the least that leave nearly all of the sum. None is beyond the power above what a dozen
members reach, so that no member's row alone decides a public number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import numpy as np
from numpy.typing import NDArray

from dp_service.terms import ColumnType, ValueType
from gris_cli.data.policy.draft import Draft, DraftColumn, Role
from gris_cli.data.policy.draft_bounds import MOST_CUT, REACHED_BY, UsualLists
from gris_cli.data.policy.draft_names import adds_up, is_key
from gris_cli.data.policy.draft_shape import NAMED_RHO, Shape
from gris_cli.data.table_schema import TableColumn
from pinot_connector.engines.parquet import quoted

Floats = NDArray[np.float64]

MOST_STEPS = 2**50
"""No sum may reach 2^53 quanta; the rest is for noise and for centring."""

MOST_NOISE = 17 * 10**6
"""Noise of at most 10^8 steps can be drawn: one of sixteen sums has at most 5.7 times what a bound alone has."""

_POWERS = tuple(1 << power for power in range(41))
_ROWS_CUT = MOST_CUT / 2
_FINE = 64
"""So many steps make the median, or more."""

_BELOW_ZERO = 0.001
_CELLS_A_DOUBLING = 40
_MOST_CELLS = 512
# Digits behind the point: up to so many are kept as they are, and no step is finer.
_CENTS, _FINEST = 2, 6
# From this quotient of the largest and the smallest value on, cells widen instead of being of equal width.
_WIDE = 64


@dataclass(frozen=True)
class DraftValue:
    """A column of numbers, and how it is summed and ranked.

    Attributes:
        name: The column's name.
        type: Its type in the policy.
        quantum: The step that rows are rounded to.
        totals: Between which bounds a member's total counts.
        rows: The same of a row.
        rows_of_member: How many rows with a value of a member count in full in sums and averages.
        rows_ranked: How many of them have a part in quantiles.
        cut: Which share of the sum of members' totals the upper bound cuts.
        rows_cut: Which share of the sum the bounds of rows cut.
        most_cut: Which share all of these bounds cut at most of a large sum of a usual list.
        grid: Scale, first and last edge of the cells, and their number.
        is_whole: Whether a column of fractions holds whole numbers alone.
        missing: The share of rows without a number that can be summed.
    """

    name: str
    type: ValueType
    quantum: Fraction
    totals: tuple[int, int]
    rows: tuple[int, int]
    rows_of_member: int
    rows_ranked: int
    cut: float
    rows_cut: float
    most_cut: float
    grid: tuple[str, Fraction, Fraction, int]
    is_whole: bool
    missing: float


def values_of(
    connection: duckdb.DuckDBPyConnection, draft: Draft, shape: Shape, lists: UsualLists
) -> Iterator[DraftValue]:
    """Yield the numbers of a table that can be summed; one without a usable row is none."""
    for each in draft.columns:
        if is_number(each):
            yield from _value(connection, draft, shape, lists, each.column)


def is_number(each: DraftColumn) -> bool:
    """Return whether a column holds numbers that add up to something: no keys, and no places in the calendar."""
    is_integer = each.role is Role.ASKED and each.column.type is ColumnType.INT64
    return (is_integer or each.role is Role.SUMMED) and not is_key(each.column.name)


@dataclass(frozen=True)
class _Numbers:
    """Numbers, to four digits so that there are not many, and how often each is there."""

    each: Floats
    often: Floats

    def sum_of(self, parts: Floats) -> float:
        """Return the sum of a part of each number."""
        return float((parts * self.often).sum())

    @property
    def size(self) -> float:
        """What the numbers add up to, signs aside."""
        return self.sum_of(np.abs(self.each)) or 1.0

    def cut(self, bound: int) -> float:
        """Return the share of the sum that an upper bound cuts."""
        return self.sum_of(np.maximum(self.each - bound, 0)) / self.size

    def negative(self) -> _Numbers:
        """Return the numbers with the other sign."""
        return _Numbers(-self.each, self.often)

    def clipped(self, low: float, high: float) -> _Numbers:
        """Return the numbers between two bounds, those beyond at the bounds."""
        return _Numbers(np.clip(self.each, low, high), self.often)

    def quantile(self, share: float) -> float:
        """Return the number below which a share of them is."""
        order = np.argsort(self.each)
        place = int(np.searchsorted(np.cumsum(self.often[order]), share * float(self.often.sum())))
        return float(self.each[order][min(place, order.size - 1)])


def _grouped(connection: duckdb.DuckDBPyConnection, source: str) -> _Numbers:
    """Return the numbers `x` of a source in SQL."""
    digits = "CASE WHEN x = 0 THEN x ELSE round(x, 3 - floor(log10(abs(x)))::INTEGER) END"
    sql = f"SELECT {digits} AS each, count(*) AS often FROM {source} GROUP BY 1"  # noqa: S608 - names are quoted
    found = connection.execute(sql).fetchnumpy()
    return _Numbers(*(np.asarray(found[key], dtype=np.float64) for key in ("each", "often")))


def _value(
    connection: duckdb.DuckDBPyConnection, draft: Draft, shape: Shape, lists: UsualLists, column: TableColumn
) -> Iterator[DraftValue]:
    name, who, table = quoted(column.name), quoted(draft.member.name), quoted(draft.table.name)
    source = (
        f"(SELECT {who} AS who, {name}::DOUBLE AS x FROM {table} "  # noqa: S608 - names are quoted
        f"WHERE {who} IS NOT NULL AND abs({name}::DOUBLE) <= {_POWERS[-1]})"
    )
    numbers = _grouped(connection, source)
    if not np.any(numbers.each):
        return
    reached = _reached(connection, source)
    low, high = rows = _row_bounds(numbers.clipped(-_above(-reached[0]), _above(reached[1])))
    summed = f"sum(greatest({low}, least({high}, x))) AS x FROM {source}"
    clamped = f"(SELECT who, {summed} GROUP BY who)"
    totals = _grouped(connection, clamped)
    in_total = _reached(connection, clamped)
    lower, upper = _bounds(totals, in_total)
    # Of missing values `least` would make the bound itself.
    usable = f"abs({name}::DOUBLE) <= {_POWERS[-1]}"
    of_row = f"CASE WHEN {usable} THEN greatest({low}, least({high}, {name}::DOUBLE)) END"
    amount = f"greatest(0, {of_row})"
    if not low:
        upper = lists.upper(amount, _above(in_total[1]))
    digits = _digits(connection, source)
    usual = _Numbers(np.abs(numbers.each), numbers.often * (numbers.each != 0)).quantile(0.5)
    quantum = _quantum(digits, usual, shape, (lower, upper), rows)
    if any(bound % quantum for bound in (lower, upper, *rows)):
        # Numbers so large that no step suits all of this.
        return
    type_ = ValueType.INT64 if column.type is ColumnType.INT64 else ValueType.DECIMAL
    low_value, high_value = max(numbers.quantile(0.005), reached[0]), min(numbers.quantile(0.995), reached[1])
    if adds_up(column.name, is_integer=type_ is ValueType.INT64):
        # Quantiles of members' totals are among the same cells.
        high_value = max(high_value, min(totals.quantile(0.995), in_total[1]))
    rows_of_member = min(shape.rows, lists.rows_with_value(of_row, low, high, upper))
    rows_cut = numbers.sum_of(np.abs(numbers.each - np.clip(numbers.each, low, high))) / numbers.size
    most_cut = 0.0 if low else lists.most_cut(amount, rows_of_member, high, upper)
    yield DraftValue(
        name=column.name,
        type=type_,
        quantum=quantum,
        totals=(lower, upper),
        rows=rows,
        rows_of_member=rows_of_member,
        rows_ranked=min(shape.rows, lists.rows_ranked(name)),
        cut=totals.cut(upper),
        rows_cut=rows_cut,
        most_cut=rows_cut + most_cut,
        grid=_grid(low_value, high_value, quantum, type_),
        is_whole=digits == 0 and type_ is ValueType.DECIMAL,
        missing=_missing(connection, draft, float(numbers.often.sum())),
    )


def _reached(connection: duckdb.DuckDBPyConnection, source: str) -> tuple[float, float]:
    """Return what a dozen members are at or below, and at or above; of fewer members, what one of them is."""
    found = connection.execute(
        f"WITH ends AS (SELECT min(x) AS low, max(x) AS high FROM {source} GROUP BY who) SELECT "  # noqa: S608
        f"CASE WHEN count(*) < {REACHED_BY} THEN min(low) ELSE min(low, {REACHED_BY})[-1] END, "
        f"CASE WHEN count(*) < {REACHED_BY} THEN max(high) ELSE max(high, {REACHED_BY})[-1] END FROM ends"
    ).fetchone()
    low, high = found or (0.0, 0.0)
    return float(low), float(high)


def _above(number: float) -> int:
    """Return the power of two that is not below a number."""
    return next((bound for bound in _POWERS if bound >= number), _POWERS[-1])


def _missing(connection: duckdb.DuckDBPyConnection, draft: Draft, usable: float) -> float:
    """Return the share of members' rows that are not usable."""
    who, table = quoted(draft.member.name), quoted(draft.table.name)
    found = connection.execute(f"SELECT count(*) FROM {table} WHERE {who} IS NOT NULL").fetchone()  # noqa: S608
    return 1 - usable / found[0] if found and found[0] else 0.0


def _digits(connection: duckdb.DuckDBPyConnection, source: str) -> int:
    """Return how many digits numbers have behind the point: 0 to 2, or 3 if a dozen members have more."""
    others = "count(DISTINCT who) FILTER (WHERE abs(x * {0} - round(x * {0})) >= 1e-6)"
    few = f"least({REACHED_BY}, count(DISTINCT who))"
    tests = ", ".join(f"{others.format(10**digits)} < {few}" for digits in range(3))
    found = connection.execute(f"SELECT {tests} FROM {source}").fetchone() or ()  # noqa: S608
    return next((digits for digits, holds in enumerate(found) if holds), 3)


def _row_bounds(numbers: _Numbers) -> tuple[int, int]:
    """Return the powers of two within which nearly all of the sum lies; nothing below 0 if next to nothing is."""
    below = numbers.sum_of(np.maximum(-numbers.each, 0))
    low = _row_bound(numbers.negative()) if below > _BELOW_ZERO * numbers.size else 0
    return -low, _row_bound(numbers)


def _row_bound(numbers: _Numbers) -> int:
    return next((bound for bound in _POWERS if numbers.cut(bound) <= _ROWS_CUT), _POWERS[-1])


def _bounds(totals: _Numbers, reached: tuple[float, float]) -> tuple[int, int]:
    """Return the powers of two within which nearly all of the sum of totals lies, and no more than a dozen reach."""
    least, most = reached
    return -_bound(totals.negative(), _above(-least)) if least < 0 else 0, _bound(totals, _above(most))


def _bound(totals: _Numbers, most: int) -> int:
    counted = totals.clipped(-most, most)
    return next((bound for bound in _POWERS if bound >= most or counted.cut(bound) <= MOST_CUT), most)


def _quantum(
    digits: int, usual: float, shape: Shape, totals: tuple[int, int], rows: tuple[int, int]
) -> Fraction:
    """Return a step in which numbers are exact, or fine beside a usual one.

    It is larger where a sum would be too large to be exact, or noise to be drawn.
    """
    if digits > _CENTS:
        fine = 4 - math.floor(math.log10(rows[1] - rows[0])), math.ceil(math.log10(_FINE / usual))
        digits = min(_FINEST, max(_CENTS, *fine))
    step = Fraction(1, 10**digits)
    largest = max(
        shape.most_members * shape.rows * max(map(abs, rows)),
        shape.most_rows * max(map(abs, rows)),
        shape.most_members * max(map(abs, totals)),
        shape.most_rows,
    )
    elements = math.sqrt(shape.most_typical)
    # Sums are not centred: as wide as from minus to plus the largest.
    widest = max(max(shape.rows, elements) * (rows[1] - rows[0]), elements * 2 * max(map(abs, totals)))
    noise = math.ceil(widest / math.sqrt(NAMED_RHO))
    # A step divides bounds, which are powers of two: below 1 it is one by a power of 10, or two or five of these.
    while largest / step > MOST_STEPS or noise / step > MOST_NOISE:
        is_two = step < 1 and str(step.denominator).startswith("5")
        step *= Fraction(5, 2) if is_two else 2
    return step


def _grid(low: float, high: float, quantum: Fraction, kind: ValueType) -> tuple[str, Fraction, Fraction, int]:
    """Return public cells between two values: of equal width, or widening where values span much."""
    end = max(Fraction(2 ** max(1, math.ceil(math.log2(max(high, 1.0))))), 2 * quantum)
    is_narrow = kind is ValueType.INT64 and end <= _MOST_CELLS
    if low <= 0 or float(end) / low < _WIDE or is_narrow:
        begin = Fraction(0) if low >= 0 else -Fraction(2 ** math.ceil(math.log2(max(-low, 1.0))))
        return "linear", begin, end, min(int((end - begin) / quantum), _MOST_CELLS)
    begin = max(quantum, Fraction(2 ** math.floor(math.log2(low))) if low >= 1 else quantum)
    doublings = math.log2(end / begin)
    return "geometric", begin, end, min(max(2, int(_CELLS_A_DOUBLING * doublings)), _MOST_CELLS)
