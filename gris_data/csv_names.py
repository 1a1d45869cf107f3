"""The names of a CSV file's columns."""

from __future__ import annotations

import csv
from pathlib import Path

from gris_data.errors import InputError


def names_in_first_line(path: Path, separator: str) -> list[str]:
    """Return the names of a CSV file's columns.

    Raises:
        InputError: The first line has none, or one twice.
    """
    try:
        # DuckDB refuses what is not UTF-8; here only the first line matters.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            names = next(csv.reader(lines, delimiter=separator, strict=True), [])
    except csv.Error:
        names = []
    if not names or len(set(names)) != len(names):
        raise InputError("line 1: expected the names of the columns, each once")
    return names
