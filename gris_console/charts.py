"""Pictures of answers and of usage, as numbers for SVG: places in percent, so that a picture is as wide as its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gris_api.budget.v1 import admin_pb2

from pinot_connector.results import PrivateResult, Row

MOST_BARS = 50
# More curves cannot be distinguished.
MOST_CURVES = 6
WIDTH, HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 12, 40


@dataclass(frozen=True)
class Bar:
    """One element: its names, its count as text, and where bar and interval begin and end, in percent."""

    names: tuple[str, ...]
    count: str
    interval: str
    begins: str
    width: str
    low: str
    high: str


@dataclass(frozen=True)
class BarChart:
    """The bars of an answer; `zero` and `bottom` are where the lines are, `bottom` None where there is none."""

    bars: tuple[Bar, ...]
    zero: str
    bottom: str | None
    left_out: int


def bar_chart(result: PrivateResult) -> BarChart | None:
    """Return the picture of an answer; None: it has no counts."""
    rows = [row for row in result.rows if row.interval is not None and row.noisy_count is not None]
    if not rows:
        return None
    shown = rows[:MOST_BARS]
    ends = [end for row in shown for end in _ends(row)] + (
        [result.bottom] if result.bottom is not None else []
    )
    scale = _Scale(min(0.0, *map(float, ends)), max(1.0, *map(float, ends)))
    return BarChart(
        bars=tuple(_bar(row, scale) for row in shown),
        zero=scale.place(0),
        bottom=None if result.bottom is None else scale.place(result.bottom),
        left_out=len(rows) - len(shown),
    )


@dataclass(frozen=True)
class _Scale:
    lowest: float
    highest: float

    def place(self, value: float) -> str:
        return f"{100 * (value - self.lowest) / (self.highest - self.lowest):.2f}%"

    def width(self, value: float) -> str:
        return f"{100 * abs(value) / (self.highest - self.lowest):.2f}%"


def _bar(row: Row, scale: _Scale) -> Bar:
    count, low, high = _ends(row)
    return Bar(
        names=tuple(map(str, row.element)),
        count=f"{count:,}",
        interval=f"{low:,} to {high:,}",
        begins=scale.place(min(0, count)),
        width=scale.width(count),
        low=scale.place(low),
        high=scale.place(high),
    )


def _ends(row: Row) -> tuple[int | float, int, int]:
    low, high = row.interval or (0, 0)
    return row.noisy_count or 0, low, high


@dataclass(frozen=True)
class Curve:
    """The share of accounts that had used up a limit, by day: points of an SVG, and the legend."""

    label: str
    number: int
    points: str


@dataclass(frozen=True)
class UsageChart:
    """One unit's curves, with the marks of both axes: (place, text)."""

    unit: str
    curves: tuple[Curve, ...]
    days: tuple[tuple[float, str], ...]
    shares: tuple[tuple[float, str], ...]


def usage_charts(report: admin_pb2.GetUsageReportResponse) -> list[UsageChart]:
    """Return a picture of a usage report for each unit that has a limit."""
    return [
        _usage_chart(unit, [each for each in report.curves if each.unit == unit], max(1, report.accounts))
        for unit in ("information", "calls")
        if any(each.unit == unit for each in report.curves)
    ]


def _usage_chart(unit: str, curves: Sequence[admin_pb2.UsageCurve], accounts: int) -> UsageChart:
    days = max(1, *(len(each.exhausted_accounts) for each in curves))
    step = max(1, days // 6)
    return UsageChart(
        unit=unit,
        curves=tuple(
            Curve(f"{each.limit:,}", number, _points(each, days, accounts))
            for number, each in enumerate(curves[:MOST_CURVES], start=1)
        ),
        days=tuple((_x(day, days), str(day)) for day in range(0, days + 1, step)),
        shares=tuple((_y(share / 4), f"{25 * share} %") for share in range(5)),
    )


def _points(curve: admin_pb2.UsageCurve, days: int, accounts: int) -> str:
    """Return the steps of a curve: a share is that of the end of a day."""
    places, before = [(0, 0.0)], 0.0
    for day, count in enumerate(curve.exhausted_accounts, start=1):
        places += [(day, before), (day, count / accounts)]
        before = count / accounts
    return " ".join(f"{_x(day, days):.1f},{_y(share):.1f}" for day, share in places)


def _x(day: int, days: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * day / days


def _y(share: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share
