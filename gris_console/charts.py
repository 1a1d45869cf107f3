"""Pictures of usage, as numbers for SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gris_api.budget.v1 import admin_pb2

# More curves cannot be distinguished.
MOST_CURVES = 6
WIDTH, HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 12, 40


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
