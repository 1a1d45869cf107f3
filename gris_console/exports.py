"""Answers as CSV for spreadsheets. Elements are texts that strangers wrote, and a spreadsheet runs some as formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator

from pinot_connector.dbapi.tables import Column, Values, described, listed, totals_described, totals_tabulated
from pinot_connector.notebooks.cells import visible
from pinot_connector.results import PrivateResult

# What spreadsheets take for the beginning of a formula, some of them in full width too.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Where the separator of lists is a semicolon or a tab, a spreadsheet begins another cell behind it.
_LATER_FORMULA = re.compile(r"([;\t]\s*)(?=[=+\-@|%\uff1d\uff0b\uff0d\uff20])")


def csv_text(result: PrivateResult) -> str:
    """Return the elements of an answer as CSV: their columns, the count, and both ends of its interval."""
    return _csv(described(result, intervals=True), listed(result, intervals=True))


def totals_csv_text(result: PrivateResult) -> str:
    """Return totals as CSV, each with what the elements leave of it.

    They are a file of their own: in one file an empty cell would stand for the column that a total adds up over, and
    for a text without letters too.
    """
    return _csv(totals_described(result, intervals=True), totals_tabulated(result, intervals=True))


def _csv(columns: Iterable[Column], rows: Iterable[Values]) -> str:
    lines = io.StringIO(newline="")
    writer = csv.writer(lines)
    writer.writerow([_cell(column[0]) for column in columns])
    writer.writerows(_cells(rows))
    return lines.getvalue()


def _cells(rows: Iterable[Values]) -> Iterator[list[object]]:
    for row in rows:
        yield [_cell(value) if isinstance(value, str) else value for value in row]


def _cell(text: str) -> str:
    """Return a text that is only a text: an apostrophe before each would-be formula, and nothing invisible in it."""
    shown = visible(_LATER_FORMULA.sub(r"\1'", text))
    return f"'{shown}" if text.lstrip().startswith(_FORMULAS) or text.startswith(_FORMULAS) else shown
