"""What pictures are made of: numbers, their scale, and shapes of SVG. All texts are escaped here."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from pinot_connector.notebooks.cells import visible

BAR, BOTTOM = "#2f86b5", "#c2650a"


@dataclass(frozen=True)
class Number:
    """A number of an element with both ends of its interval, as it is drawn and as it is written."""

    value: float
    low: float
    high: float
    text: str
    interval: str


@dataclass(frozen=True)
class Scale:
    """The numbers between which a picture is."""

    lowest: float
    highest: float

    @classmethod
    def of(cls, shown: Sequence[Number], bottom: float | None) -> Scale:
        """Return a scale that holds 0, all numbers, their intervals, and bottom."""
        ends = [end for each in shown for end in (each.value, each.low, each.high)]
        ends += [0.0] if bottom is None else [0.0, bottom]
        low, high = min(ends), max(ends)
        return cls(low, high if high > low else low + 1)

    def part(self, value: float) -> float:
        """Return where a number is, in percent of the scale."""
        return 100 * (value - self.lowest) / (self.highest - self.lowest)


def rect(x: float, width: float, how: str) -> str:
    """Return a bar of a row, from a place on and so wide, in percent."""
    return f'<rect x="{x:.2f}%" y="3" width="{width:.2f}%" height="16" rx="2" {how}></rect>'


def line(x1: float, x2: float, y1: float, y2: float, how: str) -> str:
    """Return a line, along in percent and down in pixels."""
    return f'<line x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y1:g}" y2="{y2:g}" {how}></line>'


def escaped(text: str) -> str:
    """Return a text that is only a text."""
    return html.escape(visible(text))
