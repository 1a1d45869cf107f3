"""`gris budget usage`."""

from __future__ import annotations

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AccountFlag, AdminFlag
from gris_cli.flag_groups import flag, required, with_flags

DEEPEST = 4
MAX_DAYS = 400


@with_flags
def usage(
    *,
    account: AccountFlag,
    since: str = required("When the budget was refreshed.", metavar="DAY"),
    depth: int = flag(2, "Count accounts with this many segments.", min=1, max=DEEPEST),
    days: int = flag(31, "How many days after that.", min=1, max=MAX_DAYS),
    information: list[int] = flag([], "A limit in information units, repeatable.", min=0),
    calls: list[int] = flag([], "A limit in calls, repeatable.", min=0),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Show how many accounts would have exhausted a limit by each day (Rogers et al. 2020, figure 5)."""
    from gris_cli.budget.exhaustion import Exhaustion
    from gris_cli.budget.ledger import journal_pages, timestamp_of
    from gris_cli.budget.reports import usage_sheet
    from gris_cli.sheets import print_sheets

    if not (information or calls):
        raise typer.BadParameter("--information or --calls says for which limits")
    start = timestamp_of("--since", since)
    if start is None:
        raise typer.BadParameter("--since says when the budget was refreshed")
    found = Exhaustion(start.ToMicroseconds(), days, depth)
    for page in journal_pages(admin, account):
        for entry in page.entries:
            found.add(entry)
    limits = {"information": information, "calls": calls}
    print_sheets({"usage": usage_sheet(found, limits)}, {"accounts": len(found.spent)}, as_json=as_json)
