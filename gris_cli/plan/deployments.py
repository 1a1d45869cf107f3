"""`gris plan deployments`."""

from __future__ import annotations

from gris_cli.flag_groups import with_flags
from gris_cli.inputs import named_errors
from gris_cli.plan.flags import (
    CALLS,
    DELTA,
    EPSILON_PER,
    INFORMATION,
    SLACK,
    CallsFlag,
    DeltaFlag,
    EpsilonPerFlag,
    InformationFlag,
    QuickFlag,
    SlackFlag,
)


@with_flags
def deployments(
    *,
    epsilon_per: EpsilonPerFlag = EPSILON_PER,
    delta: DeltaFlag = DELTA,
    information: InformationFlag = INFORMATION,
    calls: CallsFlag = CALLS,
    slack: SlackFlag = SLACK,
    quick: QuickFlag = False,
    as_json: bool,
) -> None:
    """Compare a budget with the published parameters of other deployments."""
    from gris_cli.sheets import print_sheets
    from gris_lab.budgets import Budget, deployments_sheet, with_table

    with named_errors():
        budget = Budget(epsilon_per, delta, information, calls, slack)
        sheet = deployments_sheet(with_table(budget, quick=quick))
    print_sheets({"deployments": sheet}, as_json=as_json)
