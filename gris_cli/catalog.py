"""`gris catalog`."""

from __future__ import annotations

from typing import Annotated

import typer

from gris_cli.flags import (
    DEFAULT_DIRECTORY,
    DEFAULT_DP,
    ConnectionFlags,
    DirectoryFlag,
    DpFlag,
    EmbeddedFlag,
    ExamplesFlag,
    GatewayFlag,
    JsonFlag,
    OwnBudgetsFlag,
    OwnPolicyFlag,
    require_used,
)


def catalog(  # noqa: PLR0917 - typer calls it by name
    context: typer.Context,
    table: Annotated[str, typer.Option(help="Only this table.")] = "",
    dp: DpFlag = DEFAULT_DP,
    gateway: GatewayFlag = "",
    embedded: EmbeddedFlag = False,
    policy: OwnPolicyFlag = None,
    budget_config: OwnBudgetsFlag = None,
    directory: DirectoryFlag = DEFAULT_DIRECTORY,
    examples: ExamplesFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what may be asked: tables, columns with their domains, measures. Needs neither account nor engine."""
    from gris_cli.catalog_tables import print_catalog  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.clients import fetch_catalog  # noqa: PLC0415

    flags = ConnectionFlags(
        dp=dp,
        gateway=gateway,
        embedded=embedded,
        policy=policy,
        budget_config=budget_config,
        directory=directory,
        examples=examples,
    )
    require_used(context, flags)
    print_catalog(fetch_catalog(flags, table), as_json=as_json)
