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
)


def catalog(  # noqa: PLR0917 - typer calls it by name
    table: Annotated[str, typer.Option(help="Only this table.")] = "",
    dp: DpFlag = DEFAULT_DP,
    gateway: GatewayFlag = "",
    embedded: EmbeddedFlag = False,
    directory: DirectoryFlag = DEFAULT_DIRECTORY,
    examples: ExamplesFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what may be asked: tables, columns with their domains, measures. Needs neither account nor engine."""
    from gris_cli.catalog_tables import print_catalog  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.clients import listed  # noqa: PLC0415

    flags = ConnectionFlags(dp=dp, gateway=gateway, embedded=embedded, directory=directory, examples=examples)
    print_catalog(listed(flags, table), as_json=as_json)
