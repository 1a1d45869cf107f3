"""Useful answers as a picture: a panel for each script, a row for each system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from research.lab.plots import COLOURS, drawn
from research.privolap.questions import System
from research.privolap.results import Results, Setting, mean_and_error


def draw(results: Results, systems: Sequence[System], setting: Setting, path: Path) -> None:
    """Draw means with their standard errors, where there are several runs, of systems that were measured."""
    systems = [
        system
        for system in systems
        if any(results.of(system.name, script, setting) for script in setting.scripts)
    ]
    with drawn(path, width=9.5, height=2.6) as figure:
        figure.suptitle(f"useful answers of {setting.most}, at ({setting.epsilon:g}, {setting.delta:g})")
        panels = figure.subplots(1, len(setting.scripts), sharey=True, squeeze=False)[0]
        for axes, script in zip(panels, setting.scripts, strict=True):
            found = [mean_and_error(results.of(system.name, script, setting)) for system in systems]
            bars = axes.barh(
                range(len(systems)),
                [0 if math.isnan(mean) else mean for mean, _ in found],
                xerr=[0 if math.isnan(error) else error for _, error in found],
                color=COLOURS[5],
            )
            names = ["not measured" if math.isnan(mean) else f"{mean:.3g}" for mean, _ in found]
            axes.bar_label(bars, names, padding=3)
            axes.set(title=script, xlim=(0, 1.3 * setting.most))
            axes.grid(visible=True, axis="x", alpha=0.3)
        panels[0].set(yticks=range(len(systems)), yticklabels=[system.name for system in systems])
        panels[0].invert_yaxis()
