"""Names that a policy can state."""

from __future__ import annotations

import re
import unicodedata

from gris_data.errors import InputError

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def plain_name(name: str) -> str:
    """Return a name as a policy can have it: small words, and underscores between them.

    >>> plain_name("Customer No.")
    'customer_no'
    """
    if IDENTIFIER.fullmatch(name):
        return name
    plain = re.sub(
        r"[^a-z0-9]+",
        "_",
        unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode().lower(),
    )
    plain = plain.strip("_")[:128] or "column"
    return f"_{plain}"[:128] if plain[0].isdigit() else plain


def require_table_name(name: str) -> None:
    """Raise InputError if a policy cannot have a table of this name."""
    if not IDENTIFIER.fullmatch(name):
        raise InputError(
            f"a policy names tables by ASCII letters, digits and underscores, not {name!r}", "table"
        )
