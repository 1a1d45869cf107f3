"""`gris plan usage`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.plan.flags import (
    CALLS,
    DELTA,
    INFORMATION,
    DeltaFlag,
    OutFlag,
)

INFORMATION_LIMITS = [500, 1000, 2000, 3000, 5000]
CALL_LIMITS = [30, 100, 300]


@with_flags
def usage(
    charges: Annotated[
        Path,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="A CSV file of charges: account, day since refresh, information, calls.",
        ),
    ],
    *,
    information: list[int] = flag(INFORMATION_LIMITS, "A limit of information units; repeatable.", min=0),
    calls: list[int] = flag(CALL_LIMITS, "A limit of calls; repeatable.", min=0),
    delta: DeltaFlag = DELTA,
    title: str = flag("", "The picture's title: whose charges these are."),
    out: OutFlag = None,
    as_json: bool,
) -> None:
    """Show how many accounts would use up a budget, by day since refresh (Rogers et al. 2020, figure 5).

    Of a budget of the default size it says which unit runs out first, and which delta would balance the two.
    """
    from gris_cli.sheets import print_sheets
    from gris_lab.plots import check_plot, draw_usage
    from gris_lab.usage import exhausted, pace_of, read_charges, usage_sheet
    from pinot_connector.budgets import Cost

    check_plot(out, curves=max(len(information), len(calls)))
    asked = read_charges(charges)
    found = [*exhausted(asked, "information", information), *exhausted(asked, "calls", calls)]
    if out:
        draw_usage(found, out, title=title or f"Charges of {charges.name}")
    pace = pace_of(asked, Cost(INFORMATION, CALLS, ""), delta)
    print_sheets({"usage": usage_sheet(found, pace)}, as_json=as_json)
