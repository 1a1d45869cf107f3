"""Results and explanations as HTML tables. Every text in them comes through `_text`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from pinot_connector.explanation_rows import explanation_rows
from pinot_connector.notebooks.cells import MAX_ROWS, cells, heads, notes, visible
from pinot_connector.results import Explanation, PrivateResult


def result_html(result: PrivateResult) -> str:
    """Returns a result as HTML: rows with intervals, what to know of them, the cost and what is left."""
    if result.explanation is not None:
        return explanation_html(result.explanation)
    shown = result.rows[:MAX_ROWS]
    rows = (_line("td", cells(row, result)) for row in shown)
    return _table(heads(result), rows) + _paragraphs(notes(result, len(shown)))


def explanation_html(explanation: Explanation) -> str:
    """Returns an explanation as HTML, the price first."""
    return _table(["before asking", ""], (_line("td", row) for row in explanation_rows(explanation)))


def _table(head: Sequence[str], rows: Iterable[str]) -> str:
    return f"<table><thead>{_line('th', head)}</thead><tbody>{''.join(rows)}</tbody></table>"


def _line(kind: str, texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{_text(text)}</{kind}>' for text in texts)}</tr>"


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{_text(line)}</p>" for line in lines)


def _text(text: str) -> str:
    """Returns a text that is only a text: no markup, nothing invisible, and with no say over its surroundings."""
    # Letters that are written from right to left turn what is beside them, but for the end of this element. Jupyter
    # renders formulas between dollars in any HTML, outside of these classes: of MathJax 2 and of MathJax 3.
    return f'<bdi class="tex2jax_ignore mathjax_ignore">{html.escape(visible(text))}</bdi>'
