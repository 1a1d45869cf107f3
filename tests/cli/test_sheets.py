"""Tables for people leave nothing of a cell out."""

from __future__ import annotations

import pytest

from gris_cli.sheets import print_sheets
from gris_data.sheets import Column, Sheet


def test_an_id_is_printed_whole_however_narrow_its_column_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody copies it into the next command."""
    columns = tuple([Column(name, name, is_text=True) for name in "abcdefg"])
    cells = tuple([name * 32 for name in "abcdefg"])
    print_sheets({"requests": Sheet(columns, [cells])}, as_json=False)
    printed = capsys.readouterr().out
    assert [32] * 7 == [printed.count(name) - 1 for name in "abcdefg"]
