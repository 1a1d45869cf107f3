"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pinot_connector.embedded import EmbeddedServices
from tests.support.paths import ROOT

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.usefixtures("starts_processes", "examples_at_hand")
def test_the_readmes_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first program of the README prints ten articles and what they cost."""
    program = BLOCK.findall((ROOT / "README.md").read_text())[0]
    examples = ROOT / "examples"
    with EmbeddedServices(
        policy=examples / "policy.yaml", budget_config=examples / "budget.yaml", directory=tmp_path
    ) as services:
        here = program.replace("localhost:50051", services.dp_address)
        here = here.replace("localhost:50052", services.budget_address)
        namespace: dict[str, object] = {}
        exec(compile(here, "README.md", "exec"), namespace)  # noqa: S102 - our own README
        namespace["engine"].close()  # type: ignore[attr-defined]
    printed = capsys.readouterr().out.splitlines()
    assert 11 == len(printed)
    assert "information=21" in printed[-1]
