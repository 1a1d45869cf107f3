"""The commands of `gris plan`; each reads its flags, has the numbers computed, and prints them.

Those that read data, curve, found and usage, are in `data_commands`.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flags import JsonFlag
from gris_cli.plan import data_commands
from gris_cli.plan.bound import command as bound_command
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
    MaybeDeltaFlag,
    MaybeEpsilonPerFlag,
    OutFlag,
    PolicyFlag,
    QuickFlag,
    SlackFlag,
    domains_of,
    exact,
    is_gaussian,
    named_errors,
)
from gris_cli.plan.value import command as value_command

# typer copies a list before it hands it over.
NO_DOMAINS: list[str] = []
COMPOSED_EPSILONS = [Fraction("0.1")]
COMPOSED_COUNTS = [100, 1000]

app = typer.Typer(
    help="What budgets are worth, which to choose, and what questions would find.", no_args_is_help=True
)


@app.command()
def guarantee(
    *,
    epsilon_per: MaybeEpsilonPerFlag = None,
    delta: MaybeDeltaFlag = None,
    information: InformationFlag = INFORMATION,
    calls: CallsFlag = CALLS,
    slack: SlackFlag = SLACK,
    gaussian: GaussianFlag = False,
    domains: DomainsFlag = NO_DOMAINS,
    policy: PolicyFlag = None,
    once: Annotated[
        bool,
        typer.Option("--delta-once", help="Count delta once for each call, by Gris's own proof, not twice."),
    ] = False,
    quick: QuickFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what a budget is worth, by each composition bound."""
    from dp_service.accounting.calls import CallRule  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_data.policies import policy_of  # noqa: PLC0415
    from gris_lab.budgets import Budget, guarantee_sheet, with_table  # noqa: PLC0415

    named = None if policy is None else policy_of(policy)
    if named is not None and (epsilon_per is not None or delta is not None):
        raise typer.BadParameter("--policy says --epsilon-per and --delta; they cannot be given with it")
    e, d = (EPSILON_PER, DELTA) if named is None else (named.currency.epsilon_per, named.currency.delta)
    budget = Budget(
        e if epsilon_per is None else epsilon_per,
        d if delta is None else delta,
        information,
        calls,
        slack,
        gaussian or is_gaussian(named),
        domains_of(named, domains),
        CallRule.ONCE if once else CallRule.TWICE,
    )
    with named_errors():
        sheet = guarantee_sheet(with_table(budget, quick=quick))
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
        typer.Option(parser=exact, metavar="NUMBER", help="Fix it, and solve for the units instead."),
    ] = None,
    information: InformationFlag = INFORMATION,
    calls: CallsFlag = CALLS,
    call_delta: Annotated[
        Fraction | None,
        typer.Option(parser=exact, metavar="NUMBER", help="Fix the delta of a call, with --epsilon-per."),
    ] = None,
    slack: Annotated[
        Fraction | None,
        typer.Option(parser=exact, metavar="NUMBER", help="Fix the slack, with --call-delta."),
    ] = None,
    d_bar: DBarFlag = 1000,
    gaussian: GaussianFlag = False,
    domains: DomainsFlag = NO_DOMAINS,
    policy: PolicyFlag = None,
    quick: QuickFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Find the largest epsilon_per for a guarantee and a budget; or, with --epsilon-per, the largest budget."""
    from dp_service.accounting.solving import Split, Target, papers_split  # noqa: PLC0415
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_data.policies import policy_of  # noqa: PLC0415
    from gris_lab.budgets import epsilon_per_sheet, units_sheet  # noqa: PLC0415
    from gris_lab.tables import table_beyond  # noqa: PLC0415

    if (call_delta is None) != (slack is None) or (call_delta and not epsilon_per):
        raise typer.BadParameter("--call-delta and --slack are given together, and with --epsilon-per")
    named = None if policy is None else policy_of(policy)
    with named_errors():
        target = Target(epsilon, delta, gaussian or is_gaussian(named), domains_of(named, domains))
        if epsilon_per is None:
            sheet = epsilon_per_sheet(target, information=information, calls=calls, d_bar=d_bar, quick=quick)
        else:
            split = Split(call_delta, slack) if call_delta and slack else papers_split(target, calls)
            table = None if quick else table_beyond(target, split, epsilon_per)
            sheet = units_sheet(target, split, epsilon_per=epsilon_per, table=table)
    print_sheets({"solutions": sheet}, as_json=as_json)


@app.command()
def table(
    *,
    epsilon_per: MaybeEpsilonPerFlag = None,
    policy: PolicyFlag = None,
    information: InformationFlag = INFORMATION,
    directory: Annotated[
        Path | None,
        typer.Option(help="Where the table is kept; by default in the cache of the user.", file_okay=False),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make the table of the adaptive bound for a currency, so that dp_service can use it (--adaptive-tables)."""
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_data.policies import policy_of  # noqa: PLC0415
    from gris_lab.budgets import table_sheet  # noqa: PLC0415
    from gris_lab.caching import cache_directory  # noqa: PLC0415 - `gris --help` should be quick
    from gris_lab.tables import make_table  # noqa: PLC0415

    if policy is not None and epsilon_per is not None:
        raise typer.BadParameter("--policy says --epsilon-per; it cannot be given with it")
    named = None if policy is None else policy_of(policy)
    e = EPSILON_PER if named is None else named.currency.epsilon_per
    kept_in = directory or cache_directory()
    with named_errors():
        made = make_table(e if epsilon_per is None else epsilon_per, information, kept_in)
    print_sheets({"table": table_sheet(made, kept_in)}, as_json=as_json)


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
    """Show an attacker's chances: averaging, differencing, and finding a single member's element."""
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.attack_sheets import attack_sheets  # noqa: PLC0415 - SciPy is an extra

    with named_errors():
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
    quick: QuickFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare a budget with the published parameters of other deployments."""
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.budgets import Budget, deployments_sheet, with_table  # noqa: PLC0415

    with named_errors():
        budget = Budget(epsilon_per, delta, information, calls, slack)
        sheet = deployments_sheet(with_table(budget, quick=quick))
    print_sheets({"deployments": sheet}, as_json=as_json)


@app.command()
def compose(
    *,
    epsilons: Annotated[
        list[Fraction],
        typer.Option(
            "--epsilon-per",
            parser=exact,
            metavar="NUMBER",
            help="The epsilon_per of one mechanism; repeatable.",
        ),
    ] = COMPOSED_EPSILONS,
    counts: Annotated[
        list[int],
        typer.Option("--count", min=1, max=10**4, help="How many mechanisms; repeatable."),
    ] = COMPOSED_COUNTS,
    delta: Annotated[
        Fraction,
        typer.Option(parser=exact, metavar="NUMBER", show_default="1e-6", help="The delta of all together."),
    ] = Fraction("1e-6"),
    out: OutFlag = None,
    quick: QuickFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare composition bounds. The figure is figure 1 of Durfee and Rogers 2019: what bounded range gains."""
    from dp_service.accounting.bounds import Portion  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.composition import compose_sheet, composed, ratios  # noqa: PLC0415
    from gris_lab.plots import check_plot, draw_composition  # noqa: PLC0415
    from gris_lab.progress import progress  # noqa: PLC0415
    from gris_lab.tables import table_for  # noqa: PLC0415

    check_plot(out, curves=len(epsilons))
    with named_errors():
        portions = [Portion(epsilon_per, count) for epsilon_per in epsilons for count in counts]
        tables = {each: table_for(each, max(counts), quick=quick) for each in epsilons}
        with progress("composing", len(portions)) as advance:
            sheet = compose_sheet(portions, delta, tables, advance)
        if out:
            steps = sorted({1 + step * (max(counts) - 1) // 199 for step in range(200)})
            with progress("drawing", len(epsilons) * len(steps)) as advance:
                found = list(ratios(epsilons, steps, delta, tables, advance))
            bounds = composed(epsilons[0], steps, delta, tables)
            title = f"Composition at a delta of at most {float(delta):g}; no data enter"
            draw_composition(found, epsilons[0], bounds, out, title=title)
    print_sheets({"composition": sheet}, as_json=as_json)


app.command()(bound_command.bound)
app.command()(value_command.value)
app.command()(data_commands.curve)
app.command()(data_commands.found)
app.command()(data_commands.usage)
