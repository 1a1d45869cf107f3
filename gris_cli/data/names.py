"""Names that a policy can state."""

from __future__ import annotations

import re

from gris_cli.data.errors import InputError

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def require_table_name(name: str) -> None:
    """Raise InputError if a policy cannot have a table of this name."""
    if not IDENTIFIER.fullmatch(name):
        raise InputError(
            f"a policy names tables by ASCII letters, digits and underscores, not {name!r}", "table"
        )
