"""A first question of a table, to be typed as it stands."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dp_service.queries.tables import Table

SHOWN = 5


def first_question(table: Table, files: dict[str, Path]) -> str:
    """Return the command of a first question: the largest elements of a column that may be grouped by.

    Args:
        table: The table of the question.
        files: The files of tables.
    """
    question = options_of_a_question(table)
    if not question:
        return "gris catalog"
    data = shlex.quote(f"{table.name}={files[table.name].resolve()}")
    return f"gris ask --data {data} {question}"


def options_of_a_question(table: Table) -> str:
    """Return the options of a first question, about a text if there is one; empty: no column may be grouped by."""
    from dp_service.terms import ColumnType

    columns = [each for each in table.usable_columns if each.group_by]
    if not columns:
        return ""
    column = min(columns, key=lambda each: each.type is not ColumnType.STRING)
    return f"--table {table.name} --by {column.name} --k {SHOWN}"
