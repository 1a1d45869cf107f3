"""Results and explanations as HTML tables. Every text in them comes through `_text`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from pinot_connector.budgets import Cost, Level
from pinot_connector.explanation_rows import explanation_rows
from pinot_connector.results import AggregateValue, Explanation, PrivateResult, Row, rank_error_lines

MAX_ROWS = 100


def result_html(result: PrivateResult) -> str:
    """Returns a result as HTML: ranked rows with intervals, then what to know of them, the cost and what is left."""
    counted = any(row.interval is not None for row in result.rows)
    head = [column.title for column in result.columns]
    if counted:
        interval = f"{100 * result.confidence:g} % interval"
        head += [result.count_alias or "noisy count", interval]
        for aggregate in result.parameters.aggregates:
            head += [aggregate.title, interval]
    for quantile in () if result.parameters.quantiles is None else result.parameters.quantiles.shown:
        head += [quantile.title, "cell"]
    shown = result.rows[:MAX_ROWS]
    return _table(head, map(_cells, shown)) + _paragraphs(_notes(result, len(shown)))


def explanation_html(explanation: Explanation) -> str:
    """Returns an explanation as HTML, the price first."""
    return _table(["before asking", ""], explanation_rows(explanation))


def _notes(result: PrivateResult, shown: int) -> Iterable[str]:
    if shown < len(result.rows):
        yield f"the first {shown} of {len(result.rows)} elements"
    if result.ended_in_bottom:
        threshold = "" if result.bottom is None else f" (noisy threshold {result.bottom})"
        yield f"ended in bottom{threshold}: nothing below may be shown"
    if result.total is not None:
        lower, upper = result.total.interval
        yield f"{result.total.noisy_count} members count in any of the elements, {lower} to {upper}"
    if result.requested_k is not None:
        yield f"the policy shows at most {result.parameters.k} elements of the {result.requested_k} asked for"
    yield from result.parameters.left_out
    yield from rank_error_lines(result)
    yield f"cost: {_cost(result.cost)}; charged now: {_cost(result.charged)}"
    yield from (f"left of {'/'.join(level.path)}: {_left(level)}" for level in result.remaining)


def _cost(cost: Cost) -> str:
    return f"{cost.information} information and {cost.calls} {'call' if cost.calls == 1 else 'calls'}"


def _left(level: Level) -> str:
    until = "" if level.window_end is None else f", refreshed {level.window_end:%Y-%m-%d}"
    return f"{_cost(level.remaining)}{until}"


def _cells(row: Row) -> Sequence[str]:
    if row.interval is None:
        return [*map(str, row.element), *(cell for value in row.values for cell in _value_cells(value))]
    lower, upper = row.interval
    counted = [str(row.noisy_count), f"{lower} to {upper}"]
    return [*map(str, row.element), *counted, *(cell for value in row.values for cell in _value_cells(value))]


def _value_cells(value: AggregateValue | None) -> Sequence[str]:
    """Returns a sum or an average with its interval; empty where there is none to show."""
    if value is None:
        return ["", ""]
    lower, upper = value.interval
    return [f"{float(value.value):g}", f"{float(lower):g} to {float(upper):g}"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "".join(_line("td", row) for row in rows)
    return f"<table><thead>{_line('th', head)}</thead><tbody>{body}</tbody></table>"


def _line(kind: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{_text(cell)}</{kind}>' for cell in cells)}</tr>"


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{_text(line)}</p>" for line in lines)


def _text(text: str) -> str:
    """Returns a text that is only a text: no markup, nothing invisible, and with no say over its surroundings."""
    seen = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    # Letters that are written from right to left turn what is beside them, but for the end of this element. Jupyter
    # renders formulas between dollars in any HTML, outside of these classes: of MathJax 2 and of MathJax 3.
    return f'<bdi class="tex2jax_ignore mathjax_ignore">{html.escape(seen)}</bdi>'
