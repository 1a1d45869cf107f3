"""Pictures of answers as SVG, for pages and notebooks: text and lines have the colour of what is around them.

Places are in percent, so that a picture is as wide as its page and its letters keep their size; nothing in it needs a
script or a style sheet.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pinot_connector import formats
from pinot_connector.notebooks.parts import (
    STEP,
    Cohorts,
    is_retention,
    parts_of_steps,
    place_of,
    rows_of_cohorts,
)
from pinot_connector.notebooks.series import series_svg
from pinot_connector.notebooks.svg import BAR, BOTTOM, Number, Scale, line, rect
from pinot_connector.results import PrivateResult, Row
from pinot_connector.shown_values import AggregateValue, DayValue

MOST_BARS = 50
MOST_POINTS = 2000
_SERIES = "order.of_elements"
_OF_STEPS = "; beside it which part of step 1 it is, of these noisy numbers"
_OF_COHORTS = (
    "in column 0, then which part of it comes back, of these noisy numbers; empty: not over, or not shown"
)
# Quantiles of an element, in their order; a legend names them.
_QUANTILES = (BAR, BOTTOM, "#178a62", "#b3589a", "#8a7413", "#6b7885")


@dataclass(frozen=True)
class Bar:
    """A line of a picture: the row that it is of, the names of its element, its number as text, and the SVG.

    `part` is which part of the first step it is, in words; empty: there are no steps, or that says nothing.
    """

    row: int
    names: tuple[str, ...]
    text: str
    svg: str
    part: str = ""


@dataclass(frozen=True)
class Picture:
    """What is drawn of an answer.

    Attributes:
        titles: What can be drawn of each element; empty of quantiles.
        drawn: The place of what is drawn among them.
        caption: What it is, in words.
        series: A line with a band, as SVG; empty: there is none.
        cohorts: A table in colours, as SVG of its own width; empty: there is none.
        bars: An element each.
        legend: Quantiles, each with its colour as SVG.
    """

    titles: Sequence[str]
    drawn: int
    caption: str
    series: str = ""
    cohorts: str = ""
    bars: Sequence[Bar] = ()
    legend: Sequence[tuple[str, str]] = ()


def picture(result: PrivateResult, place: int | None = None, width: str = "100%") -> Picture | None:
    """Returns the picture of an answer; None: nothing of it can be drawn.

    Args:
        result: The answer.
        place: Which of `titles` is drawn; None, or none of them: the one that the question is about.
        width: How wide bars are, as SVG says it.
    """
    named = titles(result)
    if not named:
        bars = _quantile_bars(result, width)
        caption = (
            f"Where the quantiles of each element are, along one scale{_cut(len(bars), len(result.rows))}"
        )
        return Picture((), 0, caption, bars=bars, legend=_legend(result)) if bars else None
    if place is None or not 0 <= place < len(named):
        place = first_drawn(result)
    found = [at for at, row in enumerate(result.rows) if _has(row, place)]
    if is_retention(result):
        return _cohorts(result, found, named, place)
    bottom = None if place or result.bottom is None else float(result.bottom)
    below = "" if bottom is None else "; dashed: nothing below may be shown"
    if is_series(result):
        drawn = sorted(found, key=lambda at: result.rows[at].element)[:MOST_POINTS]
        caption = f"{named[place]}, with a band between the ends of its intervals{_cut(len(drawn), len(found))}{below}"
        label = f"{named[place]} by {result.columns[0].title}: a line with a band between the ends of its intervals"
        points = [number for _, number in numbers_of(result, drawn, place)]
        svg = series_svg(label, [result.rows[at].element[0] for at in drawn], points, bottom)
        return Picture(named, place, caption, series=svg)
    numbers = numbers_of(result, found[:MOST_BARS], place)
    scale = Scale.of([number for _, number in numbers], bottom)
    parts = parts_of_steps(result, dict(numbers))
    bars = [
        Bar(at, names_of(result, at), number.text, _bar(number, scale, bottom, width), parts.get(at, ""))
        for at, number in numbers
    ]
    of_steps = _OF_STEPS if parts else ""
    caption = (
        f"{named[place]}, with the interval of each as a line{of_steps}{_cut(len(bars), len(found))}{below}"
    )
    return Picture(named, place, caption, bars=bars)


def _cohorts(result: PrivateResult, rows: Sequence[int], named: Sequence[str], place: int) -> Picture:
    """Return the picture of who comes back: a table in colours."""
    drawn = rows_of_cohorts(result, rows)
    cohorts = Cohorts.of(result, dict(numbers_of(result, drawn, place)))
    caption = f"{named[place]} {_OF_COHORTS}{_cut(len(drawn), len(rows))}"
    return Picture(named, place, caption, cohorts=cohorts.svg(f"{named[place]}: a table; {_OF_COHORTS}"))


def titles(result: PrivateResult) -> list[str]:
    """Returns what can be drawn of each element: its count, and its sums and averages; nothing where there are none."""
    if not any(row.interval is not None for row in result.rows):
        return []
    return [result.count_alias or "noisy count", *(each.title for each in result.parameters.aggregates)]


def first_drawn(result: PrivateResult) -> int:
    """Returns the place in `titles` of what is drawn unless somebody asks for another number.

    It is what the list is in the order of, or a sum where the question selects no count.
    """
    sums, columns = result.parameters.sums, len(result.columns)
    if sums is None:
        return 0
    if sums.ordered_by is not None:
        return 1 + sums.ordered_by
    places = [each - columns for each in result.selected if each >= columns]
    return 0 if 0 in places or not places else places[0]


def is_series(result: PrivateResult) -> bool:
    """Returns whether an answer is drawn as a line: elements of one column that are days or whole numbers, in order."""
    if len(result.columns) != 1 or not result.rows:
        return False
    elements = [row.element[0] for row in result.rows]
    if all(isinstance(each, datetime.date) for each in elements):
        return True
    codes = {each.code for each in result.statements}
    # Steps are apart from each other, and are bars.
    return (
        _SERIES in codes
        and place_of(result, STEP) is None
        and all(isinstance(each, int) and not isinstance(each, bool) for each in elements)
    )


def _cut(drawn: int, of: int) -> str:
    return f"; the first {drawn:,} of {of:,} elements" if drawn < of else ""


def _has(row: Row, place: int) -> bool:
    """Return whether an element has the number at a place in `titles`."""
    if place == 0:
        return row.interval is not None and row.noisy_count is not None
    return isinstance(row.values[place - 1], AggregateValue)


def numbers_of(result: PrivateResult, rows: Sequence[int], place: int) -> list[tuple[int, Number]]:
    """Returns these rows with the number at a place in `titles`: only what is drawn is written."""
    digits = result.parameters.decimals[place - 1] if place else 0
    found = ((at, _number(result.rows[at], place, digits)) for at in rows)
    return [(at, number) for at, number in found if number is not None]


def names_of(result: PrivateResult, place: int) -> tuple[str, ...]:
    """Returns the names of an element, by the place of its row."""
    step = place_of(result, STEP)
    element = enumerate(result.rows[place].element)
    return tuple(f"step {value}" if at == step else str(value) for at, value in element)


def _quantile_bars(result: PrivateResult, width: str) -> list[Bar]:
    """Return the first elements with the cells of their quantiles along one scale."""
    rows = [place for place, row in enumerate(result.rows) if any(row.values)][:MOST_BARS]
    ends = [
        end for place in rows for each in result.rows[place].values if each is not None for end in _cell(each)
    ]
    if not ends:
        return []
    low, high = min(ends), max(ends)
    scale = Scale(low, high if high > low else low + 1)
    return [_of_cells(result, place, scale, width) for place in rows]


def _legend(result: PrivateResult) -> list[tuple[str, str]]:
    """Return the name of each quantile with its colour."""
    stated = result.parameters.quantiles
    shown = () if stated is None else stated.shown
    return [
        (each.title, f'<svg width="12" height="12" aria-hidden="true"><rect {_whole(colour)}></rect></svg>')
        for each, colour in zip(shown, _colours(len(shown)), strict=True)
    ]


def _whole(colour: str) -> str:
    return f'width="12" height="12" rx="2" fill="{colour}"'


def _number(row: Row, place: int, digits: int) -> Number | None:
    if place == 0:
        if row.interval is None or row.noisy_count is None:
            return None
        low, high = map(float, row.interval)
        return Number(
            float(row.noisy_count), low, high, f"{row.noisy_count:,}", formats.interval(row.interval)
        )
    value = row.values[place - 1]
    if not isinstance(value, AggregateValue):
        return None
    text, lower, upper = formats.written(value.value, value.interval, digits)
    low, high = map(float, value.interval)
    return Number(float(value.value), low, high, text, formats.interval((lower, upper)))


def _bar(number: Number, scale: Scale, bottom: float | None, width: str) -> str:
    zero, value = scale.part(0), scale.part(number.value)
    low, high = scale.part(number.low), scale.part(number.high)
    shapes = [
        rect(0, 100, 'fill="currentColor" fill-opacity="0.09"'),
        rect(min(zero, value), abs(value - zero), f'class="value" fill="{BAR}"'),
        line(low, high, 11, 11, 'stroke="currentColor" stroke-width="1.5"'),
        *(line(end, end, 6, 16, 'stroke="currentColor" stroke-width="1.5"') for end in (low, high)),
        line(zero, zero, 0, 22, 'stroke="currentColor" stroke-opacity="0.6"'),
    ]
    if bottom is not None:
        at = scale.part(bottom)
        shapes.append(line(at, at, 0, 22, f'stroke="{BOTTOM}" stroke-width="1.5" stroke-dasharray="3 3"'))
    return _row_svg(shapes, width)


def _of_cells(result: PrivateResult, place: int, scale: Scale, width: str) -> Bar:
    row = result.rows[place]
    colours = _colours(len(row.values))
    shapes = [rect(0, 100, 'fill="currentColor" fill-opacity="0.09"')]
    texts = []
    for value, colour, digits in zip(row.values, colours, result.parameters.decimals, strict=True):
        if value is None:
            continue
        low, high = map(scale.part, _cell(value))
        # A cell of one value is seen as well.
        shapes.append(
            rect(min(low, 99.2), max(high - low, 0.8), f'class="cell" fill="{colour}" fill-opacity="0.8"')
        )
        texts.append(formats.written(value.value, value.interval, digits)[0])
    return Bar(place, names_of(result, place), " · ".join(texts), _row_svg(shapes, width))


def _cell(value: AggregateValue | DayValue) -> tuple[float, float]:
    lower, upper = (_along_axis(end) for end in value.interval)
    return lower, upper


def _along_axis(end: Fraction | datetime.date) -> float:
    return float(end.toordinal()) if isinstance(end, datetime.date) else float(end)


def _colours(count: int) -> list[str]:
    return [_QUANTILES[place % len(_QUANTILES)] for place in range(count)]


def _row_svg(shapes: Sequence[str], width: str) -> str:
    return f'<svg class="bar" width="{width}" height="22" aria-hidden="true">{"".join(shapes)}</svg>'
