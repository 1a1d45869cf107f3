"""How to search what a program writes for a number that it must not tell."""

from __future__ import annotations


def number_pattern(value: int) -> str:
    """Return a pattern for a number that stands by itself.

    The same digits in a row are, by chance, within the times, ids and fractions of a long log. No port is above 65535.
    """
    return rf"(?<!\d)(?<!\d\.){value}(?!\d)"
