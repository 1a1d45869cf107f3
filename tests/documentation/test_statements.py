"""The page of statements has every code, and no other."""

from __future__ import annotations

import re

from dp_service.releases.kinds.views import IntervalKind
from tests.support.paths import ROOT

_MADE = re.compile(r'Statement\(\s*"([a-z_.]+)"')
_LISTED = re.compile(r"`([a-z_]+\.[a-z_]+|question)`")


def test_every_code_is_on_the_page() -> None:
    """Programs are written against codes; one that is new, or gone, changes the page."""
    modules = (ROOT / "dp_service" / "releases").rglob("*.py")
    made = {code for path in modules for code in _MADE.findall(path.read_text())}
    made |= {f"intervals.{kind.name.lower()}" for kind in IntervalKind}
    rows = [line for line in (ROOT / "docs/statements.md").read_text().splitlines() if line.startswith("| `")]
    assert {code for row in rows for code in _LISTED.findall(row.split("|")[1])} == made
