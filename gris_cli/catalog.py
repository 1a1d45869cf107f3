"""`gris catalog`."""

from __future__ import annotations

from typing import Annotated

from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import OF_CATALOG, ConnectionFlags


@with_flags
def catalog(
    *,
    connection: Annotated[ConnectionFlags, OF_CATALOG],
    table: str = flag("", "Only this table."),
    as_json: bool,
) -> None:
    """Show what may be asked: tables, columns with their domains, measures. Needs neither account nor engine."""
    from gris_cli.catalog_tables import print_catalog
    from gris_cli.clients import fetch_catalog

    print_catalog(fetch_catalog(connection, table), as_json=as_json)
