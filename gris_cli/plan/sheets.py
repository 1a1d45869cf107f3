"""Tables of numbers: for people, or as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from rich.table import Table
from rich.text import Text

from gris_cli.printing import console_of_width, print_json, say

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


def downwards(value: float) -> str:
    """Return an epsilon that is needed to three decimals, rounded down."""
    return f"{math.floor(value * 1000) / 1000:.3f}"


def percent(value: Cell) -> str:
    """Return a share of one in percent."""
    return f"{100 * value:.4g} %" if isinstance(value, float) else plainly(value)


@dataclass(frozen=True)
class Column:
    """A column: its key in JSON, its heading, and how its cells are written for people."""

    key: str
    heading: str
    format_cell: Callable[[Cell], str] = plainly
    is_text: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table, and sentences that say what to make of it."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    notes: tuple[tuple[str, str], ...] = ()


def print_sheets(sheets: dict[str, Sheet], *, as_json: bool) -> None:
    """Print tables one after the other, or one JSON object with a list of rows for each, by its name."""
    if as_json:
        print_json({name: sheet_rows(sheet) for name, sheet in sheets.items()})
        return
    console = console_of_width()
    for sheet in sheets.values():
        console.print(_table(sheet))
        for label, text in sheet.notes:
            say(console, label, text)


def sheet_rows(sheet: Sheet) -> list[dict[str, Cell]]:
    """Return the rows of a table for JSON, by the keys of its columns."""
    return [
        {
            column.key: float(cell) if isinstance(cell, Fraction) else cell
            for column, cell in zip(sheet.columns, row, strict=True)
        }
        for row in sheet.rows
    ]


def _table(sheet: Sheet) -> Table:
    table = Table(show_edge=False, header_style="bold")
    for column in sheet.columns:
        table.add_column(column.heading, justify="left" if column.is_text else "right")
    for row in sheet.rows:
        cells = zip(sheet.columns, row, strict=True)
        table.add_row(*(Text(column.format_cell(cell)) for column, cell in cells))
    return table
