"""`gris plan solve`."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer

from gris_cli.flag_groups import with_flags
from gris_cli.inputs import named_errors, number
from gris_cli.plan.flags import (
    CALLS,
    INFORMATION,
    NO_DOMAINS,
    CallsFlag,
    DBarFlag,
    DomainsFlag,
    GaussianFlag,
    InformationFlag,
    PolicyFlag,
    domains_of,
    is_gaussian,
    times_of,
)


@with_flags
def solve(
    *,
    epsilon: Annotated[Fraction, number("The epsilon that is wanted.")],
    delta: Annotated[Fraction, number("The delta that is wanted.")],
    epsilon_per: Annotated[Fraction | None, number("Fix it, and solve for the units instead.")] = None,
    information: InformationFlag = INFORMATION,
    calls: CallsFlag = CALLS,
    call_delta: Annotated[Fraction | None, number("Fix the delta of a call, with --epsilon-per.")] = None,
    slack: Annotated[Fraction | None, number("Fix the slack, with --call-delta.")] = None,
    d_bar: DBarFlag = 1000,
    gaussian: GaussianFlag = False,
    domains: DomainsFlag = NO_DOMAINS,
    policy: PolicyFlag = None,
    as_json: bool,
) -> None:
    """Find the largest epsilon_per for a guarantee and a budget; or, with --epsilon-per, the largest budget."""
    from dp_service.accounting.solving import Split, Target, papers_split
    from gris_cli.data.policies import policy_of
    from gris_cli.plan.budgets import epsilon_per_sheet, units_sheet
    from gris_cli.sheets import print_sheets

    if (call_delta is None) != (slack is None) or (call_delta and not epsilon_per):
        raise typer.BadParameter("--call-delta and --slack are given together, and with --epsilon-per")
    named = None if policy is None else policy_of(policy)
    times = times_of(named)
    information, calls = times * information, times * calls
    with named_errors():
        target = Target(epsilon, delta, gaussian or is_gaussian(named), domains_of(named, domains))
        if epsilon_per is None:
            sheet = epsilon_per_sheet(target, information=information, calls=calls, d_bar=d_bar)
        else:
            split = Split(call_delta, slack) if call_delta and slack else papers_split(target, calls)
            sheet = units_sheet(target, split, epsilon_per=epsilon_per, times=times)
    print_sheets({"solutions": sheet}, as_json=as_json)
