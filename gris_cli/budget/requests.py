"""`gris budget requests`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag
from gris_cli.flag_groups import flag, with_flags


@with_flags
def requests(
    *,
    root: str = flag("", "The root account; by default all.", metavar="NAME"),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """List the requests for other limits that wait for a decision."""
    from gris_cli.budget.ledger import requests_of
    from gris_cli.budget.reports import requests_sheet
    from gris_cli.sheets import print_sheets

    print_sheets({"requests": requests_sheet(requests_of(admin, root))}, as_json=as_json)
