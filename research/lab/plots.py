"""Figures, drawn by matplotlib into PNG or SVG files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from research.accounting.composed import Bound, Composed, Ratio
from research.lab.simulation import CurvePoint, Found, FoundElement

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; markers repeat what they say.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_curve(points: Sequence[CurvePoint], path: Path, *, k: int, title: str) -> None:
    """Draw how many elements a top-k returns against epsilon_per, a line and a band for each d_bar."""
    with _axes(path, width=7.0, height=4.5) as axes:
        for style, (d_bar, group) in zip(styles(), groupby(points, lambda each: each.d_bar), strict=False):
            line = list(group)
            epsilons = [float(each.epsilon_per) for each in line]
            axes.plot(epsilons, [each.mean for each in line], label=f"d_bar = {d_bar}", **style)
            bounds = [each.lower for each in line], [each.upper for each in line]
            axes.fill_between(epsilons, *bounds, color=style["color"], alpha=0.2, linewidth=0)
        axes.set(
            xlabel="epsilon_per (privacy loss of one information unit)",
            ylabel=f"elements returned, of {k}",
            title=title,
            ylim=(0, None),
        )
        axes.legend(title="mean; band: 25 % to 75 % of runs", alignment="left")


def draw_found(epsilons: Sequence[Fraction], runs: Sequence[Found], path: Path, *, title: str) -> None:
    """Draw true and noisy counts, and beside them how often each element is found; a row for each epsilon_per.

    All rows have one scale, so that they can be compared.
    """
    with drawn(path, width=9.5, height=0.5 + 2.9 * len(runs)) as figure:
        figure.suptitle(title)
        rows = figure.subplots(len(runs), 2, squeeze=False, sharex=True, sharey="col")
        for (counts, shares), epsilon_per, run in zip(rows, epsilons, runs, strict=True):
            _draw_counts(counts, run.elements)
            _draw_shares(shares, run.elements)
            for axes in (counts, shares):
                axes.set_title(f"epsilon_per = {float(epsilon_per):g}")
                axes.grid(visible=True, alpha=0.3)
        for axes in rows[-1]:
            axes.set_xlabel("rank of the element by true count")
        rows[0][0].legend(loc="upper right")
        _from_rank_one(rows[0][0], max(len(run.elements) for run in runs))


def _draw_counts(axes: Any, elements: Sequence[FoundElement]) -> None:
    ranks = [each.rank for each in elements]
    # Small points below the bars: where there is little noise, bars are no longer than a point.
    points = _style(0, line="-") | {"markersize": 2.5}
    axes.plot(ranks, [each.count for each in elements], label="true count", **points)
    seen = [each for each in elements if each.lower is not None and each.upper is not None]
    middles = [((each.lower or 0.0) + (each.upper or 0.0)) / 2 for each in seen]
    halves = [((each.upper or 0.0) - (each.lower or 0.0)) / 2 for each in seen]
    axes.errorbar(
        [each.rank for each in seen],
        middles,
        yerr=halves,
        color=COLOURS[1],
        linestyle="",
        capsize=3,
        zorder=3,
        label="noisy counts, 95 % of the runs that find it",
    )
    axes.set(ylabel="members", ylim=(0, None))


def _draw_shares(axes: Any, elements: Sequence[FoundElement]) -> None:
    axes.bar([each.rank for each in elements], [100 * each.share for each in elements], color=COLOURS[5])
    axes.set(ylabel="runs that find it [%]", ylim=(0, 105))


_MOST_TICKS = 15
_STEPS = tuple(digit * 10**power for power in range(6) for digit in (1, 2, 5))


def _from_rank_one(axes: Any, last: int) -> None:
    """Let ranks begin at 1, with whole numbers below."""
    step = next(each for each in _STEPS if last <= _MOST_TICKS * each)
    axes.set(xlim=(0.4, last + 0.6), xticks=sorted({1, *range(step, last + 1, step)}))


_RATIO_LINES: tuple[tuple[str, Literal["-", "--", ":"]], ...] = (
    ("lemma 4.4", "-"),
    ("zCDP", "--"),
    ("adaptive", ":"),
)


def draw_composition(
    found: Sequence[Ratio], epsilon_per: Fraction, bounds: Sequence[Composed], path: Path, *, title: str
) -> None:
    """Draw the ratio of optimal general composition to that of bounded range against the number of mechanisms, and
    the epsilons of all bounds for one epsilon_per.
    """
    with drawn(path, width=11.0, height=5.0) as figure:
        figure.suptitle(title)
        left, right = figure.subplots(1, 2)
        _draw_ratios(left, found)
        counts = [each.count for each in bounds]
        for style, bound in zip(styles(), Bound, strict=False):
            line = [each.by_bound[bound] for each in bounds]
            right.plot(counts, line, label=bound.value, **(style | {"marker": ""}))
        right.set(
            xlabel="mechanisms composed, k",
            ylabel="epsilon of all k together",
            title=f"every bound, epsilon_per = {float(epsilon_per):g}",
            xlim=(1, None),
            ylim=(0, 1.6 * bounds[-1].by_bound[Bound.DURFEE_ROGERS]),
        )
        right.legend(title="bound", alignment="left")
        for axes in (left, right):
            axes.grid(visible=True, alpha=0.3)


def _draw_ratios(axes: Any, found: Sequence[Ratio]) -> None:
    """Draw the ratios, a colour for each epsilon_per and a line style for each bound.

    Where delta is too small to buy anything, all epsilons are the sum, and there is nothing to compare: the lines begin
    where it does.
    """
    groups = groupby(found, lambda each: each.epsilon_per)
    handles = []
    for colour, (epsilon_per, group) in zip(COLOURS, groups, strict=False):
        line = [each for each in group if each.uses_delta]
        counts = [each.count for each in line]
        for values, (_, style) in zip(_ratio_values(line), _RATIO_LINES, strict=True):
            axes.plot(counts, values, color=colour, linestyle=style)
        handles.append(Line2D([], [], color=colour, label=f"epsilon_per = {float(epsilon_per):g}"))
    axes.set(
        xlabel="mechanisms composed, k (left of a line's beginning k is too small\n"
        "for delta to buy anything: every epsilon is the sum, the ratio 1)",
        ylabel="best epsilon of any DP / epsilon of bounded range",
        title="what bounded range gains",
        xlim=(1, None),
        ylim=(1, None),
    )
    handles += [Line2D([], [], color="black", linestyle=style, label=name) for name, style in _RATIO_LINES]
    # The lines leave no corner free.
    axes.legend(
        handles=handles,
        title="colours: epsilon_per; line styles: the bound of bounded range",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=4,
    )


def _ratio_values(line: Sequence[Ratio]) -> tuple[list[float], list[float], list[float]]:
    return [each.lemma_4_4 for each in line], [each.zcdp for each in line], [each.adaptive for each in line]


def styles() -> Iterator[dict[str, Any]]:
    """Return a colour and a marker for each line, as many as can be distinguished."""
    return (_style(index, line="-") for index in range(len(COLOURS)))


def _style(index: int, *, line: str) -> dict[str, Any]:
    return {"color": COLOURS[index], "marker": _MARKERS[index], "markersize": 4, "linestyle": line}


@contextmanager
def _axes(path: Path, *, width: float, height: float) -> Iterator[Any]:
    with drawn(path, width=width, height=height) as figure:
        axes = figure.subplots()
        yield axes
        axes.grid(visible=True, alpha=0.3)


@contextmanager
def drawn(path: Path, *, width: float, height: float) -> Iterator[Any]:
    """Yield a figure of this size in inches, and write it to the file when all is drawn."""
    # Neither the date nor a random salt: the same numbers give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "gris", "font.size": 9}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, dpi=150, metadata=metadata)
