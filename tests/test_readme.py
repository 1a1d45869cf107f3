"""What the README shows is what happens."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()
PROGRAM = re.compile(r"```python\n(.*?)```.*?```\n(.*?)```", re.DOTALL)
# With the key that drew the noise of the README.
KEY = hashlib.sha256(b"README").digest()


@pytest.mark.usefixtures("starts_processes", "examples_at_hand")
def test_the_readmes_program_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Its first program, unchanged, and the block below it; run again, it costs nothing."""
    shown = PROGRAM.search(README)
    assert shown is not None
    state = Path(".gris/readme")
    state.mkdir(mode=0o700, parents=True)
    key = state / "noise.key"
    key.write_bytes(KEY)
    key.chmod(0o400)
    program = compile(shown[1], "README.md", "exec")
    exec(program, {})  # noqa: S102 - our own README
    assert shown[2] == capsys.readouterr().out
    exec(program, {})  # noqa: S102 - our own README
    assert capsys.readouterr().out == shown[2].replace("\n4 units;", "\n0 units;")
