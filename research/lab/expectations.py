"""What curves and found elements are: tables."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gris_cli.data.sheets import Column, Sheet, percent
from research.lab.simulation import CurvePoint, Found


def curve_sheet(points: Sequence[CurvePoint]) -> Sheet:
    """Return how many elements were returned at each point."""
    return Sheet(
        (
            Column("d_bar", "d_bar"),
            Column("epsilon_per", "epsilon_per"),
            Column("lower", "25 %"),
            Column("mean", "mean"),
            Column("upper", "75 %"),
        ),
        [(each.d_bar, each.epsilon_per, each.lower, each.mean, each.upper) for each in points],
        (("", "elements returned; these numbers come from true counts and are not private"),),
    )


def found_sheet(epsilons: Sequence[Fraction], runs: Sequence[Found]) -> Sheet:
    """Return how often each element was found, for each epsilon_per."""
    return Sheet(
        (
            Column("epsilon_per", "epsilon_per"),
            Column("rank", "#"),
            Column("element", "element", is_text=True),
            Column("count", "true count"),
            Column("noisy_count", "noisy, one run"),
            Column("share", "found", percent),
            Column("expected", "expected", percent),
        ),
        [
            (epsilon_per, each.rank, each.element, each.count, each.noisy_count, each.share, each.expected)
            for epsilon_per, run in zip(epsilons, runs, strict=True)
            for each in run.elements
        ],
        (("", "true counts are shown here and are not private"),),
    )
