"""The value columns of a drafted policy: which numbers are summed, between which bounds, and what these cut.

Bounds are powers of two, chosen as others of a draft are: by what they cut of the sum, and the noise that they bring.
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
from gris_data.policy.draft import Draft, DraftColumn, Role
from gris_data.policy.draft_names import adds_up, is_key
from gris_data.policy.draft_shape import Shape
from pinot_connector.engines.parquet import quoted

Floats = NDArray[np.float64]

MOST_STEPS = 2**50
"""No sum may reach 2^53 quanta; the rest is for noise and for centring."""

MOST_NOISE = 2 * 10**7
"""Noise of at most 10^8 steps can be drawn: this is of a question by as many elements as a policy allows."""

_POWERS = tuple(1 << power for power in range(41))
_ROWS_CUT = 0.005
_PARTS = 12
"""Months of a year: into so many buckets a sum is usually divided."""

_BELOW_ZERO = 0.001
_CELLS_A_DOUBLING = 14
_MOST_CELLS = 512
_FINEST = 6


@dataclass(frozen=True)
class DraftValue:
    """A column of numbers, and how it is summed and ranked.

    Attributes:
        name: The column's name.
        type: Its type in the policy.
        quantum: The step that rows are rounded to.
        totals: Between which bounds a member's total counts.
        rows: The same of a row.
        cuts: Upper bounds around the one that was chosen, and the share of the sum of members' totals that each cuts.
        rows_cut: Which share of the sum the bounds of rows cut.
        member_value: Which value of a member quantiles are of.
        grid: Scale, first and last edge of the cells, and their number.
        is_whole: Whether a column of fractions holds whole numbers alone.
        missing: The share of rows without a number that can be summed.
    """

    name: str
    type: ValueType
    quantum: Fraction
    totals: tuple[int, int]
    rows: tuple[int, int]
    cuts: tuple[tuple[int, float], ...]
    rows_cut: float
    member_value: str
    grid: tuple[str, Fraction, Fraction, int]
    is_whole: bool
    missing: float


def values_of(connection: duckdb.DuckDBPyConnection, draft: Draft, shape: Shape) -> Iterator[DraftValue]:
    """Yield the numbers of a table that can be summed; one without a usable row is none."""
    for each in draft.columns:
        if is_number(each):
            yield from _value(connection, draft, shape, each)


def is_number(each: DraftColumn) -> bool:
    """Return whether a column holds numbers that add up to something: no keys, and no places in the calendar."""
    is_integer = each.role is Role.ASKED and each.column.type is ColumnType.INT64
    return (is_integer or each.role is Role.SUMMED) and not is_key(each.column.name)


def _value(
    connection: duckdb.DuckDBPyConnection, draft: Draft, shape: Shape, each: DraftColumn
) -> Iterator[DraftValue]:
    name, who, table = quoted(each.column.name), quoted(draft.member.name), quoted(draft.table.name)
    rows = (
        f"(SELECT {who} AS who, {name}::DOUBLE AS x FROM {table} "  # noqa: S608 - names are quoted
        f"WHERE {who} IS NOT NULL AND abs({name}::DOUBLE) <= {_POWERS[-1]})"
    )
    found = connection.execute(
        f"SELECT x, count(*) AS n FROM {rows} GROUP BY x"  # noqa: S608
    ).fetchnumpy()
    numbers, often = np.asarray(found["x"], dtype=np.float64), np.asarray(found["n"], dtype=np.float64)
    if not np.any(numbers):
        return
    row_bounds = _row_bounds(numbers, often)
    low, high = row_bounds
    totals = np.asarray(
        connection.execute(
            f"SELECT sum(greatest({low}, least({high}, x))) AS total FROM {rows} GROUP BY who"  # noqa: S608
        ).fetchnumpy()["total"],
        dtype=np.float64,
    )
    type_ = ValueType.INT64 if each.column.type is ColumnType.INT64 else ValueType.DECIMAL
    is_whole = bool(np.all(numbers == np.rint(numbers)))
    upper = _upper(totals, shape)
    lower = -_upper(-totals, shape) if low < 0 else 0
    around = sorted({max(upper // 2, 1), upper, upper * 2})
    cuts = tuple((bound, _cut(totals, bound)) for bound in around)
    quantum = _quantum(numbers, shape, (lower, upper), row_bounds, is_whole=is_whole)
    is_integer = type_ is ValueType.INT64
    average = "one_row" if is_integer else "mean"
    member_value = "total" if adds_up(each.column.name, is_integer=is_integer) else average
    ranked = totals if member_value == "total" else numbers
    if any(bound % quantum for bound in (lower, upper, *row_bounds)):
        # Numbers so large that no step suits all of this.
        return
    yield DraftValue(
        name=each.column.name,
        type=type_,
        quantum=quantum,
        totals=(lower, upper),
        rows=row_bounds,
        cuts=cuts,
        rows_cut=_rows_cut(numbers, often, row_bounds),
        member_value=member_value,
        grid=_grid(ranked, quantum, is_fraction=type_ is ValueType.DECIMAL),
        is_whole=is_whole and type_ is ValueType.DECIMAL,
        missing=_missing(connection, draft, float(often.sum())),
    )


def _missing(connection: duckdb.DuckDBPyConnection, draft: Draft, usable: float) -> float:
    """Return the share of members' rows that are not usable."""
    who, table = quoted(draft.member.name), quoted(draft.table.name)
    found = connection.execute(f"SELECT count(*) FROM {table} WHERE {who} IS NOT NULL").fetchone()  # noqa: S608
    return 1 - usable / found[0] if found and found[0] else 0.0


def _row_bounds(numbers: Floats, often: Floats) -> tuple[int, int]:
    """Return the powers of two within which nearly all of the sum lies; nothing below 0 if next to nothing is."""
    weights = np.abs(numbers) * often
    whole = float(weights.sum())
    below = float(weights[numbers < 0].sum())
    low = _row_bound(-numbers, often, whole) if below > _BELOW_ZERO * whole else 0
    high = _row_bound(numbers, often, whole)
    return -low, high


def _row_bound(numbers: Floats, often: Floats, whole: float) -> int:
    enough = (
        bound
        for bound in _POWERS
        if float((np.maximum(numbers - bound, 0) * often).sum()) <= _ROWS_CUT * whole
    )
    return next(enough, _POWERS[-1])


def _rows_cut(numbers: Floats, often: Floats, bounds: tuple[int, int]) -> float:
    cut = np.abs(numbers - np.clip(numbers, *bounds))
    return float((cut * often).sum() / (np.abs(numbers) * often).sum())


def _upper(totals: Floats, shape: Shape) -> int:
    """Return the power of two that cuts little of members' totals, and brings little noise to a month of a year."""
    whole = float(np.maximum(totals, 0).sum()) or 1.0
    noise = math.sqrt(_PARTS / shape.looks.rho) / (whole / _PARTS)
    largest = float(totals.max())
    powers = [bound for bound in _POWERS if bound == 1 or bound / 2 <= largest]
    return min(powers, key=lambda bound: _cut(totals, bound) + bound * noise)


def _cut(totals: Floats, bound: int) -> float:
    whole = float(np.abs(totals).sum()) or 1.0
    return float(np.maximum(totals - bound, 0).sum()) / whole


def _quantum(
    numbers: Floats, shape: Shape, totals: tuple[int, int], rows: tuple[int, int], *, is_whole: bool
) -> Fraction:
    """Return a step in which numbers are exact, or fine, no sum is too large to be exact, and no noise to be drawn."""
    exact = (
        Fraction(1, 10**digits)
        for digits in range(3)
        if np.allclose(numbers * 10**digits, np.rint(numbers * 10**digits), rtol=0, atol=1e-6)
    )
    finest = Fraction(1, 10 ** min(_FINEST, max(2, 4 - math.floor(math.log10(rows[1] - rows[0])))))
    step = Fraction(1) if is_whole else next(exact, finest)
    largest = max(
        shape.most_rows * max(map(abs, rows)), shape.most_members * max(map(abs, totals)), shape.most_rows
    )
    elements = max(shape.looks.delta_0, shape.buckets)
    widest = max(shape.tau * (rows[1] - rows[0]), totals[1] - totals[0])
    noise = Fraction(widest * math.ceil(math.sqrt(elements / shape.looks.rho)))
    # Above 1, a step has to divide bounds, which are powers of two.
    while largest / step > MOST_STEPS or noise / step > MOST_NOISE:
        step *= 10 if step < 1 else 2
    return step


def _grid(ranked: Floats, quantum: Fraction, *, is_fraction: bool) -> tuple[str, Fraction, Fraction, int]:
    """Return public cells that hold nearly all values: of equal width, or widening where values span much."""
    low, high = (float(np.quantile(ranked, share)) for share in (0.005, 0.995))
    end = Fraction(2 ** max(1, math.ceil(math.log2(max(high, 1.0)))))
    if low <= 0 or float(end) / low < 64 or (not is_fraction and end <= _MOST_CELLS):
        begin = Fraction(0) if low >= 0 else -Fraction(2 ** math.ceil(math.log2(max(-low, 1.0))))
        return "linear", begin, end, min(int((end - begin) / quantum), _MOST_CELLS)
    begin = max(quantum, Fraction(2 ** math.floor(math.log2(low))) if low >= 1 else quantum)
    doublings = math.log2(end / begin)
    return "geometric", begin, end, min(max(2, int(_CELLS_A_DOUBLING * doublings)), _MOST_CELLS)
