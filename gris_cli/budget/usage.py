"""`gris budget usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AccountFlag, AdminFlag
from gris_cli.flag_groups import flag, required, with_flags

if TYPE_CHECKING:
    from gris_api.budget.v1 import admin_pb2


@with_flags
def usage(
    *,
    account: AccountFlag,
    since: str = required("When the budget was refreshed.", metavar="DAY"),
    depth: int = flag(2, "Count accounts with this many segments."),
    days: int = flag(31, "How many days after that."),
    information: list[int] = flag([], "A limit in information units, repeatable."),
    calls: list[int] = flag([], "A limit in calls, repeatable."),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Show how many accounts would have exhausted a limit by each day (Rogers et al. 2020, figure 5)."""
    from gris_cli.budget.ledger import READ_SECONDS, administered
    from gris_cli.budget.reports import usage_sheet
    from gris_cli.sheets import print_sheets

    request = _request(account, depth, since, days, (information, calls))
    report = administered(admin, "GetUsageReport", request, seconds=READ_SECONDS)
    print_sheets({"usage": usage_sheet(report)}, {"accounts": report.accounts}, as_json=as_json)


def _request(
    account: str, depth: int, since: str, days: int, limits: tuple[list[int], list[int]]
) -> admin_pb2.GetUsageReportRequest:
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, timestamp_of

    every = [each for kind in limits for each in kind]
    if not every:
        raise typer.BadParameter("--information or --calls says for which limits")
    if min(*every, days, depth) < 0 or max(every) >= 2**63 or max(days, depth) >= 2**31:
        raise typer.BadParameter("limits, --days and --depth expect numbers that are not negative")
    return admin_pb2.GetUsageReportRequest(
        account=account_of(account),
        depth=depth,
        start_time=timestamp_of("--since", since),
        days=days,
        information_limits=limits[0],
        call_limits=limits[1],
    )
