"""Tables of numbers: for people, or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rich.table import Table

from gris_cli.terminal import grid, print_json, say, show
from gris_data.sheets import Sheet, sheet_rows


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
        show(_table(sheet))
        for label, text in sheet.notes:
            say(label, text)


def _table(sheet: Sheet) -> Table:
    columns = sheet.columns
    rows = ([each.format_cell(cell) for each, cell in zip(columns, row, strict=True)] for row in sheet.rows)
    numbers = [position for position, each in enumerate(columns) if not each.is_text]
    table = grid([each.heading for each in columns], rows, numbers=numbers)
    for column in table.columns:
        # An id that is cut off is of no use.
        column.overflow = "fold"
    return table
