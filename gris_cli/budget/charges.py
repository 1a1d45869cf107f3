"""`gris budget charges`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AccountFlag, AdminFlag
from gris_cli.flag_groups import flag, with_flags


@with_flags
def charges(
    *,
    account: AccountFlag,
    since: str = flag(
        "", "The first day or time of the period; UTC without an offset.", "--from", metavar="DAY"
    ),
    until: str = flag(
        "", "The first day or time after the period; UTC without an offset.", "--to", metavar="DAY"
    ),
    most: int = flag(100, "The most charges to list.", min=1, max=1_000_000),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """List the charges of an account and of every account below it, oldest first."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, charges_of, timestamp_of
    from gris_cli.budget.reports import charges_sheet
    from gris_cli.sheets import print_sheets

    request = admin_pb2.ListChargesRequest(
        account=account_of(account),
        start_time=timestamp_of("--from", since),
        end_time=timestamp_of("--to", until),
    )
    # One more than is shown, to know whether there are more.
    found = charges_of(admin, request, most + 1)
    is_whole = len(found) <= most
    sheet = charges_sheet(found[:most], is_whole=is_whole)
    print_sheets({"charges": sheet}, {"has_more": not is_whole}, as_json=as_json)
