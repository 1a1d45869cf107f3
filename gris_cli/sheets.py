"""Tables of numbers: for people, or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.cells import cell_len
from rich.table import Table

from gris_cli.data.sheets import Column, Sheet, sheet_rows
from gris_cli.terminal import grid, print_json, printable, say, show, terminal_width

# What a column shrinks to at most: where others are shown whole, and else.
LEAST_BESIDE_WHOLE = 8
LEAST = 4


def print_sheets(
    sheets: Mapping[str, Sheet], facts: Mapping[str, Any] = MappingProxyType({}), *, as_json: bool
) -> None:
    """Print tables one after the other, or one JSON object with a list of rows for each, by its name.

    Args:
        sheets: The tables, with notes for people.
        facts: What the notes say, for programs: more of the JSON object.
        as_json: Whether to print JSON.
    """
    if as_json:
        print_json({**{name: sheet_rows(sheet) for name, sheet in sheets.items()}, **facts})
        return
    for sheet in sheets.values():
        # Of an empty table the notes say enough.
        if sheet.rows or not sheet.notes:
            _show(sheet)
        for label, text in sheet.notes:
            say(label, text)


def _show(sheet: Sheet) -> None:
    """Print a table, or one line a cell where its columns would be too narrow."""
    columns = sheet.columns
    rows = [[each.format_cell(cell) for each, cell in zip(columns, row, strict=True)] for row in sheet.rows]
    if not rows or _least_width(columns, rows) <= terminal_width():
        show(_table(columns, rows))
        return
    width = max(cell_len(each.heading) for each in columns)
    for number, row in enumerate(rows):
        if number:
            show()
        for each, text in zip(columns, row, strict=True):
            say(each.heading, text, width=width, is_whole=each.is_copied)


def _least_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return how many characters a table needs, with what is between its columns."""
    least = LEAST_BESIDE_WHOLE if any(each.is_copied for each in columns) else LEAST
    widths = 0
    for position, each in enumerate(columns):
        longest = max(cell_len(printable(text)) for text in (each.heading, *(row[position] for row in rows)))
        widths += longest if each.is_copied else min(longest, least)
    return widths + 3 * len(columns) - 1


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
    numbers = [position for position, each in enumerate(columns) if not each.is_text]
    table = grid([each.heading for each in columns], rows, numbers=numbers)
    for column, each in zip(table.columns, columns, strict=True):
        # An id that is cut off, or broken, is of no use.
        column.overflow, column.no_wrap = "fold", each.is_copied
    return table
