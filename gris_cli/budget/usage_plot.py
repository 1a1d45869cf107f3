"""The picture of `gris budget usage`: Rogers et al. 2020, figure 5."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from gris_cli.data.errors import InputError

if TYPE_CHECKING:
    from gris_api.budget.v1 import admin_pb2

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; markers repeat what they say.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_SUFFIXES = (".png", ".svg")


def check_plot(path: Path | None, curves: int) -> None:
    """Check that a figure can be drawn if one is wanted, before the ledger is read.

    Raises:
        InputError: It cannot be drawn.
    """
    if path is None:
        return
    if curves > len(_COLOURS):
        raise InputError(f"six curves have colours of their own, and not {curves}", "out")
    if path.suffix not in _SUFFIXES:
        raise InputError(f"expected a file named .png or .svg, got {path.name}", "out")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}", "out")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{path} cannot be written", "out")
    import matplotlib  # noqa: F401 - an extra of its own


def draw_usage(report: admin_pb2.GetUsageReportResponse, path: Path, *, account: str) -> None:
    """Draw the share of accounts against days, a line for each limit and a panel for each unit.

    Raises:
        InputError: The file cannot be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    accounts = max(1, report.accounts)
    units = [(unit, list(group)) for unit, group in groupby(report.curves, lambda each: each.unit)]
    # Neither the date nor a random salt: the same numbers give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "gris", "font.size": 9}):
        figure = Figure(figsize=(8.5, 4.0), layout="constrained")
        figure.suptitle(f"Accounts below {account} that would have used up a budget")
        panels = figure.subplots(1, len(units), squeeze=False)[0]
        for axes, (unit, group) in zip(panels, units, strict=True):
            for colour, marker, each in zip(_COLOURS, _MARKERS, group, strict=False):
                shares = [100 * count / accounts for count in each.exhausted_accounts]
                style = {"color": colour, "marker": marker, "markersize": 4}
                axes.plot(range(1, len(shares) + 1), shares, label=f"{each.limit}", **style)
            axes.set(
                xlabel="days since refresh",
                ylabel="accounts that used it up [%]",
                xlim=(0, None),
                ylim=(0, None),
            )
            axes.legend(title=f"limit of {unit}", alignment="left")
            axes.grid(visible=True, alpha=0.3)
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else {})
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", "out") from None
