"""The plot of an answer, drawn by matplotlib into a PNG or SVG file."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from pinot_connector.parameters import Parameters
from pinot_connector.results import PrivateResult

_SUFFIXES = (".png", ".svg")
_WIDTH, _HEIGHT = 7.0, 4.5
# A bar needs so much height, in inches.
_BAR = 0.22


def require_drawable(path: Path | None) -> None:
    """Make sure that the plot can be drawn, before the answer is paid for.

    Args:
        path: Where to write it; None: no plot is wanted.

    Raises:
        typer.BadParameter: It cannot be drawn.
    """
    if path is None:
        return
    if path.suffix not in _SUFFIXES:
        raise typer.BadParameter(f"--plot expects a file named .png or .svg, got {path.name}")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"--plot: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise typer.BadParameter(f"--plot: {path} cannot be written")
    import matplotlib  # noqa: F401 - an extra of its own: before anything is paid


def require_counts(parameters: Parameters) -> None:
    """Make sure that an answer will have counts to draw, which flags do not tell of a question in SQL.

    Raises:
        typer.BadParameter: It will have none.
    """
    if parameters.noise_scale is None:
        raise typer.BadParameter("--plot draws counts, and the question is for none; leave out --plot")


def draw_answer(result: PrivateResult, path: Path) -> None:
    """Draw an answer and write the plot.

    Raises:
        InvalidQuestion: The answer has no counts.
        typer.BadParameter: The file cannot be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    # Neither the date nor a random salt: the same answer gives the same file.
    with matplotlib.rc_context({"svg.hashsalt": "gris", "font.size": 9}):
        figure = Figure(figsize=(_WIDTH, _height(result)), layout="constrained")
        result.plot(axes=figure.subplots())
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        try:
            figure.savefig(path, dpi=150, metadata=metadata)
        except OSError as error:
            raise typer.BadParameter(f"--plot: {path}: {error.strerror}") from None


def _height(result: PrivateResult) -> float:
    """Return how high the plot is, in inches."""
    from pinot_connector.notebooks.plots import MAX_BARS, is_series

    bars = 0 if is_series(result) else min(len(result.rows), MAX_BARS)
    return max(_HEIGHT, bars * _BAR)
