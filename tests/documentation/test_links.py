"""Links lead to files and headings that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.pages import DOCS, ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def leads_nowhere(page: Path, link: str) -> bool:
    """Tell whether a link of a page names a file or a heading that is not there."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return not target.exists() or bool(anchor and anchor not in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """No page points at a file or a heading that is not there."""
    links = LINK.findall(FENCED.sub("", page.read_text()))
    assert [] == [link for link in links if leads_nowhere(page, link)]
