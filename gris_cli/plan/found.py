"""`gris plan found`."""

from __future__ import annotations

from typing import Annotated

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_errors
from gris_cli.plan.flags import EPSILON_PER, DBarFlag, EpsilonsFlag, HistogramFlags, SimulationFlags

FOUND_EPSILONS = [EPSILON_PER]
_DeltaL0Flag = Annotated[
    int | None,
    typer.Option(
        "--delta-l0",
        help="How many elements a member can have (Delta), for UnkLap or KnownLap; by default UnkGumb or KnownGumb.",
    ),
]
_KnownFlag = Annotated[
    bool,
    typer.Option(
        "--known",
        help="The domain is known: it is all elements of the histogram. Those of it that the data lack are lines with "
        "0 in --counts.",
    ),
]


@with_flags
def found(
    *,
    source: HistogramFlags,
    run: SimulationFlags,
    k: int = flag(100, "How many elements are asked for, and shown here."),
    epsilons: EpsilonsFlag = FOUND_EPSILONS,
    delta_l0: _DeltaL0Flag = None,
    known: _KnownFlag = False,
    d_bar: DBarFlag = 1000,
    as_json: bool,
) -> None:
    """Show which counts are found. With a histogram, simulate how often, at what price and how exactly.

    The picture is figure 4 of Rogers et al. 2020.
    """
    from gris_cli.sheets import print_sheets
    from gris_lab.expectations import PlannedQuestion, expected_sheet, found_sheet, planned
    from gris_lab.plots import check_plot, draw_found
    from gris_lab.progress import progress
    from gris_lab.simulation import Draws
    from gris_lab.simulation import found as simulated

    check_plot(run.out)
    named = source.histogram()
    if run.out and not named:
        raise typer.BadParameter("--out needs a histogram: --counts, or --data with --by and --member")
    with named_errors():
        size = len(named.elements) if named else None
        fetched = None if known else d_bar
        plan = PlannedQuestion(k=k, d_bar=fetched, tau=run.tau, delta_l0=delta_l0, size=size)
        mechanisms, needed = planned(plan, epsilons, run.delta)
        sheets = {"needed": needed}
        if named:
            with progress("simulating", run.trials * len(mechanisms)) as advance:
                runs = [
                    simulated(named, each, Draws(run.seed), shown=k, trials=run.trials, advance=advance)
                    for each in mechanisms
                ]
            sheets["expected"] = expected_sheet(mechanisms, runs)
            sheets["found"] = found_sheet(epsilons, runs)
            if run.out:
                domain = "a known domain" if known else f"d_bar = {d_bar}, delta = {float(run.delta):g}"
                name = f"{mechanisms[0].name.value}, {domain}, {run.trials} runs"
                draw_found(epsilons, runs, run.out, title=f"{named.source}: {name}")
    print_sheets(sheets, as_json=as_json)
