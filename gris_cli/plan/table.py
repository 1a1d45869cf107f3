"""`gris plan table`."""

from __future__ import annotations

from pathlib import Path

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_errors
from gris_cli.plan.flags import (
    EPSILON_PER,
    INFORMATION,
    GaussianFlag,
    InformationFlag,
    MaybeEpsilonPerFlag,
    PolicyFlag,
    is_gaussian,
    times_of,
)


@with_flags
def table(
    *,
    epsilon_per: MaybeEpsilonPerFlag = None,
    policy: PolicyFlag = None,
    information: InformationFlag = INFORMATION,
    gaussian: GaussianFlag = False,
    directory: Path | None = flag(
        None, "Where the table is kept; by default in the cache of the user.", file_okay=False
    ),
    as_json: bool,
) -> None:
    """Make the table of the adaptive bound for a currency, so that dp_service can use it (--adaptive-tables)."""
    from gris_cli.sheets import print_sheets
    from gris_data.caching import cache_directory
    from gris_data.policies import policy_of
    from gris_lab.budgets import table_sheet
    from gris_lab.tables import make_table

    if policy is not None and epsilon_per is not None:
        raise typer.BadParameter("--policy says --epsilon-per; it cannot be given with it")
    named = None if policy is None else policy_of(policy)
    e = EPSILON_PER if named is None else named.currency.epsilon_per
    kept_in = directory or cache_directory()
    with named_errors():
        made = make_table(
            e if epsilon_per is None else epsilon_per,
            times_of(named) * information,
            kept_in,
            gaussian=gaussian or is_gaussian(named),
        )
    print_sheets({"table": table_sheet(made, kept_in)}, as_json=as_json)
