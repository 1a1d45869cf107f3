"""How exact counts have to be is asked alike on every surface, and an old question says it again."""

from __future__ import annotations

from decimal import Decimal

import pytest
from gris_api.dp.v1 import question_pb2

from gris_mcp.arguments import Question
from gris_mcp.past_questions import arguments_of
from pinot_connector.errors import InvalidQuestion
from pinot_connector.questions import structured_question


def asked_on_every_surface(wanted: str) -> list[question_pb2.Question]:
    """Return the message that each surface sends for the five largest elements."""
    return [
        structured_question("t", "a", k=5, max_error=wanted),
        Question.model_validate({"table": "t", "by": ["a"], "k": 5, "max_error": wanted}).message(),
    ]


@pytest.mark.parametrize("wanted", ["16", "7.5", "10%", ""])
def test_every_surface_sends_the_same_message(wanted: str) -> None:
    """As a text, which the service reads; empty is the policy's price."""
    messages = asked_on_every_surface(wanted)
    assert {wanted} == {each.structured.max_error for each in messages}
    assert all(each == messages[0] for each in messages)
    assert arguments_of(messages[0]).get("max_error", "") == wanted


@pytest.mark.parametrize("wanted", [16, 7.5, Decimal("7.5")])
def test_a_number_is_its_text(wanted: int | float | Decimal) -> None:
    """Of Python, and of a model that writes a number where a text is expected."""
    assert structured_question("t", "a", k=5, max_error=wanted).structured.max_error == str(wanted)
    if not isinstance(wanted, Decimal):
        given = Question.model_validate({"table": "t", "max_error": wanted})
        assert given.message().structured.max_error == str(wanted)


def test_what_no_message_can_hold_is_refused() -> None:
    """By the name of the argument."""
    with pytest.raises(InvalidQuestion) as refused:
        structured_question("t", "a", k=5, max_error="\ud800")
    assert refused.value.field == "max_error"
