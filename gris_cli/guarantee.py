"""`gris guarantee`."""

from __future__ import annotations

from typing import Annotated

from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import OF_GUARANTEE, ConnectionFlags

# typer copies a list before it hands it over.
NO_DOMAINS: list[str] = []


@with_flags
def guarantee(
    *,
    connection: Annotated[ConnectionFlags, OF_GUARANTEE],
    domains: list[str] = flag(
        NO_DOMAINS,
        "A published domain or bound that the account saw, besides those that are counted anyway; repeatable.",
        "--domain",
        metavar="RHO:DELTA",
    ),
    as_json: bool,
) -> None:
    """Show the guarantee for everything that an account is shown in a window, whatever it asks. Needs no engine."""
    from gris_cli.clients import fetch_guarantee
    from gris_cli.printing import print_guarantee

    print_guarantee(fetch_guarantee(connection, domains), as_json=as_json)
