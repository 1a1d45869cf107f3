"""`gris budget verify`."""

from __future__ import annotations

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, UNSOUND, AdminFlag
from gris_cli.flag_groups import flag, with_flags


@with_flags
def verify(
    *,
    root: str = flag("", "Only this root account.", metavar="NAME"),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Add up the journal again and compare every balance with it. Exit code 1 if any differs."""
    from gris_api.budget.v1 import admin_pb2, budget_pb2

    from gris_cli.budget.ledger import READ_SECONDS, administered
    from gris_cli.budget.reports import verification_facts, verification_sheet
    from gris_cli.sheets import print_sheets

    account = budget_pb2.Account(path=[root]) if root else None
    request = admin_pb2.VerifyLedgerRequest(account=account)
    found = administered(admin, "VerifyLedger", request, seconds=READ_SECONDS)
    print_sheets({"differences": verification_sheet(found)}, verification_facts(found), as_json=as_json)
    if found.different:
        raise typer.Exit(UNSOUND)
