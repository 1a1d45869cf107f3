"""What a table of a result says, in HTML and in plain text: heads, cells, and what there is to know below."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from pinot_connector import formats
from pinot_connector.formats import written
from pinot_connector.results import PrivateResult, Row
from pinot_connector.shown_values import ShownValue

MAX_ROWS = 100
# One long name would push the counts of all others off the screen.
MAX_LETTERS = 80
# Letters that turn the direction in which what is beside them is shown.
_TURNING = ("R", "AL", "AN")


def heads(result: PrivateResult) -> list[str]:
    """Returns the heads of the columns."""
    titles = [column.title for column in result.columns]
    if result.parameters.quantiles is not None:
        for quantile in result.parameters.quantiles.shown:
            titles += [quantile.title, "cell"]
    if not any(row.interval is not None for row in result.rows):
        return titles
    interval = f"{formats.confidence(result.confidence)} interval"
    titles += [result.count_alias or "noisy count", interval]
    for aggregate in result.parameters.aggregates:
        titles += [aggregate.title, interval]
    return titles


def cells(row: Row, decimals: Sequence[int]) -> Sequence[str]:
    """Returns an element, and where it has them its count with the interval, sums and averages, or quantiles.

    Args:
        row: The element.
        decimals: How many digits behind the point each of its values has at least.
    """
    names = [_shortened(str(value)) for value in row.element]
    counted = []
    if row.interval is not None:
        counted = [f"{row.noisy_count:,}", formats.interval(row.interval)]
    values = zip(row.values, decimals, strict=True)
    return [*names, *counted, *(cell for each in values for cell in value_cells(*each))]


def notes(result: PrivateResult, shown: int) -> Iterable[str]:
    """Yields what is said of a result of which so many rows are shown, and then its `facts`."""
    yield from (each.text for each in result.statements)
    yield from facts(result, shown)


def facts(result: PrivateResult, shown: int) -> Iterable[str]:
    """Yields what a result has beside its rows, of which so many are shown: other numbers, cost, and what is left."""
    if shown < len(result.rows):
        yield f"the first {shown} of {len(result.rows):,} elements"
    if result.total is not None:
        total = result.total
        yield f"{total.noisy_count:,} members count in any of the elements, {formats.interval(total.interval)}"
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
    """Returns a sum, an average or a quantile with its interval; dashes where there is none to show."""
    if value is None:
        return ["-", "-"]
    number, lower, upper = written(value.value, value.interval, decimals)
    return [number, formats.interval((lower, upper))]
