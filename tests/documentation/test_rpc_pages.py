"""The pages that `make docs` makes of the protos."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.support.some import some

ROOT = Path(__file__).parents[2]

_HEADING = re.compile(r"^### (\w+)$", re.MULTILINE)
_LINK = re.compile(r"\]\((gris\.[\w.]+\.md)#(\w+)\)")


@pytest.mark.usefixtures("starts_processes")
def test_each_rpc_and_message_is_described_once_and_every_link_leads_to_one(tmp_path: Path) -> None:
    """A message that many RPCs use has one place, and each RPC has its program."""
    write_pages = runpy.run_path(str(ROOT / "protos" / "pages.py"))["write_pages"]
    pages = {page.name: page.read_text() for page in write_pages(tmp_path)}
    declared = {
        name
        for proto in (ROOT / "protos" / "gris").rglob("*.proto")
        for name in re.findall(r"^\s*(?:rpc|message|enum) (\w+)", proto.read_text(), re.MULTILINE)
    }
    headings = {name: _HEADING.findall(text) for name, text in pages.items()}
    assert declared == {heading for each in headings.values() for heading in each}
    assert all(len(set(each)) == len(each) for each in headings.values())
    for page, anchor in some(link for text in pages.values() for link in _LINK.findall(text)):
        assert anchor in map(str.lower, headings[page])
    assert sum(text.count("```python") for text in pages.values()) == sum(
        len(re.findall(r"^\s*rpc ", proto.read_text(), re.MULTILINE))
        for proto in (ROOT / "protos" / "gris").rglob("*.proto")
    )
