"""What a table of a result says, in HTML and in plain text: heads, cells, and what there is to know below."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain

from pinot_connector import formats
from pinot_connector.coverage import written
from pinot_connector.parameters import IntervalKind
from pinot_connector.results import PrivateResult, Row, Total
from pinot_connector.shown_values import ShownValue

MAX_ROWS = 100
# One long name would push the counts of all others off the screen.
MAX_LETTERS = 80
MISSING = ("-", "may be divided by 0")
"""What stands for a number whose divisor may be 0, as far as noise leaves that possible."""
# Letters that turn the direction in which what is beside them is shown.
_TURNING = ("R", "AL", "AN")


def heads(result: PrivateResult) -> list[str]:
    """Returns the heads of the columns, in the order in which the question selects them."""
    groups: list[Sequence[str]] = [(column.title,) for column in result.columns]
    # An empty list has its columns, too.
    if result.interval_kind is not IntervalKind.NONE:
        covers = result.parameters.coverage
        groups.append((result.count_alias or "noisy count", covers.head(result.confidence)))
    numbers = zip(result.parameters.values, result.parameters.coverages, strict=True)
    groups += [(number.title, covers.head(result.confidence)) for number, covers in numbers]
    return _selected(groups, result)


def cells(row: Row, result: PrivateResult) -> list[str]:
    """Returns an element, and where it has them its count with the interval, sums and averages, or quantiles."""
    groups: list[Sequence[str]] = [(_shortened(str(value)),) for value in row.element]
    if row.noisy_count is not None and row.interval is not None:
        groups.append(written(row.noisy_count, row.interval))
    values = zip(row.values, result.parameters.decimals, strict=True)
    return _selected([*groups, *(value_cells(*each) for each in values)], result)


def _selected(groups: Sequence[Sequence[str]], result: PrivateResult) -> list[str]:
    in_order = [groups[place] for place in result.selected] if result.selected else groups
    return list(chain.from_iterable(in_order))


def notes(result: PrivateResult, shown: int) -> Iterable[str]:
    """Yields what is said of a result of which so many rows are shown, and then its `facts`."""
    yield from (each.text for each in result.statements)
    yield from facts(result, shown)


def facts(result: PrivateResult, shown: int) -> Iterable[str]:
    """Yields what a result has beside its rows, of which so many are shown: other numbers, cost, and what is left."""
    if shown < len(result.rows):
        yield f"the first {shown} of {len(result.rows):,} elements"
    if result.total is not None:
        yield total_in_words(result.total)
    yield f"cost: {formats.cost(result.cost)}; charged now: {formats.cost(result.charged)}"
    yield from (f"left of {formats.level(level)}" for level in result.remaining)


def visible(text: str) -> str:
    """Returns a text of letters that can all be seen, whatever strangers wrote."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def isolated(text: str) -> str:
    """Returns a text that does not turn its neighbours around: a count beside it would be read as another's."""
    if not any(unicodedata.bidirectional(letter) in _TURNING for letter in text):
        return text
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"


def _shortened(name: str) -> str:
    return name if len(name) <= MAX_LETTERS else name[: MAX_LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"


def value_cells(value: ShownValue | None, decimals: int) -> Sequence[str]:
    """Returns a sum, an average or a quantile with the ends beside it, or why there is none to show."""
    return MISSING if value is None else written(value.value, value.interval, decimals)


def total_in_words(total: Total) -> str:
    """Returns how many members count in any element."""
    number, ends = written(total.noisy_count, total.interval)
    return f"{number} members count in any of the elements, {ends}"
