"""Tables of numbers: for people, or as JSON."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from gris_cli.printing import console_of_width, print_json, say
from gris_lab.sheets import Sheet, sheet_rows


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


def _table(sheet: Sheet) -> Table:
    table = Table(show_edge=False, header_style="bold")
    for column in sheet.columns:
        table.add_column(column.heading, justify="left" if column.is_text else "right")
    for row in sheet.rows:
        cells = zip(sheet.columns, row, strict=True)
        table.add_row(*(Text(column.format_cell(cell)) for column, cell in cells))
    return table
