"""What `examples/load.py` makes of a pairs copy."""

from __future__ import annotations

from pathlib import Path

from examples.load import segments_of_pairs
from tests.support.some import some


def test_one_name_of_a_segment_stands_for_one_content() -> None:
    """A whole period is never taken for the half of one that is loaded in two parts."""
    periods = [{"checksum": f"sha256:{month:016x}{0:048x}", "file": f"{month}.parquet"} for month in (1, 2)]
    loaded: dict[str, tuple[Path, int, int]] = {}
    for number in (1, 2, 10, 11):
        for name, part in some(segments_of_pairs(Path("copy"), "visits_pairs", periods, number).items()):
            assert loaded.setdefault(name, (*part, number)) == (*part, number)
    assert len(loaded) == 2 * (1 + 2 + 10 + 11)
