"""The commands of `gris plan` that read histograms or charges."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flags import JsonFlag
from gris_cli.plan.flags import (
    DELTA,
    EPSILON_PER,
    DBarFlag,
    DeltaFlag,
    OutFlag,
    SeedFlag,
    TauFlag,
    TrialsFlag,
    exact,
    named_errors,
)

# typer copies a list before it hands it over.
CURVE_EPSILONS = [Fraction(each, 50) for each in range(1, 11)]
CURVE_D_BARS = [100, 400, 1600]
FOUND_EPSILONS = [EPSILON_PER]
INFORMATION_LIMITS = [500, 1000, 2000, 3000, 5000]
CALL_LIMITS = [10, 20, 30, 50]

_CountsFile = Annotated[
    Path | None,
    typer.Option("--counts", exists=True, dir_okay=False, help="A file with one count on each line."),
]
_DataFile = Annotated[
    Path | None,
    typer.Option("--data", exists=True, dir_okay=False, help="A Parquet file whose members are counted."),
]
_ByFlag = Annotated[str, typer.Option(help="With --data: the column of elements.")]
_MemberFlag = Annotated[str, typer.Option(help="With --data: the column of members.")]
_EpsilonsFlag = Annotated[
    list[Fraction],
    typer.Option("--epsilon-per", parser=exact, metavar="NUMBER", help="An epsilon_per; repeatable."),
]
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


def curve(
    *,
    counts: _CountsFile = None,
    data: _DataFile = None,
    by: _ByFlag = "",
    member: _MemberFlag = "",
    k: Annotated[int, typer.Option(help="How many elements are asked for.")] = 50,
    epsilons: _EpsilonsFlag = CURVE_EPSILONS,
    d_bars: Annotated[
        list[int], typer.Option("--d-bar", help="How many elements are fetched; repeatable.")
    ] = CURVE_D_BARS,
    delta: DeltaFlag = DELTA,
    tau: TauFlag = 1,
    trials: TrialsFlag = 1000,
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Simulate how many elements a top-k of an unknown domain returns (Rogers et al. 2020, figure 3).

    The default, 1000 runs of 30 points, takes about a minute; --trials 100 a tenth of it.
    """
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.expectations import curve_sheet  # noqa: PLC0415 - `gris --help` should be quick
    from gris_lab.histograms import CountsFlags, histogram_of  # noqa: PLC0415
    from gris_lab.plots import check_plot, draw_curve  # noqa: PLC0415
    from gris_lab.progress import progress  # noqa: PLC0415
    from gris_lab.simulation import Draws, gumbel_mechanisms  # noqa: PLC0415
    from gris_lab.simulation import curve as simulated  # noqa: PLC0415

    check_plot(out, curves=len(d_bars))
    named = histogram_of(CountsFlags(counts, data, by, member))
    if named is None:
        raise typer.BadParameter("--counts, or --data with --by and --member, says which histogram")
    with named_errors():
        mechanisms = gumbel_mechanisms(epsilons, d_bars, delta=delta, k=k, tau=tau)
        with progress("simulating", trials * len(mechanisms)) as advance:
            points = list(simulated(named, mechanisms, Draws(seed), trials=trials, advance=advance))
    if out:
        title = f"{named.source}: elements of a top {k}, delta = {float(delta):g}, {trials} runs a point"
        draw_curve(points, out, k=k, title=title)
    print_sheets({"points": curve_sheet(points)}, as_json=as_json)


def found(
    *,
    counts: _CountsFile = None,
    data: _DataFile = None,
    by: _ByFlag = "",
    member: _MemberFlag = "",
    k: Annotated[int, typer.Option(help="How many elements are asked for, and shown here.")] = 100,
    epsilons: _EpsilonsFlag = FOUND_EPSILONS,
    delta_l0: _DeltaL0Flag = None,
    known: _KnownFlag = False,
    d_bar: DBarFlag = 1000,
    delta: DeltaFlag = DELTA,
    tau: TauFlag = 1,
    trials: TrialsFlag = 1000,
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show which counts are found. With a histogram, simulate how often, at what price and how exactly.

    The picture is figure 4 of Rogers et al. 2020.
    """
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.expectations import PlannedQuestion, expected_sheet, found_sheet, planned  # noqa: PLC0415
    from gris_lab.histograms import CountsFlags, histogram_of  # noqa: PLC0415
    from gris_lab.plots import check_plot, draw_found  # noqa: PLC0415
    from gris_lab.progress import progress  # noqa: PLC0415
    from gris_lab.simulation import Draws  # noqa: PLC0415
    from gris_lab.simulation import found as simulated  # noqa: PLC0415

    check_plot(out)
    named = histogram_of(CountsFlags(counts, data, by, member))
    if out and not named:
        raise typer.BadParameter("--out needs a histogram: --counts, or --data with --by and --member")
    with named_errors():
        size = len(named.elements) if named else None
        plan = PlannedQuestion(k=k, d_bar=None if known else d_bar, tau=tau, delta_l0=delta_l0, size=size)
        mechanisms, needed = planned(plan, epsilons, delta)
        sheets = {"needed": needed}
        if named:
            with progress("simulating", trials * len(mechanisms)) as advance:
                runs = [
                    simulated(named, mechanism, Draws(seed), shown=k, trials=trials, advance=advance)
                    for mechanism in mechanisms
                ]
            sheets["expected"] = expected_sheet(mechanisms, runs)
            sheets["found"] = found_sheet(epsilons, runs)
            if out:
                domain = "a known domain" if known else f"d_bar = {d_bar}, delta = {float(delta):g}"
                name = f"{mechanisms[0].name.value}, {domain}, {trials} runs"
                draw_found(epsilons, runs, out, title=f"{named.source}: {name}")
    print_sheets(sheets, as_json=as_json)


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
    information: Annotated[
        list[int], typer.Option(min=0, help="A limit of information units; repeatable.")
    ] = INFORMATION_LIMITS,
    calls: Annotated[list[int], typer.Option(min=0, help="A limit of calls; repeatable.")] = CALL_LIMITS,
    title: Annotated[str, typer.Option(help="The picture's title: whose charges these are.")] = "",
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how many accounts would use up a budget, by day since refresh (Rogers et al. 2020, figure 5)."""
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.plots import check_plot, draw_usage  # noqa: PLC0415 - `gris --help` should be quick
    from gris_lab.usage import exhausted, read_charges, usage_sheet  # noqa: PLC0415

    check_plot(out, curves=max(len(information), len(calls)))
    asked = read_charges(charges)
    found = [*exhausted(asked, "information", information), *exhausted(asked, "calls", calls)]
    if out:
        draw_usage(found, out, title=title or f"Charges of {charges.name}")
    print_sheets({"usage": usage_sheet(found)}, as_json=as_json)
