"""Pages of the documentation, taken apart: sections, tables, programs and commands."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

DOCS = ROOT / "docs"

_CODE = re.compile(r"`([^`]+)`")
# A vertical bar inside a cell is written \|.
_CELL = re.compile(r"(?<!\\)\|")


def section(page: str, heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above."""
    text = (DOCS / page).read_text()
    level, title = heading.split(" ", 1)
    begin = re.search(rf"^{level} {re.escape(title)}$", text, re.MULTILINE)
    assert begin, f"{page} has no heading {heading!r}"
    rest = text[begin.end() :]
    end = re.search(rf"^#{{1,{len(level)}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def blocks(text: str, language: str) -> list[str]:
    """Return the blocks of code in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def rows(text: str, first: str) -> list[list[str]]:
    """Return the rows of the tables whose first column is called so, each as its cells."""
    found: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in _CELL.split(line)[1:-1]]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == first:
            inside = True
        elif inside and not set(line) <= set("|-"):
            found.append(cells)
    return found


def quoted(cell: str) -> list[str]:
    """Return what stands in backticks."""
    return [each.replace("\\|", "|") for each in _CODE.findall(cell)]
