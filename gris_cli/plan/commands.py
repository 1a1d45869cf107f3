"""The commands of `gris plan`; each reads its flags, has the numbers computed, and prints them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flags import JsonFlag
from gris_cli.plan.flags import (
    CALLS,
    DELTA,
    EPSILON_PER,
    INFORMATION,
    SLACK,
    CallsFlag,
    DBarFlag,
    DeltaFlag,
    DomainsFlag,
    EpsilonPerFlag,
    GaussianFlag,
    InformationFlag,
    OutFlag,
    SeedFlag,
    SlackFlag,
    TauFlag,
    TrialsFlag,
    domain,
    exact,
)

# typer copies a list before it hands it over.
NO_DOMAINS: list[str] = []
COMPOSED_EPSILONS = [Fraction("0.1")]
COMPOSED_COUNTS = [100, 1000]
CURVE_EPSILONS = [Fraction(each, 50) for each in range(1, 11)]
CURVE_D_BARS = [100, 400, 1600]
FOUND_EPSILONS = [EPSILON_PER]
INFORMATION_LIMITS = [500, 1000, 2000, 3000, 5000]
CALL_LIMITS = [10, 20, 30, 50]

app = typer.Typer(
    help="What budgets are worth, which to choose, and what questions would find.", no_args_is_help=True
)


@contextmanager
def _named_errors() -> Iterator[None]:
    """Turns errors of arguments, which name them, into errors of flags."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@app.command()
def guarantee(
    *,
    epsilon_per: EpsilonPerFlag = EPSILON_PER,
    delta: DeltaFlag = DELTA,
    information: InformationFlag = INFORMATION,
    calls: CallsFlag = CALLS,
    slack: SlackFlag = SLACK,
    gaussian: GaussianFlag = False,
    domains: DomainsFlag = NO_DOMAINS,
    once: Annotated[
        bool, typer.Option("--delta-once", help="Each call adds delta once, by Gris's own proof, not twice.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Tell what a budget is worth, by each composition bound."""
    from dp_service.accounting.calls import CallRule  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.plan.budgets import Budget, guarantee_sheet  # noqa: PLC0415
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415

    seen = tuple(domain(text) for text in domains)
    rule = CallRule.ONCE if once else CallRule.TWICE
    with _named_errors():
        sheet = guarantee_sheet(Budget(epsilon_per, delta, information, calls, slack, gaussian, seen, rule))
    print_sheets({"guarantees": sheet}, as_json=as_json)


@app.command()
def solve(
    *,
    epsilon: Annotated[
        Fraction, typer.Option(parser=exact, metavar="NUMBER", help="The epsilon that is wanted.")
    ],
    delta: Annotated[
        Fraction, typer.Option(parser=exact, metavar="NUMBER", help="The delta that is wanted.")
    ],
    epsilon_per: Annotated[
        Fraction | None,
        typer.Option(parser=exact, metavar="NUMBER", help="Fixes it, and solves for the units instead."),
    ] = None,
    information: InformationFlag = INFORMATION,
    calls: CallsFlag = CALLS,
    call_delta: Annotated[
        Fraction | None,
        typer.Option(parser=exact, metavar="NUMBER", help="Fixes delta of a call, with --epsilon-per."),
    ] = None,
    slack: Annotated[
        Fraction | None, typer.Option(parser=exact, metavar="NUMBER", help="Fixes slack, with --call-delta.")
    ] = None,
    d_bar: DBarFlag = 1000,
    gaussian: GaussianFlag = False,
    domains: DomainsFlag = NO_DOMAINS,
    as_json: JsonFlag = False,
) -> None:
    """Find the largest epsilon_per for a guarantee and a budget; or, with --epsilon-per, the largest budget."""
    from dp_service.accounting.solving import Split, Target, papers_split  # noqa: PLC0415
    from gris_cli.plan.budgets import epsilon_per_sheet, units_sheet  # noqa: PLC0415
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415

    if (call_delta is None) != (slack is None) or (call_delta and not epsilon_per):
        raise typer.BadParameter("--call-delta and --slack are given together, and beside --epsilon-per")
    with _named_errors():
        target = Target(epsilon, delta, gaussian, tuple(domain(text) for text in domains))
        if epsilon_per is None:
            sheet = epsilon_per_sheet(target, information=information, calls=calls, d_bar=d_bar)
        else:
            split = Split(call_delta, slack) if call_delta and slack else papers_split(target, calls)
            sheet = units_sheet(target, split, epsilon_per=epsilon_per)
    print_sheets({"solutions": sheet}, as_json=as_json)


@app.command()
def attacks(
    *,
    epsilon_per: EpsilonPerFlag = EPSILON_PER,
    delta: DeltaFlag = DELTA,
    calls: CallsFlag = CALLS,
    answers: Annotated[int, typer.Option(help="How many fresh answers are averaged.")] = 30,
    d_bar: DBarFlag = 1000,
    as_json: JsonFlag = False,
) -> None:
    """Tell an attacker's chances: averaging, differencing, and finding a single member's element."""
    from gris_cli.plan.budgets import attack_sheets  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415

    with _named_errors():
        sheets = attack_sheets(epsilon_per, delta, calls=calls, answers=answers, d_bar=d_bar)
    print_sheets(sheets, as_json=as_json)


@app.command()
def deployments(
    *,
    epsilon_per: EpsilonPerFlag = EPSILON_PER,
    delta: DeltaFlag = DELTA,
    information: InformationFlag = INFORMATION,
    calls: CallsFlag = CALLS,
    slack: SlackFlag = SLACK,
    as_json: JsonFlag = False,
) -> None:
    """Compare a budget with the published parameters of other deployments."""
    from gris_cli.plan.budgets import Budget, deployments_sheet  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415

    with _named_errors():
        sheet = deployments_sheet(Budget(epsilon_per, delta, information, calls, slack))
    print_sheets({"deployments": sheet}, as_json=as_json)


@app.command()
def compose(
    *,
    epsilons: Annotated[
        list[Fraction],
        typer.Option(
            "--epsilon-per", parser=exact, metavar="NUMBER", help="Of one mechanism; repeat it for several."
        ),
    ] = COMPOSED_EPSILONS,
    counts: Annotated[
        list[int],
        typer.Option("--count", min=1, max=10**4, help="How many mechanisms; repeat it for several."),
    ] = COMPOSED_COUNTS,
    delta: Annotated[
        Fraction, typer.Option(parser=exact, metavar="NUMBER", show_default="1e-6", help="Of all together.")
    ] = Fraction("1e-6"),
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare composition bounds; the picture is figure 1 of Durfee and Rogers 2019: what bounded range gains."""
    from dp_service.accounting.bounds import Portion  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.plan.composing import compose_sheet, ratios  # noqa: PLC0415
    from gris_cli.plan.pictures import check_picture, draw_ratios  # noqa: PLC0415
    from gris_cli.plan.progress import progress  # noqa: PLC0415
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415

    check_picture(out, curves=len(epsilons))
    with _named_errors():
        portions = [Portion(epsilon_per, count) for epsilon_per in epsilons for count in counts]
        with progress("composing", len(portions)) as advance:
            sheet = compose_sheet(portions, delta, advance)
        if out:
            steps = sorted({1 + place * (max(counts) - 1) // 199 for place in range(200)})
            with progress("drawing", len(epsilons) * len(steps)) as advance:
                found = list(ratios(epsilons, steps, delta, advance))
            draw_ratios(found, out, title=f"What bounded range gains, delta at most {float(delta):g}")
    print_sheets({"composition": sheet}, as_json=as_json)


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
    typer.Option("--epsilon-per", parser=exact, metavar="NUMBER", help="Repeat it for several."),
]


@app.command()
def curve(
    *,
    counts: _CountsFile = None,
    data: _DataFile = None,
    by: _ByFlag = "",
    member: _MemberFlag = "",
    k: Annotated[int, typer.Option(help="How many elements are asked for.")] = 50,
    epsilons: _EpsilonsFlag = CURVE_EPSILONS,
    d_bars: Annotated[
        list[int], typer.Option("--d-bar", help="How many elements are fetched; repeat it for several.")
    ] = CURVE_D_BARS,
    delta: DeltaFlag = DELTA,
    tau: TauFlag = 1,
    trials: TrialsFlag = 1000,
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Simulate how many elements a top-k of an unknown domain returns (Rogers et al. 2020, figure 3)."""
    from gris_cli.plan.expected import curve_sheet  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.plan.histograms import CountsFlags, histogram_of  # noqa: PLC0415
    from gris_cli.plan.pictures import check_picture, draw_curve  # noqa: PLC0415
    from gris_cli.plan.progress import progress  # noqa: PLC0415
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415
    from gris_cli.plan.simulating import Draws, gumbel_mechanisms  # noqa: PLC0415
    from gris_cli.plan.simulating import curve as simulated  # noqa: PLC0415

    check_picture(out, curves=len(d_bars))
    named = histogram_of(CountsFlags(counts, data, by, member))
    if named is None:
        raise typer.BadParameter("--counts, or --data with --by and --member, says which histogram")
    with _named_errors():
        mechanisms = gumbel_mechanisms(epsilons, d_bars, delta=delta, k=k, tau=tau)
        with progress("simulating", trials * len(mechanisms)) as advance:
            points = list(simulated(named, mechanisms, Draws(seed), trials=trials, advance=advance))
    if out:
        draw_curve(
            points, out, k=k, title=f"Elements of a top {k}, delta = {float(delta):g}, {trials} runs a point"
        )
    print_sheets({"points": curve_sheet(points)}, as_json=as_json)


@app.command()
def found(
    *,
    counts: _CountsFile = None,
    data: _DataFile = None,
    by: _ByFlag = "",
    member: _MemberFlag = "",
    k: Annotated[int, typer.Option(help="How many elements are asked for, and shown here.")] = 100,
    epsilons: _EpsilonsFlag = FOUND_EPSILONS,
    delta_l0: Annotated[
        int | None,
        typer.Option(
            "--delta-l0", help="How many elements a member can have (Delta): UnkLap; without it, UnkGumb."
        ),
    ] = None,
    d_bar: DBarFlag = 1000,
    delta: DeltaFlag = DELTA,
    tau: TauFlag = 1,
    trials: TrialsFlag = 1000,
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell which counts are found; with a histogram, simulate how often (Rogers et al. 2020, figure 4)."""
    from gris_cli.plan.expected import found_sheet, mechanism_of, needed_sheet  # noqa: PLC0415
    from gris_cli.plan.histograms import CountsFlags, histogram_of  # noqa: PLC0415
    from gris_cli.plan.pictures import check_picture, draw_found  # noqa: PLC0415
    from gris_cli.plan.progress import progress  # noqa: PLC0415
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415
    from gris_cli.plan.simulating import Draws  # noqa: PLC0415
    from gris_cli.plan.simulating import found as simulated  # noqa: PLC0415

    check_picture(out)
    named = histogram_of(CountsFlags(counts, data, by, member))
    if out and not named:
        raise typer.BadParameter("--out needs a histogram: --counts, or --data with --by and --member")
    with _named_errors():
        mechanisms = [
            mechanism_of(each, delta, k=k, d_bar=d_bar, tau=tau, delta_l0=delta_l0) for each in epsilons
        ]
        sheets = {"needed": needed_sheet(mechanisms)}
        if named:
            with progress("simulating", trials * len(mechanisms)) as advance:
                runs = [
                    simulated(named, mechanism, Draws(seed), shown=k, trials=trials, advance=advance)
                    for mechanism in mechanisms
                ]
            sheets["found"] = found_sheet(epsilons, runs)
            if out:
                name = f"{mechanisms[0].name.value}, d_bar = {d_bar}, delta = {float(delta):g}, {trials} runs"
                draw_found(epsilons, runs, out, title=name)
    print_sheets(sheets, as_json=as_json)


@app.command()
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
        list[int], typer.Option(min=0, help="A limit of information units; repeat it for several.")
    ] = INFORMATION_LIMITS,
    calls: Annotated[
        list[int], typer.Option(min=0, help="A limit of calls; repeat it for several.")
    ] = CALL_LIMITS,
    title: Annotated[str, typer.Option(help="The picture's title: whose charges these are.")] = "",
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell how many accounts would use up a budget, by day since refresh (Rogers et al. 2020, figure 5)."""
    from gris_cli.plan.pictures import check_picture, draw_usage  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415
    from gris_cli.plan.usage import exhausted, read_charges, usage_sheet  # noqa: PLC0415

    check_picture(out, curves=max(len(information), len(calls)))
    asked = read_charges(charges)
    found = [*exhausted(asked, "information", information), *exhausted(asked, "calls", calls)]
    if out:
        draw_usage(found, out, title=title or f"Charges of {charges.name}")
    print_sheets({"usage": usage_sheet(found)}, as_json=as_json)
