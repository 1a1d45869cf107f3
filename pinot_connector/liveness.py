"""`SELECT 1`, by which programs test a connection: no service is asked."""

from __future__ import annotations

import re

_LIVENESS_CHECK = re.compile(
    r"\s*+SELECT\s++1(?:\s++AS\s++(?:(?P<name>[a-z_]\w*+)|\"(?P<quoted>[^\"]++)\"))?\s*+;?\s*+", re.IGNORECASE
)


def is_liveness_check(text: object) -> bool:
    """Returns whether a text is `SELECT 1`, by which programs test a connection; it needs no service and no data."""
    return liveness_column(text) is not None


def liveness_column(text: object) -> str | None:
    """Returns what the one column of `SELECT 1` is called, by its alias or 1; None: a text is another one."""
    found = _LIVENESS_CHECK.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else found["name"] or found["quoted"] or "1"
