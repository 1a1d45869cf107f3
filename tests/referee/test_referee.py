"""Records of what Gris says, small ones, and how they are compared."""

from __future__ import annotations

import copy

import pytest

from .recording import Record, Size, differences, record


@pytest.mark.usefixtures("starts_processes")
def test_what_is_said_twice_is_the_same() -> None:
    """By services that were started anew, with ledgers of their own, and on every surface."""
    size = Size(texts=30, everywhere=4, asked=8)
    first, second = record(size), record(size)
    assert differences(first, second) == []
    surfaces = {name for case in first["gaussian"] for name in case}
    assert {
        "explained",
        "released",
        "gateway",
        "ask",
        "explain",
        "notebook",
        "sql",
        "agent",
        "console",
    } <= surfaces
    assert any("rows" in case["released"] for case in first["gaussian"])


def test_a_change_is_found_by_its_place() -> None:
    """A number, a word, and a case that is missing."""
    old: Record = {
        "world": [
            {"asked": f"SELECT {number}", "released": {"rows": [number]}, "sql": ""} for number in range(3)
        ]
    }
    new = copy.deepcopy(old)
    new["world"][1]["released"]["rows"] = [7]
    new["world"][2]["sql"] = "a word"
    rows, words = differences(old, new)
    assert rows == "1 x world.released.rows[]\n  case 1: SELECT 1\n    1\n    -> 7"
    assert words.startswith("1 x world.sql")
    assert differences(old, {"world": []}) == ["1 x worldcases\n  3 cases -> 0 cases"]
