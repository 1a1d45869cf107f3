"""`gris remaining`."""

from __future__ import annotations

from typing import Annotated

from gris_cli.flag_groups import with_flags
from gris_cli.flags import OF_REMAINING, ConnectionFlags


@with_flags
def remaining(connection: Annotated[ConnectionFlags, OF_REMAINING], as_json: bool) -> None:
    """Show what is left of an account's budget, level by level. Asks nothing and costs nothing."""
    from gris_cli.clients import remaining_budget
    from gris_cli.printing import print_levels

    print_levels(*remaining_budget(connection), as_json=as_json)
