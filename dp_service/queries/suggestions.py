"""What a refusal says of names: the asker's own if it is a known one misspelt, and what the policy lists instead.

Only names and listed domains of the policy are suggested, which every caller may read in the catalogue; nothing comes
from the data. A literal is never repeated: errors end up in logs, which must not contain filters.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from fractions import Fraction

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SHOWN = 8
# How alike a slip and the name have to be, as difflib measures it: five letters more beside ten, or two others of ten.
_SLIP = 0.8


def quoted(name: str, known: Collection[str]) -> str:
    """Return how a message calls an unknown name: by itself only if it is a known one, slightly misspelt.

    In a mangled text any other word may be somebody's literal, or hold one.
    """
    is_slip = _PLAIN.fullmatch(name) and _closest(name, known, cutoff=_SLIP)
    return f'"{name}"' if is_slip else "with that name"


def instead_of(name: str, known: Collection[str]) -> str:
    """Return what to ask for instead of an unknown name: the most similar known one, or all of them."""
    closest = _closest(name, known)
    return f"did you mean {closest}?" if closest else f"it lists {listed(sorted(known))}"


def _closest(name: str, known: Collection[str], *, cutoff: float = 0.6) -> str:
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else ""


def listed(values: Sequence[object]) -> str:
    """Return the first of some names or values, and how many there are beyond them."""
    shown = ", ".join(map(str, values[:_SHOWN]))
    beyond = len(values) - _SHOWN
    return f"{shown} and {beyond} more" if beyond > 0 else shown or "none"


def asking(number: str, source: str, by: Sequence[str] = ()) -> str:
    """Return the statement for a number of a table or of a statement, by columns."""
    statement = f"SELECT {', '.join([*by, number])} FROM {source}"  # noqa: S608 - said, and not asked
    return f"{statement} GROUP BY {', '.join(by)}" if by else statement


def by_bins(number: str, source: str, column: str, low: Fraction, high: Fraction) -> str:
    """Return the statement for a number of a table, by eight bins of a column between its bounds."""
    ends = ", ".join(f"{Decimal(end.numerator) / end.denominator:f}" for end in (low, high))
    return asking(number, source, [f"WIDTH_BUCKET({column}, {ends}, 8)"])
