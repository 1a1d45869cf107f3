"""The plot of a comparison of methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dp_service.partitions import Method
from research.lab.domain_comparison import Compared, Run
from research.lab.plots import drawn, styles


def draw_compared(result: Compared, path: Path, *, iterations: int, title: str) -> None:
    """Draw released elements against rho, a line for each method, and against the rounds of SIPS, if it is compared.

    Source: figures 6 and 7 of Swanberg et al. 2023.
    """
    has_rounds = any(run.parameters.method is Method.SIPS for run in result.runs)
    panels = 2 if has_rounds else 1
    with drawn(path, width=5.0 * panels, height=4.2) as figure:
        figure.suptitle(title)
        by_rho, *by_iterations = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
        _draw_by_rho(by_rho, result, iterations)
        for axes in by_iterations:
            _draw_by_iterations(axes, result)


def _draw_by_rho(axes: Any, result: Compared, iterations: int) -> None:
    methods = [each for each in Method if any(run.parameters.method is each for run in result.runs)]
    for style, method in zip(styles(), methods, strict=False):
        line = sorted(
            (
                run
                for run in result.runs
                if run.parameters.method is method
                and (method is not Method.SIPS or run.parameters.iterations == iterations)
            ),
            key=lambda run: run.parameters.rho,
        )
        _draw_line(axes, [float(run.parameters.rho) for run in line], line, method.value, style)
    axes.set(xlabel="rho, the price", ylabel="released elements", xscale="log", ylim=(0, None))
    axes.legend(title="mean; band: all runs", alignment="left")


def _draw_by_iterations(axes: Any, result: Compared) -> None:
    sips = [run for run in result.runs if run.parameters.method is Method.SIPS]
    for style, rho in zip(styles(), sorted({run.parameters.rho for run in sips}), strict=False):
        line = sorted(
            (run for run in sips if run.parameters.rho == rho), key=lambda run: run.parameters.iterations
        )
        _draw_line(axes, [run.parameters.iterations for run in line], line, f"rho = {float(rho):g}", style)
    axes.set(
        xlabel="rounds of sips",
        ylabel="released elements",
        ylim=(0, None),
        xticks=sorted({run.parameters.iterations for run in sips}),
    )
    # The lines leave no corner free.
    axes.legend(title="mean; band: all runs", alignment="left", loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_line(
    axes: Any, places: Sequence[float], line: Sequence[Run], label: str, style: dict[str, Any]
) -> None:
    """Draw the means of some runs, and a band from the least to the most that any of them released."""
    axes.plot(places, [run.mean for run in line], label=label, **style)
    least, most = [min(run.released) for run in line], [max(run.released) for run in line]
    axes.fill_between(places, least, most, color=style["color"], alpha=0.25, linewidth=0)
    axes.grid(visible=True, alpha=0.3)
