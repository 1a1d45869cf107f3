"""The figures are printed and drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from research import figures


def test_quick_ones_are_printed_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each with its heading; pictures are where they are asked for."""
    names = ["S1 figure 4", "S1 table 2", "S2 and S3 mechanisms", "S3 noise"]
    figures.main(["--only", *names, "--trials", "2", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert all(f"\n{name}: " in said for name in names)
    assert "| this budget | global | (0.15, 1e-11) |  | (33.79, 7e-09) |" in said
    assert "| UnkGumb | 0.209 | 1e-06 | 11 |" in said
    assert ["s1-figure-4.svg"] == [each.name for each in tmp_path.iterdir()]
