"""Policies in which a member typically has as many values, and as many rows in each, of one column as of another."""

from __future__ import annotations

import re


def typically(most: int, text: str) -> str:
    """Return a policy's text that says so of whatever may be grouped by: columns, buckets and parts of time.

    Rows that are clipped in each element of the text become those of a member in that many elements.
    """
    text = re.sub(r"group_by: true(?!, typical)", f"group_by: true, typical: {most}", text)

    def numbered(found: re.Match[str]) -> str:
        names = (each.strip() for each in found[2].split(","))
        return f"{found[1]}: {{{', '.join(f'{name}: {most}' for name in names)}}}"

    text = re.sub(
        r"events: \{tau: (\d+), tau_is: clipped\}", lambda each: f"rows: {most * int(each[1])}", text
    )
    return re.sub(r"\b(buckets|parts): \[([^]]*)\]", numbered, text)
