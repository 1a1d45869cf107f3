"""Texts of a question as literals."""

from __future__ import annotations

import re
from collections.abc import Sequence


def standard_text(text: str) -> str:
    """Write a text for an engine in which only the quote is escaped, by doubling it."""
    return "'" + text.replace("'", "''") + "'"


def pinot_text(text: str) -> str:
    """Write a text for Pinot, whose engine of one stage makes one quote of two that stand in it side by side.

    It does so after its parser has, unless it is set up otherwise, and so would count the rows of another text. Such
    quotes are joined instead, by halves: a thousand of them are nested ten deep. What comes between the two is said,
    since Pinot 0.11 joins no two texts alone.
    """
    return _joined([standard_text(each) for each in re.split("(?<=')(?=')", text)])


def _joined(written: Sequence[str]) -> str:
    if len(written) == 1:
        return written[0]
    half = len(written) // 2
    return f"concat({_joined(written[:half])}, {_joined(written[half:])}, '')"
