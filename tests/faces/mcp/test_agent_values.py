"""Values as agents read and send them: numbers that their clients would change, and letters that nobody sees."""

from __future__ import annotations

import datetime
import json

import pytest

from gris_gateway.faces.mcp.results import element_of

EXACT = 2**53 - 1


@pytest.mark.parametrize("number", [EXACT + 1, -EXACT - 1, 2033735037362939528, -(2**63), 2**63 - 1])
def test_an_integer_that_a_double_changes_goes_to_an_agent_as_a_text(number: int) -> None:
    """`where` takes it as such."""
    assert element_of(number) == str(number)


@pytest.mark.parametrize("number", [EXACT, -EXACT, 0, True])
def test_other_integers_stay_numbers(number: int) -> None:
    """Every client reads them as they are."""
    assert element_of(number) is number
    assert element_of(datetime.date(2026, 1, 2)) == "2026-01-02"


@pytest.mark.parametrize("letter", ["\u202e", "\u200b", "\x1b", "\n", "\U000e0041"])
def test_letters_that_nobody_sees_do_not_reach_a_model(letter: str) -> None:
    """U+FFFD stands for them, beside a text of ASCII from which the exact one is read."""
    found = element_of(f"a{letter}b")
    assert found["shown"] == "a\ufffdb"
    assert found["exact"].isascii()
    assert json.loads(found["exact"]) == f"a{letter}b"
    assert element_of("Ångström 世 😀") == "Ångström 世 😀"
