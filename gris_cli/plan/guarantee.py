"""`gris plan guarantee`."""

from __future__ import annotations

from pathlib import Path

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import file_errors, named_errors
from gris_cli.plan.flags import (
    CALLS,
    DELTA,
    EPSILON_PER,
    INFORMATION,
    NO_DOMAINS,
    SLACK,
    CallsFlag,
    DomainsFlag,
    GaussianFlag,
    InformationFlag,
    MaybeDeltaFlag,
    MaybeEpsilonPerFlag,
    PolicyFlag,
    QuickFlag,
    SlackFlag,
    domains_of,
    is_gaussian,
    times_of,
)


@with_flags
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
    once: bool = flag(
        False, "Count delta once for each call, by Gris's own proof, not twice.", "--delta-once"
    ),
    quick: QuickFlag = False,
    check_table: Path | None = flag(
        None,
        "A table of the adaptive bound: make it again without the file, and compare all rows. The exit code is 1 if "
        "they differ.",
        metavar="FILE",
        exists=True,
        dir_okay=False,
    ),
    as_json: bool,
) -> None:
    """Show what a budget is worth, by each composition bound."""
    from dp_service.accounting.calls import CallRule
    from gris_cli.failures import EXIT_UNEXPECTED
    from gris_cli.sheets import print_sheets
    from gris_data.policies import policy_of
    from gris_lab.budgets import Budget, checks, guarantee_sheet, with_table, with_table_made_again

    named = None if policy is None else policy_of(policy)
    if named is not None and (epsilon_per is not None or delta is not None):
        raise typer.BadParameter("--policy says --epsilon-per and --delta; they cannot be given with it")
    if quick and check_table is not None:
        raise typer.BadParameter("--quick makes no table; it cannot be given with --check-table")
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
        times=times_of(named),
    )
    agrees = True
    with named_errors():
        if check_table is None:
            budget = with_table(budget, quick=quick)
        else:
            with file_errors(check_table, "--check-table"):
                budget, agrees = with_table_made_again(budget, check_table)
        sheet, found = guarantee_sheet(budget), checks(budget, budget.guarantee())
    print_sheets({"guarantees": sheet}, {"checks": found}, as_json=as_json)
    if not agrees:
        raise typer.Exit(EXIT_UNEXPECTED)
