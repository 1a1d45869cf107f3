"""Pictures of results, drawn by matplotlib."""

from __future__ import annotations

import datetime
from typing import Any

import matplotlib.pyplot as plt

from pinot_connector.errors import InvalidQuestion
from pinot_connector.results import PrivateResult, Row

# More bars cannot be read.
MAX_BARS = 50
# Longer labels would leave no room for the picture.
MAX_LABEL = 40
_COLOUR, _BOTTOM_COLOUR = "#2f86b5", "#c2650a"


def plotted(result: PrivateResult, *, series: bool | None, axes: Any) -> Any:
    """Draws a result; see `PrivateResult.plot`."""
    counted = [row for row in result.rows if row.interval is not None]
    if len(counted) != len(result.rows):
        raise InvalidQuestion("plot", "expected a result with counts")
    if series is None:
        series = is_series(result)
    if series and len(result.columns) != 1:
        raise InvalidQuestion("plot", "expected elements of one column for a series")
    axes = plt.subplots(layout="constrained")[1] if axes is None else axes
    draw = _draw_series if series else _draw_bars
    draw(axes, result, counted)
    return axes


def is_series(result: PrivateResult) -> bool:
    """Returns whether a result is drawn as a series where nothing else is asked for: its elements are days."""
    return bool(result.rows) and all(map(_is_day, result.rows))


def _is_day(row: Row) -> bool:
    return len(row.element) == 1 and isinstance(row.element[0], datetime.date)


def _draw_bars(axes: Any, result: PrivateResult, counted: list[Row]) -> None:
    rows = counted[:MAX_BARS]
    places, counts = range(len(rows)), [row.noisy_count for row in rows]
    axes.barh(places, counts, color=_COLOUR)
    for place, row in zip(places, rows, strict=True):
        _draw_interval(axes, place, row)
    axes.set_yticks(places, [_label(row) or "total" for row in rows], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(_counted(result) + _cut(len(rows), len(counted)), parse_math=False)
    if result.bottom is not None:
        _mark_bottom(axes.axvline, result.bottom)
        axes.legend()


def _counted(result: PrivateResult) -> str:
    """Return what the axis of counts says: the question's own name of them, or what is counted."""
    if result.count_alias:
        return result.count_alias
    stated = result.parameters
    # Of a table that promises one row of a member in an element, rows are members.
    return "rows" if stated.clipped or stated.tau > 1 else "members"


def _cut(drawn: int, of: int) -> str:
    """Return that a picture has only the first of its bars, empty if it has all."""
    return f", the first {drawn} of {of}" if drawn < of else ""


def _draw_interval(axes: Any, place: float, row: Row) -> None:
    # A count can lie outside of its interval, so this is no error bar around it. A bound from below has one end.
    ends = _ends(row)
    axes.hlines(place, ends[0], ends[-1], color="black", linewidth=1.5)
    axes.plot(ends, (place,) * len(ends), linestyle="", marker="|", markersize=8, color="black")


def _draw_series(axes: Any, result: PrivateResult, counted: list[Row]) -> None:
    rows = sorted(counted, key=lambda row: row.element)
    # As texts all elements but days are names: no text of data is read as a number or a unit.
    places: Any = [row.element[0] for row in rows] if all(map(_is_day, rows)) else range(len(rows))
    axes.plot(places, [row.noisy_count for row in rows], color=_COLOUR, marker="o", markersize=3)
    lower, upper = [_ends(row)[0] for row in rows], [_above(row) for row in rows]
    axes.fill_between(places, lower, upper, color=_COLOUR, alpha=0.25)
    if isinstance(places, range):
        axes.set_xticks(places, [_label(row) for row in rows], rotation=90, parse_math=False)
    axes.set_ylabel(_counted(result), parse_math=False)
    if not isinstance(places, range) and places:
        # What is below 0 is the noise of a count alone.
        axes.set_ylim(bottom=min([row.noisy_count or 0 for row in rows] + [0]))
        axes.tick_params(axis="x", labelrotation=30)
    if result.bottom is not None:
        _mark_bottom(axes.axhline, result.bottom)
        axes.legend()


def _mark_bottom(line: Any, bottom: int) -> None:
    line(bottom, color=_BOTTOM_COLOUR, linestyle="--", label="bottom: nothing below may be shown")


def _ends(row: Row) -> tuple[int, ...]:
    if row.interval is None:
        raise InvalidQuestion("plot", "expected a result with counts")
    return tuple(row.interval)


def _above(row: Row) -> float:
    """Return the upper end of a band: where nothing bounds a count from above, the count."""
    lower, *upper = _ends(row)
    return upper[0] if upper else max(row.noisy_count or 0, lower)


def _label(row: Row) -> str:
    return _shown(", ".join(map(str, row.element)))


def _shown(text: str) -> str:
    if len(text) > MAX_LABEL:
        text = text[: MAX_LABEL - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
