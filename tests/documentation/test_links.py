"""Links lead to files and headings that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.pages import DOCS
from tests.support.paths import ROOT

# `make docs` checks those of the site.
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
DECISIONS = DOCS / "decisions"
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


def test_no_two_decisions_have_the_same_number() -> None:
    """Comments and pages name a decision by its number."""
    numbers = [path.name.partition("-")[0] for path in DECISIONS.glob("[0-9]*.md")]
    assert len(numbers) == len(set(numbers))


def test_every_decision_is_in_the_index_once() -> None:
    """A reader finds one there."""
    listed = LINK.findall((DECISIONS / "README.md").read_text())
    assert sorted(path.name for path in DECISIONS.glob("[0-9]*.md")) == sorted(
        link for link in listed if link[:4].isdecimal()
    )
