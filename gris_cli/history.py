"""`gris history`."""

from __future__ import annotations

from typing import Annotated

import typer

from gris_cli.flags import AccountFlag, ConnectionFlags, GatewayFlag, JsonFlag

DEFAULT_MOST = 20


def history(
    gateway: GatewayFlag = "",
    account: AccountFlag = "",
    most: Annotated[
        int, typer.Option(min=1, max=100_000, help="How many results, newest first.")
    ] = DEFAULT_MOST,
    as_json: JsonFlag = False,
) -> None:
    """Show the results that an account has paid for and the gateway keeps. Asks nothing and costs nothing."""
    from gris_cli.past_results import past_results, print_past_results  # noqa: PLC0415 - they load gRPC

    print_past_results(past_results(ConnectionFlags(gateway=gateway, account=account), most), as_json=as_json)
