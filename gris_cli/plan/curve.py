"""`gris plan curve`."""

from __future__ import annotations

from fractions import Fraction

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_errors
from gris_cli.plan.flags import EpsilonsFlag, HistogramFlags, SimulationFlags

# typer copies a list before it hands it over.
CURVE_EPSILONS = [Fraction(each, 50) for each in range(1, 11)]
CURVE_D_BARS = [100, 400, 1600]


@with_flags
def curve(
    *,
    source: HistogramFlags,
    run: SimulationFlags,
    k: int = flag(50, "How many elements are asked for."),
    epsilons: EpsilonsFlag = CURVE_EPSILONS,
    d_bars: list[int] = flag(CURVE_D_BARS, "How many elements are fetched; repeatable.", "--d-bar"),
    as_json: bool,
) -> None:
    """Simulate how many elements a top-k of an unknown domain returns (Rogers et al. 2020, figure 3).

    The default, 1000 runs of 30 points, takes about a minute; --trials 100 a tenth of it.
    """
    from gris_cli.sheets import print_sheets
    from gris_lab.expectations import curve_sheet
    from gris_lab.plots import check_plot, draw_curve
    from gris_lab.progress import progress
    from gris_lab.simulation import Draws, gumbel_mechanisms
    from gris_lab.simulation import curve as simulated

    check_plot(run.out, curves=len(d_bars))
    named = source.histogram()
    if named is None:
        raise typer.BadParameter("--counts, or --data with --by and --member, says which histogram")
    with named_errors():
        mechanisms = gumbel_mechanisms(epsilons, d_bars, delta=run.delta, k=k, tau=run.tau)
        with progress("simulating", run.trials * len(mechanisms)) as advance:
            points = list(simulated(named, mechanisms, Draws(run.seed), trials=run.trials, advance=advance))
    if run.out:
        title = (
            f"{named.source}: elements of a top {k}, delta = {float(run.delta):g}, {run.trials} runs a point"
        )
        draw_curve(points, run.out, k=k, title=title)
    print_sheets({"points": curve_sheet(points)}, as_json=as_json)
