"""The pictures of `gris plan`, drawn by matplotlib into PNG or SVG files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from dp_service.accounting.composition import Bound
from gris_cli.plan.composition import Composed, Ratio
from gris_cli.plan.simulation import CurvePoint, FoundElement
from gris_cli.plan.usage import Exhausted

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; markers repeat what they say.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_SUFFIXES = (".png", ".svg")


def check_picture(path: Path | None, *, curves: int = 1) -> None:
    """Check that a figure can be drawn if one is wanted, before anything slow begins.

    Raises:
        typer.BadParameter: It cannot be drawn.
    """
    if path is None:
        return
    if curves > len(_COLOURS):
        raise typer.BadParameter(f"--out can tell six curves apart by their colours, not {curves}")
    if path.suffix not in _SUFFIXES:
        raise typer.BadParameter(f"--out expects a file named .png or .svg, got {path.name}")
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra of its own
    except ModuleNotFoundError:
        raise typer.BadParameter("--out needs pip install 'gris-dp[plan]'") from None


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
        axes.legend(title="mean; band: 25 % to 75 % of runs")


def draw_found(
    epsilons: Sequence[Fraction], runs: Sequence[Sequence[FoundElement]], path: Path, *, title: str
) -> None:
    """Draw true and noisy counts, and how often each element is found, one panel for each epsilon_per."""
    with drawn(path, width=7.0, height=3.4 * len(runs)) as figure:
        figure.suptitle(title)
        panels = figure.subplots(len(runs), squeeze=False)[:, 0]
        for axes, epsilon_per, elements in zip(panels, epsilons, runs, strict=True):
            _draw_panel(axes, f"epsilon_per = {float(epsilon_per):g}", elements)


def _draw_panel(axes: Any, name: str, elements: Sequence[FoundElement]) -> None:
    ranks = [each.rank for each in elements]
    shares = axes.twinx()
    shares.bar(
        ranks, [100 * each.share for each in elements], color="#D9D9D9", width=0.8, label="found (right)"
    )
    shares.set(ylabel="runs that find it [%]", ylim=(0, 105))
    axes.plot(ranks, [each.count for each in elements], label="true count", **_style(0, line="-"))
    seen = [each for each in elements if each.noisy_count is not None]
    noisy = [each.noisy_count for each in seen]
    axes.plot([each.rank for each in seen], noisy, label="noisy count, one run", **_style(1, line=""))
    # The shares belong behind the counts.
    axes.set_zorder(shares.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.set(xlabel="rank of the element by true count", ylabel="members", title=name, ylim=(0, None))
    lines, bars = axes.get_legend_handles_labels(), shares.get_legend_handles_labels()
    axes.legend(lines[0] + bars[0], lines[1] + bars[1], loc="upper right")


_BOUND_NAMES = {
    Bound.BASIC: "adding up",
    Bound.DURFEE_ROGERS: "lemma 4.4",
    Bound.DONG_DURFEE_ROGERS: "Dong et al.",
    Bound.ZCDP: "zCDP",
    Bound.ADAPTIVE: "adaptive, smallest",
}


def draw_composition(
    found: Sequence[Ratio], epsilon_per: Fraction, bounds: Sequence[Composed], path: Path, *, title: str
) -> None:
    """Draw the ratio of optimal general composition to that of bounded range against the number of mechanisms, and
    the epsilons of all bounds for one epsilon_per.
    """
    with drawn(path, width=11.0, height=4.5) as figure:
        figure.suptitle(title)
        left, right = figure.subplots(1, 2)
        _draw_ratios(left, found)
        counts = [each.count for each in bounds]
        for style, (bound, name) in zip(styles(), _BOUND_NAMES.items(), strict=False):
            line = [each.by_bound.get(bound, math.nan) for each in bounds]
            right.plot(counts, line, label=name, **(style | {"marker": ""}))
        right.set(
            xlabel="mechanisms composed, k",
            ylabel=f"epsilon, epsilon_per = {float(epsilon_per):g}",
            ylim=(0, 1.6 * bounds[-1].by_bound[Bound.DURFEE_ROGERS]),
        )
        right.legend()
        for axes in (left, right):
            axes.grid(visible=True, alpha=0.3)


def _draw_ratios(axes: Any, found: Sequence[Ratio]) -> None:
    groups = groupby(found, lambda each: each.epsilon_per)
    for colour, (epsilon_per, group) in zip(_COLOURS, groups, strict=False):
        line = list(group)
        counts = [each.count for each in line]
        axes.plot(
            counts,
            [each.lemma_4_4 for each in line],
            color=colour,
            label=f"epsilon_per = {float(epsilon_per):g}",
        )
        axes.plot(counts, [each.zcdp for each in line], color=colour, linestyle="--")
        axes.plot(counts, [each.adaptive for each in line], color=colour, linestyle=":")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xlabel="mechanisms composed, k", ylabel="optimal epsilon of any DP / of bounded range")
    # The curves leave no corner free.
    axes.legend(
        title="solid: lemma 4.4; dashed: zCDP; dotted: adaptive",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        ncols=3,
    )


def draw_usage(
    found: Sequence[Exhausted], path: Path, *, title: str, share: str = "accounts above the limit"
) -> None:
    """Draw the share of accounts against days since refresh, a line for each limit, one panel for each unit."""
    with drawn(path, width=8.5, height=4.0) as figure:
        figure.suptitle(title)
        units = [(unit, list(group)) for unit, group in groupby(found, lambda each: each.unit)]
        panels = figure.subplots(1, len(units), squeeze=False)[0]
        for axes, (unit, group) in zip(panels, units, strict=True):
            for style, each in zip(styles(), group, strict=False):
                days = range(1, each.shares.size + 1)
                axes.plot(days, 100 * each.shares, label=f"{each.limit}", **style)
            axes.set(xlabel="days since refresh", ylabel=f"{share} [%]", ylim=(0, None))
            axes.legend(title=f"limit of {unit}")
            axes.grid(visible=True, alpha=0.3)


def styles() -> Iterator[dict[str, Any]]:
    """Return a colour and a marker for each line, as many as can be distinguished."""
    return (_style(index, line="-") for index in range(len(_COLOURS)))


def _style(index: int, *, line: str) -> dict[str, Any]:
    return {"color": _COLOURS[index], "marker": _MARKERS[index], "markersize": 4, "linestyle": line}


@contextmanager
def _axes(path: Path, *, width: float, height: float) -> Iterator[Any]:
    with drawn(path, width=width, height=height) as figure:
        axes = figure.subplots()
        yield axes
        axes.grid(visible=True, alpha=0.3)


@contextmanager
def drawn(path: Path, *, width: float, height: float) -> Iterator[Any]:
    """Yield a figure of this size in inches, and write it to the file when all is drawn."""
    import matplotlib  # noqa: PLC0415 - an extra of its own
    from matplotlib.figure import Figure  # noqa: PLC0415

    # Neither the date nor a random salt: the same numbers give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "gris", "font.size": 9}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        try:
            figure.savefig(path, dpi=150, metadata=metadata)
        except OSError as error:
            raise typer.BadParameter(f"--out: {path}: {error.strerror}") from None
