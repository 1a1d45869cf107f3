"""`gris remaining`."""

from __future__ import annotations

from gris_cli.flags import (
    DEFAULT_BUDGET,
    AccountFlag,
    BudgetFlag,
    ConnectionFlags,
    GatewayFlag,
    JsonFlag,
)


def remaining(
    budget: BudgetFlag = DEFAULT_BUDGET,
    gateway: GatewayFlag = "",
    account: AccountFlag = "",
    as_json: JsonFlag = False,
) -> None:
    """Show what is left of an account's budget, level by level. Asks nothing and costs nothing."""
    from gris_cli.clients import remaining_budget  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.printing import print_levels  # noqa: PLC0415

    flags = ConnectionFlags(budget=budget, gateway=gateway, account=account)
    print_levels(remaining_budget(flags), as_json=as_json)
