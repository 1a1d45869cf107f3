"""`gris plan guarantee`."""

from __future__ import annotations

import typer

from gris_cli.flag_groups import with_flags
from gris_cli.inputs import named_errors
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
    as_json: bool,
) -> None:
    """Show what a budget is worth."""
    from gris_cli.data.policies import policy_of
    from gris_cli.plan.budgets import Budget, guarantee_sheet
    from gris_cli.sheets import print_sheets

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
        times_of(named),
    )
    with named_errors():
        sheet = guarantee_sheet(budget)
    print_sheets({"guarantees": sheet}, as_json=as_json)
