"""A series as SVG: a line with a band, in the order of its elements."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pinot_connector.notebooks.svg import BAR, BOTTOM, Number, Scale, escaped, line
from pinot_connector.shown_values import ShownScalar

_HEIGHT, _TOP, _FLOOR = 270, 10, 240
# In percent: room for the numbers of the axis.
_LEFT, _RIGHT = 11.0, 2.0
_MOST_DOTS, _MOST_HINTS = 60, 400
_LETTERS_OF_THREE = 12
_UNSTRETCHED = 'vector-effect="non-scaling-stroke"'


def series_svg(
    label: str, elements: Sequence[ShownScalar], points: Sequence[Number], bottom: float | None
) -> str:
    """Return a picture of numbers that belong to days or whole numbers; empty if there are none.

    Args:
        label: What is drawn, for those who do not see it.
        elements: In ascending order.
        points: The number of each.
        bottom: Where a dashed line is; None: there is none.
    """
    if not points:
        return ""
    scale, names = Scale.of(points, bottom), list(map(str, elements))
    drawn = _Series(points, _along(elements), names, scale)
    parts = [*_grid(scale), *_names(names, drawn.places), drawn.svg(bottom)]
    return (
        f'<svg class="series tex2jax_ignore mathjax_ignore" role="img" aria-label="{escaped(label)}" width="100%" '
        f'height="{_HEIGHT}">{"".join(parts)}</svg>'
    )


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


def _down(scale: Scale, value: float) -> float:
    return _FLOOR - (_FLOOR - _TOP) * scale.part(value) / 100


def _grid(scale: Scale) -> Iterator[str]:
    """Yield lines for round numbers, with these on the left."""
    for tick in _ticks(scale):
        y, strength = _down(scale, tick), 0.6 if tick == 0 else 0.18
        yield line(_LEFT, 100 - _RIGHT, y, y, f'stroke="currentColor" stroke-opacity="{strength}"')
        yield (
            f'<text x="{_LEFT - 1:.2f}%" y="{y + 4:.1f}" text-anchor="end" font-size="12" fill="currentColor">'
            f"{_short(tick)}</text>"
        )


def _ticks(scale: Scale) -> list[float]:
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
            f'fill="currentColor">{escaped(names[place])}</text>'
        )


@dataclass(frozen=True)
class _Series:
    """Numbers of elements in their order, and where each is along its axis, in percent."""

    points: Sequence[Number]
    places: Sequence[float]
    names: Sequence[str]
    scale: Scale

    def svg(self, bottom: float | None) -> str:
        """Return band, line and bottom in a square that is stretched, and a hint for each element."""
        shapes = [self._band(), self._line()]
        if len(self.points) <= _MOST_DOTS:
            shapes.append(self._dots())
        if bottom is not None:
            y = f"{100 - self.scale.part(bottom):.2f}"
            dashed = f'stroke="{BOTTOM}" stroke-width="1.5" stroke-dasharray="4 4" {_UNSTRETCHED}'
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
            how = f'stroke="{BAR}" stroke-opacity="0.4" stroke-width="8" {_UNSTRETCHED}'
            return f'<polyline class="band" points="{upper[0]} {lower[0]}" {how}></polyline>'
        around = " ".join([*upper, *reversed(lower)])
        return f'<polygon class="band" points="{around}" fill="{BAR}" fill-opacity="0.28"></polygon>'

    def _line(self) -> str:
        points = " ".join(self._at(each.value for each in self.points))
        how = f'fill="none" stroke="{BAR}" stroke-width="2" stroke-linejoin="round" {_UNSTRETCHED}'
        return f'<polyline class="line" points="{points}" {how}></polyline>'

    def _dots(self) -> str:
        # A line without length has round ends, and is a dot however its square is stretched.
        dots = " ".join(f"M{each}h0" for each in self._at(each.value for each in self.points))
        return (
            f'<path d="{dots}" stroke="{BAR}" stroke-width="7" stroke-linecap="round" {_UNSTRETCHED}></path>'
        )

    def _hints(self) -> Iterator[str]:
        """Yield what is said of an element while the pointer is nearest to it."""
        edges = [0.0, *((one + other) / 2 for one, other in pairwise(self.places)), 100.0]
        for (left, right), point, name in zip(pairwise(edges), self.points, self.names, strict=True):
            yield (
                f'<rect x="{left:.2f}" width="{right - left:.2f}" height="100" fill="none" pointer-events="all">'
                f"<title>{escaped(f'{name}: {point.text} ({point.interval})')}</title></rect>"
            )
