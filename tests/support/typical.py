"""Policies in which a member typically has as many values of every column as of every other one."""

from __future__ import annotations

import re


def typically(most: int, text: str) -> str:
    """Return a policy's text that says so of whatever may be grouped by: columns, buckets and parts of time."""
    text = re.sub(r"group_by: true(?!, typical)", f"group_by: true, typical: {most}", text)

    def numbered(found: re.Match[str]) -> str:
        names = (each.strip() for each in found[2].split(","))
        return f"{found[1]}: {{{', '.join(f'{name}: {most}' for name in names)}}}"

    return re.sub(r"\b(buckets|parts): \[([^]]*)\]", numbered, text)
