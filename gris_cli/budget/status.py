"""`gris budget status`."""

from __future__ import annotations

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, UNSOUND, AdminFlag
from gris_cli.flag_groups import with_flags


@with_flags
def status(*, admin: AdminFlag = DEFAULT_ADMIN, as_json: bool) -> None:
    """Show whether the configuration in the file is in force, and if not, since when and why (exit code 1)."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import administered
    from gris_cli.budget.reports import status_facts, status_sheet
    from gris_cli.sheets import print_sheets

    found = administered(admin, "GetStatus", admin_pb2.GetStatusRequest())
    print_sheets({"faults": status_sheet(found)}, status_facts(found), as_json=as_json)
    if found.HasField("refused_since"):
        raise typer.Exit(UNSOUND)
