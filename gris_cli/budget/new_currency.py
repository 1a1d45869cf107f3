"""`gris budget new-currency`."""

from __future__ import annotations

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, ReasonFlag, RequestFlag, RootFlag
from gris_cli.flag_groups import flag, with_flags


@with_flags
def new_currency(
    *,
    root: RootFlag,
    unit_id: str = flag("", "The unit_id of dp_service's new policy.", "--unit", metavar="ID"),
    withdraw: bool = flag(False, "Withdraw the plan, before the new currency begins."),
    reason: ReasonFlag = "",
    request_id: RequestFlag = "",
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Let a root account count in another currency from its next window on. Nothing is carried over."""
    from gris_api.budget.v1 import admin_pb2, budget_pb2

    from gris_cli.budget.ledger import administered, format_timestamp
    from gris_cli.terminal import print_done

    if withdraw == bool(unit_id):
        raise typer.BadParameter("give --unit, or --withdraw")
    account = budget_pb2.Account(path=[root])
    request = admin_pb2.BeginCurrencyRequest(
        account=account, unit_id=unit_id, reason=reason, request_id=request_id
    )
    begun = administered(admin, "BeginCurrency", request)
    begins_at, done = "", f"{root} keeps its currency"
    if unit_id:
        begins_at = format_timestamp(begun.begins_at)
        done = f"{root} counts in {unit_id} from {begins_at} (UTC) on, and in the last one until then"
    print_done(done, {"root": root, "unit_id": unit_id, "begins_at": begins_at}, as_json=as_json)
