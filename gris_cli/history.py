"""`gris history`."""

from __future__ import annotations

from typing import Annotated

from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import ConnectionFlags


@with_flags
def history(
    *,
    connection: Annotated[ConnectionFlags, ("gateway", "account")],
    most: int = flag(20, "How many results, newest first.", min=1, max=100_000),
    as_json: bool,
) -> None:
    """Show the answers of an account that a gateway keeps, and what each was charged. Asks and costs nothing."""
    from gris_cli.past_results import past_results, print_past_results

    print_past_results(past_results(connection, most), as_json=as_json)
