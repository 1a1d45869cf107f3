"""Tables for people leave nothing of a cell out."""

from __future__ import annotations

import os
import shutil

import pytest
from gris_api.budget.v1 import admin_pb2

from gris_cli.budget.reports import journal_sheet
from gris_cli.data.sheets import Column, Sheet
from gris_cli.sheets import print_sheets

ID, DIGEST, RELEASE = "0123456789abcdef" * 2, "fedcba9876543210" * 4, "r" * 64
JOURNALS = Sheet(
    (
        Column("root", "root", is_text=True),
        Column("last", "last entry"),
        Column("digest", "digest", is_text=True, is_copied=True),
    ),
    [("acme", 1234567, DIGEST)],
)
CHARGE = admin_pb2.JournalEntry(account={"path": ["acme", "ann"]}, release_id=RELEASE, request_id=ID)


def test_an_id_is_printed_whole_however_narrow_its_column_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody copies it into the next command."""
    columns = tuple([Column(name, name, is_text=True) for name in "abcdefg"])
    cells = tuple([name * 32 for name in "abcdefg"])
    print_sheets({"requests": Sheet(columns, [cells])}, as_json=False)
    printed = capsys.readouterr().out
    assert [32] * 7 == [printed.count(name) - 1 for name in "abcdefg"]


@pytest.mark.parametrize("columns", [0, 10, 40, 80, 100, 200])
def test_what_is_to_be_copied_is_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """However wide the terminal is, and also if it does not know; nothing else is left out."""
    monkeypatch.setattr(shutil, "get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    print_sheets({"journals": JOURNALS}, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert sum(DIGEST in line for line in lines) == 1
    assert "1234567" in "".join("".join(lines).split()) or columns == 10
    print_sheets({"journal": journal_sheet([CHARGE])}, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert (1, 1) == tuple(sum(each in line for line in lines) for each in (ID, RELEASE))


def test_what_fits_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Other columns shrink beside an id, and a table without rows has its head."""
    columns = (
        Column("id", "id", is_text=True, is_copied=True), *(Column(name, name, is_text=True) for name in "abc")
    )  # fmt: skip
    cells = (ID, *("some words in a cell " * 3,) * 3)
    print_sheets({"requests": Sheet(columns, [cells])}, as_json=False)
    head, _, first, *_ = capsys.readouterr().out.splitlines()
    assert ["id", "a", "b", "c"] == [each.strip() for each in head.split("┃")]
    assert ID == first.split("│")[0].strip()
    print_sheets({"journal": journal_sheet([])}, as_json=False)
    assert "request" in capsys.readouterr().out


def test_an_empty_table_with_notes_prints_them_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """A head without rows would look like an answer that was cut off."""
    print_sheets(
        {"differences": Sheet(JOURNALS.columns, [], (("verified", "0 differences"),))}, as_json=False
    )
    assert capsys.readouterr().out.split() == ["verified", "0", "differences"]
