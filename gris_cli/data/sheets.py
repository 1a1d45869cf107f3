"""Tables of numbers: what their columns are, and how people read their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

Cell: TypeAlias = str | int | float | bool | Fraction | None


def plainly(value: Cell) -> str:
    """Return a cell as people read it: six significant digits, and nothing where there is nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | Fraction):
        return f"{float(value):.6g}"
    return str(value)


def upwards(value: Cell) -> str:
    """Return an epsilon to two decimals, rounded up: a smaller one would promise too much."""
    if not isinstance(value, float | Fraction):
        return plainly(value)
    cents = Fraction(value) * 100
    return f"{-(-cents.numerator // cents.denominator) / 100:.2f}"


def percent(value: Cell) -> str:
    """Return a share of one in percent."""
    return f"{100 * value:.4g} %" if isinstance(value, float) else plainly(value)


@dataclass(frozen=True)
class Column:
    """A column: its key in JSON, its heading, and how its cells are written for people.

    Cells of one that `is_copied`, such as ids and digests, are typed again by copying them: they are never broken.
    """

    key: str
    heading: str
    format_cell: Callable[[Cell], str] = plainly
    is_text: bool = False
    is_copied: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table, and sentences that say what to make of it."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    notes: tuple[tuple[str, str], ...] = ()


def sheet_rows(sheet: Sheet) -> list[dict[str, Cell]]:
    """Return the rows of a table for JSON, by the keys of its columns."""
    return [
        {
            column.key: float(cell) if isinstance(cell, Fraction) else cell
            for column, cell in zip(sheet.columns, row, strict=True)
        }
        for row in sheet.rows
    ]
