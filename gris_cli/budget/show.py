"""`gris budget show`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag
from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.flags import DEFAULT_BUDGET, BudgetFlag

MAX_HISTORY = 10_000


@with_flags
def show(
    *,
    account: str = required("The account.", envvar="GRIS_ACCOUNT", metavar="A/B"),
    history: bool = flag(False, "Show for how many more questions like the past ones the budget lasts."),
    budget: BudgetFlag = DEFAULT_BUDGET,
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Show what every level of an account may spend, has spent and has left."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, budget_of, charges_of
    from gris_cli.budget.reports import currency_facts, history_sheet, levels_sheet
    from gris_cli.sheets import print_sheets
    from pinot_connector.budgets import levels_of

    found = budget_of(budget, account)
    levels = levels_of(found)
    sheets = {"levels": levels_sheet(found)}
    if history:
        request = admin_pb2.ListChargesRequest(account=account_of(account))
        if (start := levels[-1].window_start) is not None:
            request.start_time.FromDatetime(start)
        sheets["history"] = history_sheet(levels, charges_of(admin, request, MAX_HISTORY))
    print_sheets(sheets, currency_facts(found), as_json=as_json)
