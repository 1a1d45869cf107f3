"""Values as agents read and send them: numbers that their clients would change, and letters that nobody sees."""

from __future__ import annotations

import datetime
import json

import pytest

from gris_gateway.faces.mcp.results import UnseenText, budget_of, element_of
from pinot_connector.budgets import Cost, Level, Mode
from pinot_connector.errors import IntegrityError

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


def test_a_value_of_another_type_is_no_wrong_question() -> None:
    """A result is charged by then, so an agent is not sent to correct a field; and the value is not repeated."""
    cost = Cost(b"secret", 1, "u")  # type: ignore[arg-type]  # no integer
    level = Level(("a",), cost, cost, cost, cost, Mode.TRACK, None, None)
    with pytest.raises(IntegrityError) as refused:
        budget_of([level])
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("letter", ["\u202e", "\u200b", "\x1b", "\n", "\U000e0041"])
def test_letters_that_nobody_sees_do_not_reach_a_model(letter: str) -> None:
    """U+FFFD stands for them, beside a text of ASCII from which the exact one is read."""
    found = element_of(f"a{letter}b")
    assert isinstance(found, UnseenText)
    assert found.shown == "a\ufffdb"
    assert found.exact.isascii()
    assert json.loads(found.exact) == f"a{letter}b"
    assert element_of("Ångström 世 😀") == "Ångström 世 😀"
