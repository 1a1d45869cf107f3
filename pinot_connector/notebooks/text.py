"""Results as plain text: for `print`, and for notebooks that show no HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pinot_connector.explanation_rows import explanation_rows
from pinot_connector.notebooks.cells import MAX_ROWS, cells, heads, isolated, notes, visible
from pinot_connector.results import PrivateResult


def result_text(result: PrivateResult) -> str:
    """Returns a result as lines: ranked rows with intervals, then what to know of them, the cost and what is left."""
    if result.explanation is not None:
        return "\n".join(_lines(explanation_rows(result.explanation)))
    shown = result.rows[:MAX_ROWS]
    rows = (cells(row, result) for row in shown)
    lines = _lines((heads(result), *rows))
    return "\n".join([*lines, *map(visible, notes(result, len(shown)))])


def _lines(rows: Iterable[Sequence[str]]) -> list[str]:
    table = [[visible(text) for text in line] for line in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [_line(line, widths) for line in table]


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        isolated(text) + " " * (width - len(text)) for text, width in zip(texts, widths, strict=True)
    ).rstrip()
