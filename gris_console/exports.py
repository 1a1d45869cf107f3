"""Answers as CSV for spreadsheets. Elements are texts that strangers wrote, and a spreadsheet runs some as formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from pinot_connector.dbapi.tables import described, tabulated
from pinot_connector.notebooks.cells import visible
from pinot_connector.results import PrivateResult

# What spreadsheets take for the beginning of a formula, some of them in full width too.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Where the separator of lists is a semicolon or a tab, a spreadsheet begins another cell behind it.
_LATER_FORMULA = re.compile(r"([;\t]\s*)(?=[=+\-@|%\uff1d\uff0b\uff0d\uff20])")


def csv_text(result: PrivateResult) -> str:
    """Return an answer as CSV: the elements' columns, the count, and both ends of its interval."""
    lines = io.StringIO(newline="")
    writer = csv.writer(lines)
    writer.writerow([_cell(column[0]) for column in described(result, intervals=True)])
    writer.writerows(_rows(result))
    return lines.getvalue()


def _rows(result: PrivateResult) -> Iterator[list[object]]:
    for row in tabulated(result, intervals=True):
        yield [_cell(value) if isinstance(value, str) else value for value in row]


def _cell(text: str) -> str:
    """Return a text that is only a text: an apostrophe before each would-be formula, and nothing invisible in it."""
    shown = visible(_LATER_FORMULA.sub(r"\1'", text))
    return f"'{shown}" if text.lstrip().startswith(_FORMULAS) or text.startswith(_FORMULAS) else shown
