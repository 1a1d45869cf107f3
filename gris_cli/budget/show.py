"""`gris budget show`."""

from __future__ import annotations

from gris_cli.flag_groups import required, with_flags
from gris_cli.flags import DEFAULT_BUDGET, BudgetFlag


@with_flags
def show(
    *,
    account: str = required("The account.", envvar="GRIS_ACCOUNT", metavar="A/B"),
    budget: BudgetFlag = DEFAULT_BUDGET,
    as_json: bool,
) -> None:
    """Show what every level of an account may spend, has spent and has left."""
    from gris_cli.budget.ledger import budget_of
    from gris_cli.budget.reports import currency_facts, levels_sheet
    from gris_cli.sheets import print_sheets

    found = budget_of(budget, account)
    print_sheets({"levels": levels_sheet(found)}, currency_facts(found), as_json=as_json)
