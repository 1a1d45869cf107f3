"""Pictures of answers as SVG, for pages and notebooks: text and lines have the colour of what is around them.

Places are in percent, so that a picture is as wide as its page and its letters keep their size; nothing in it needs a
script or a style sheet. All texts are escaped here.
"""

from __future__ import annotations

import datetime
import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from pinot_connector import formats
from pinot_connector.notebooks.cells import visible
from pinot_connector.results import PrivateResult, Row
from pinot_connector.shown_values import AggregateValue, DayValue

MOST_BARS = 50
MOST_POINTS = 2000
_SERIES = "order.of_elements"
_BAR, _BOTTOM = "#2f86b5", "#c2650a"
# Quantiles of an element, in their order; a legend names them.
_QUANTILES = ("#2f86b5", "#c2650a", "#178a62", "#b3589a", "#8a7413", "#6b7885")
_HEIGHT, _TOP, _FLOOR = 270, 10, 240
# In percent: room for the numbers of the axis.
_LEFT, _RIGHT = 11.0, 2.0
_MOST_DOTS, _MOST_HINTS = 60, 400
_LETTERS_OF_THREE = 12
_UNSTRETCHED = 'vector-effect="non-scaling-stroke"'


@dataclass(frozen=True)
class Number:
    """A number of an element with both ends of its interval, as it is drawn and as it is written."""

    value: float
    low: float
    high: float
    text: str
    interval: str


@dataclass(frozen=True)
class Bar:
    """A line of a picture: the row that it is of, the names of its element, its number as text, and the SVG."""

    row: int
    names: tuple[str, ...]
    text: str
    svg: str


@dataclass(frozen=True)
class Picture:
    """What is drawn of an answer.

    Attributes:
        titles: What can be drawn of each element; empty of quantiles.
        drawn: The place of what is drawn among them.
        caption: What it is, in words.
        series: A line with a band, as SVG; empty: there are bars.
        bars: An element each.
        legend: Quantiles, each with its colour as SVG.
    """

    titles: Sequence[str]
    drawn: int
    caption: str
    series: str = ""
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
    found = _numbers(result, place)
    bottom = None if place or result.bottom is None else float(result.bottom)
    below = "" if bottom is None else "; dashed: nothing below may be shown"
    if is_series(result):
        drawn = sorted(found, key=lambda each: result.rows[each[0]].element)[:MOST_POINTS]
        caption = f"{named[place]}, with a band between the ends of its intervals{_cut(len(drawn), len(found))}{below}"
        return Picture(named, place, caption, series=_series_svg(result, named[place], drawn, bottom))
    scale = _Scale.of([number for _, number in found[:MOST_BARS]], bottom)
    bars = [
        Bar(place, _names_of(result, place), number.text, _bar(number, scale, bottom, width))
        for place, number in found[:MOST_BARS]
    ]
    caption = f"{named[place]}, with the interval of each as a line{_cut(len(bars), len(found))}{below}"
    return Picture(named, place, caption, bars=bars)


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
    in_order = any(each.code == _SERIES for each in result.statements)
    return in_order and all(isinstance(each, int) and not isinstance(each, bool) for each in elements)


def _cut(drawn: int, of: int) -> str:
    return f"; the first {drawn:,} of {of:,} elements" if drawn < of else ""


def _numbers(result: PrivateResult, place: int) -> list[tuple[int, Number]]:
    """Return the places of rows that have the number at a place in `titles`, with it."""
    found = ((at, _number(result, row, place)) for at, row in enumerate(result.rows))
    return [(at, number) for at, number in found if number is not None]


def _names_of(result: PrivateResult, place: int) -> tuple[str, ...]:
    return tuple(map(str, result.rows[place].element))


def _series_svg(
    result: PrivateResult, title: str, found: Sequence[tuple[int, Number]], bottom: float | None
) -> str:
    """Return a line with a band, in the order of the elements; empty if no element has the number."""
    if not found:
        return ""
    points, elements = [number for _, number in found], [result.rows[place].element[0] for place, _ in found]
    scale, names = _Scale.of(points, bottom), list(map(str, elements))
    drawn = _Series(points, _along(elements), names, scale)
    label = f"{title} by {result.columns[0].title}: a line with a band between the ends of its intervals"
    parts = [*_grid(scale), *_names(names, drawn.places), drawn.svg(bottom)]
    return (
        f'<svg class="series tex2jax_ignore mathjax_ignore" role="img" aria-label="{_text(label)}" width="100%" '
        f'height="{_HEIGHT}">{"".join(parts)}</svg>'
    )


def _quantile_bars(result: PrivateResult, width: str) -> list[Bar]:
    """Return the first elements with the cells of their quantiles along one scale."""
    rows = [place for place, row in enumerate(result.rows) if any(row.values)][:MOST_BARS]
    ends = [
        end for place in rows for each in result.rows[place].values if each is not None for end in _cell(each)
    ]
    if not ends:
        return []
    low, high = min(ends), max(ends)
    scale = _Scale(low, high if high > low else low + 1)
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


@dataclass(frozen=True)
class _Scale:
    lowest: float
    highest: float

    @classmethod
    def of(cls, shown: Sequence[Number], bottom: float | None) -> _Scale:
        """Return a scale that holds 0, all numbers, their intervals, and bottom."""
        ends = [end for each in shown for end in (each.value, each.low, each.high)]
        ends += [0.0] if bottom is None else [0.0, bottom]
        low, high = min(ends), max(ends)
        return cls(low, high if high > low else low + 1)

    def part(self, value: float) -> float:
        """Return where a number is, in percent of the scale."""
        return 100 * (value - self.lowest) / (self.highest - self.lowest)


def _number(result: PrivateResult, row: Row, place: int) -> Number | None:
    if place == 0:
        if row.interval is None or row.noisy_count is None:
            return None
        low, high = map(float, row.interval)
        return Number(
            float(row.noisy_count), low, high, f"{row.noisy_count:,}", formats.interval(row.interval)
        )
    value = row.values[place - 1] if place <= len(row.values) else None
    if not isinstance(value, AggregateValue):
        return None
    text, lower, upper = formats.written(value.value, value.interval, result.parameters.decimals[place - 1])
    low, high = map(float, value.interval)
    return Number(float(value.value), low, high, text, formats.interval((lower, upper)))


def _bar(number: Number, scale: _Scale, bottom: float | None, width: str) -> str:
    zero, value = scale.part(0), scale.part(number.value)
    low, high = scale.part(number.low), scale.part(number.high)
    shapes = [
        _rect(0, 100, 'fill="currentColor" fill-opacity="0.09"'),
        _rect(min(zero, value), abs(value - zero), f'class="value" fill="{_BAR}"'),
        _line(low, high, 11, 11, 'stroke="currentColor" stroke-width="1.5"'),
        *(_line(end, end, 6, 16, 'stroke="currentColor" stroke-width="1.5"') for end in (low, high)),
        _line(zero, zero, 0, 22, 'stroke="currentColor" stroke-opacity="0.6"'),
    ]
    if bottom is not None:
        at = scale.part(bottom)
        shapes.append(_line(at, at, 0, 22, f'stroke="{_BOTTOM}" stroke-width="1.5" stroke-dasharray="3 3"'))
    return _row_svg(shapes, width)


def _of_cells(result: PrivateResult, place: int, scale: _Scale, width: str) -> Bar:
    row = result.rows[place]
    colours = _colours(len(row.values))
    shapes = [_rect(0, 100, 'fill="currentColor" fill-opacity="0.09"')]
    texts = []
    for value, colour, digits in zip(row.values, colours, result.parameters.decimals, strict=True):
        if value is None:
            continue
        low, high = map(scale.part, _cell(value))
        # A cell of one value is seen as well.
        shapes.append(
            _rect(min(low, 99.2), max(high - low, 0.8), f'class="cell" fill="{colour}" fill-opacity="0.8"')
        )
        texts.append(formats.written(value.value, value.interval, digits)[0])
    return Bar(place, _names_of(result, place), " · ".join(texts), _row_svg(shapes, width))


def _cell(value: AggregateValue | DayValue) -> tuple[float, float]:
    lower, upper = (_along_axis(end) for end in value.interval)
    return lower, upper


def _along_axis(end: Fraction | datetime.date) -> float:
    return float(end.toordinal()) if isinstance(end, datetime.date) else float(end)


def _colours(count: int) -> list[str]:
    return [_QUANTILES[place % len(_QUANTILES)] for place in range(count)]


def _row_svg(shapes: Sequence[str], width: str) -> str:
    return f'<svg class="bar" width="{width}" height="22" aria-hidden="true">{"".join(shapes)}</svg>'


def _rect(x: float, width: float, how: str) -> str:
    return f'<rect x="{x:.2f}%" y="3" width="{width:.2f}%" height="16" rx="2" {how}></rect>'


def _line(x1: float, x2: float, y1: float, y2: float, how: str) -> str:
    return f'<line x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y1:g}" y2="{y2:g}" {how}></line>'


def _along(elements: Sequence[object]) -> list[float]:
    """Return where each element is, in percent: days and numbers as far apart as they are; one is in the middle."""
    at = [
        float(each.toordinal()) if isinstance(each, datetime.date) else float(str(each)) for each in elements
    ]
    if at[-1] == at[0]:
        return [50.0] * len(at)
    return [100 * (each - at[0]) / (at[-1] - at[0]) for each in at]


def _across(part: float) -> float:
    """Return a place of the plot in percent of the picture."""
    return _LEFT + part * (100 - _LEFT - _RIGHT) / 100


def _down(scale: _Scale, value: float) -> float:
    return _FLOOR - (_FLOOR - _TOP) * scale.part(value) / 100


def _grid(scale: _Scale) -> Iterator[str]:
    """Yield lines for round numbers, with these on the left."""
    for tick in _ticks(scale):
        y, strength = _down(scale, tick), 0.6 if tick == 0 else 0.18
        yield _line(_LEFT, 100 - _RIGHT, y, y, f'stroke="currentColor" stroke-opacity="{strength}"')
        yield (
            f'<text x="{_LEFT - 1:.2f}%" y="{y + 4:.1f}" text-anchor="end" font-size="12" fill="currentColor">'
            f"{_short(tick)}</text>"
        )


def _ticks(scale: _Scale) -> list[float]:
    step = 10 ** math.floor(math.log10((scale.highest - scale.lowest) / 4))
    step *= next(each for each in (1, 2, 5, 10) if (scale.highest - scale.lowest) / (each * step) <= 5)
    first, last = math.ceil(scale.lowest / step), math.floor(scale.highest / step)
    return [place * step for place in range(first, last + 1)]


def _short(number: float) -> str:
    """Return a round number in few letters."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.4g}"


def _names(names: Sequence[str], places: Sequence[float]) -> Iterator[str]:
    """Yield the first name, the last one, and if there is room the one in the middle."""
    last = len(names) - 1
    shown = [(0, "start"), (last, "end")] if last else [(0, "middle")]
    middle = min(range(len(names)), key=lambda place: abs(places[place] - 50))
    is_apart = middle not in (0, last) and 42 <= places[middle] <= 58
    if is_apart and max(map(len, names)) <= _LETTERS_OF_THREE:
        shown.insert(1, (middle, "middle"))
    for place, anchor in shown:
        yield (
            f'<text x="{_across(places[place]):.2f}%" y="{_FLOOR + 20}" text-anchor="{anchor}" font-size="12" '
            f'fill="currentColor">{_text(names[place])}</text>'
        )


@dataclass(frozen=True)
class _Series:
    """Numbers of elements in their order, and where each is along its axis, in percent."""

    points: Sequence[Number]
    places: Sequence[float]
    names: Sequence[str]
    scale: _Scale

    def svg(self, bottom: float | None) -> str:
        """Return band, line and bottom in a square that is stretched, and a hint for each element."""
        shapes = [self._band(), self._line()]
        if len(self.points) <= _MOST_DOTS:
            shapes.append(self._dots())
        if bottom is not None:
            y = f"{100 - self.scale.part(bottom):.2f}"
            dashed = f'stroke="{_BOTTOM}" stroke-width="1.5" stroke-dasharray="4 4" {_UNSTRETCHED}'
            shapes.append(f'<line x1="0" x2="100" y1="{y}" y2="{y}" {dashed}></line>')
        if len(self.points) <= _MOST_HINTS:
            shapes += self._hints()
        return (
            f'<svg x="{_LEFT}%" y="{_TOP}" width="{100 - _LEFT - _RIGHT}%" height="{_FLOOR - _TOP}" '
            f'viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible">{"".join(shapes)}</svg>'
        )

    def _at(self, values: Iterable[float]) -> list[str]:
        pairs = zip(self.places, values, strict=True)
        return [f"{place:.2f},{100 - self.scale.part(value):.2f}" for place, value in pairs]

    def _band(self) -> str:
        upper, lower = (
            self._at(each.high for each in self.points),
            self._at(each.low for each in self.points),
        )
        if len(upper) == 1:
            how = f'stroke="{_BAR}" stroke-opacity="0.4" stroke-width="8" {_UNSTRETCHED}'
            return f'<polyline class="band" points="{upper[0]} {lower[0]}" {how}></polyline>'
        around = " ".join([*upper, *reversed(lower)])
        return f'<polygon class="band" points="{around}" fill="{_BAR}" fill-opacity="0.28"></polygon>'

    def _line(self) -> str:
        points = " ".join(self._at(each.value for each in self.points))
        how = f'fill="none" stroke="{_BAR}" stroke-width="2" stroke-linejoin="round" {_UNSTRETCHED}'
        return f'<polyline class="line" points="{points}" {how}></polyline>'

    def _dots(self) -> str:
        # A line without length has round ends, and is a dot however its square is stretched.
        dots = " ".join(f"M{each}h0" for each in self._at(each.value for each in self.points))
        return (
            f'<path d="{dots}" stroke="{_BAR}" stroke-width="7" stroke-linecap="round" {_UNSTRETCHED}></path>'
        )

    def _hints(self) -> Iterator[str]:
        """Yield what is said of an element while the pointer is nearest to it."""
        edges = [0.0, *((one + other) / 2 for one, other in pairwise(self.places)), 100.0]
        for (left, right), point, name in zip(pairwise(edges), self.points, self.names, strict=True):
            yield (
                f'<rect x="{left:.2f}" width="{right - left:.2f}" height="100" fill="none" pointer-events="all">'
                f"<title>{_text(f'{name}: {point.text} ({point.interval})')}</title></rect>"
            )


def _text(text: str) -> str:
    return html.escape(visible(text))
