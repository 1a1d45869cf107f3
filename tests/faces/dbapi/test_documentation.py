"""What docs/dbapi.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.usefixtures("starts_processes", "examples_at_hand")
def test_the_pages_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints five articles with their intervals, and what they cost."""
    (program,) = BLOCK.findall((ROOT / "docs" / "dbapi.md").read_text())
    here = program.replace('directory=".gris"', f"directory={str(tmp_path)!r}")
    assert here != program
    exec(compile(here, "docs/dbapi.md", "exec"), {})  # noqa: S102 - our own page
    *rows, cost = capsys.readouterr().out.splitlines()
    assert [4] * 5 == [len(row.split()) for row in rows]
    assert "Cost(information=11, calls=1" in cost
