"""What the first line of a CSV file says: the names of its columns, and what separates them."""

from __future__ import annotations

import csv
from pathlib import Path

from gris_data.errors import InputError

_SEPARATORS = (",", ";", "\t")


def names_in_first_line(path: Path) -> tuple[list[str], str]:
    """Return the names of a CSV file's columns, and the separator.

    It is a tab in files called .tsv, and otherwise the first of comma, semicolon and tab that separates names at all:
    the line is the owner's, and no row of a member decides.

    Raises:
        InputError: The first line has no names, or one twice.
    """
    separators = _SEPARATORS[2:] if path.suffix.lower() == ".tsv" else _SEPARATORS
    read = [(_names(path, each), each) for each in separators]
    names, separator = next((each for each in read if len(each[0]) > 1), read[0])
    if not names or len(set(names)) != len(names):
        raise InputError("line 1: expected the names of the columns, each once")
    return names, separator


def _names(path: Path, separator: str) -> list[str]:
    try:
        # DuckDB refuses what is not UTF-8; here only the first line matters.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            return next(csv.reader(lines, delimiter=separator, strict=True), [])
    except csv.Error:
        return []
