"""Names that a caller sent and that there are not: repeated if they are plain words, beside those that there are."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_LISTED = 30
# How alike a slip and the name have to be, as difflib measures it.
_ALIKE = 0.8


def is_plain(name: str) -> bool:
    """Return whether a name is one plain word, so that it may be repeated."""
    return _PLAIN.fullmatch(name) is not None


def no_such(what: str, name: str, known: Sequence[str]) -> str:
    """Return a sentence that nothing has this name, with the names that exist."""
    called = name if is_plain(name) else "of that name"
    nearest = nearest_of(name, known) if is_plain(name) else ""
    hint = f" (did you mean {nearest}?)" if nearest else ""
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"there is no {what} {called}{hint}; the {what}s are {', '.join(known[:_LISTED]) or 'none'}{more}"


def nearest_of(name: str, known: Sequence[str]) -> str:
    """Return the known name that is most like one; empty: none is."""
    by_lower = {each.lower(): each for each in reversed(known)}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=_ALIKE)
    return by_lower[found[0]] if found else ""
