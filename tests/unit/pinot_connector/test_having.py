"""Conditions on what is released, as texts of Python and of a command line."""

from __future__ import annotations

import pytest
from gris_api.dp.v1 import question_pb2

from pinot_connector.errors import InvalidQuestion
from pinot_connector.questions import structured_question


def conditions(*texts: str) -> list[tuple[int | None, int, str]]:
    """Return place, comparison and bound of each condition of a question for a sum and two averages."""
    asked = structured_question("t", "c", k=None, sums=["x"], averages=["x", "y"], having=texts)
    return [
        (each.aggregate if each.HasField("aggregate") else None, each.comparison, each.bound)
        for each in asked.structured.having
    ]


def test_each_comparison_has_its_number() -> None:
    """With and without blanks, of every number that is released."""
    assert conditions(
        "count=1", "count <> -2", "sum:x != 3.25", " avg:x<4 ", "avg:y <= 5/7", "sum:x>6", "count >= 7"
    ) == [
        (None, question_pb2.COMPARISON_EQUAL, "1"),
        (None, question_pb2.COMPARISON_NOT_EQUAL, "-2"),
        (0, question_pb2.COMPARISON_NOT_EQUAL, "3.25"),
        (1, question_pb2.COMPARISON_LESS, "4"),
        (2, question_pb2.COMPARISON_AT_MOST, "5/7"),
        (0, question_pb2.COMPARISON_GREATER, "6"),
        (None, question_pb2.COMPARISON_AT_LEAST, "7"),
    ]


def test_one_text_is_one_condition() -> None:
    """And not as many as it has letters."""
    assert len(structured_question("t", "c", k=None, having="count > 3").structured.having) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "count",
        "count > ",
        "count > many",
        "count >> 3",
        "count > 3 AND count < 5",
        "> 3",
        "count > 1e3",
        "count => 3",
    ],
)
def test_what_is_no_condition_is_refused_with_what_is_expected(text: str) -> None:
    """By the name of the field."""
    with pytest.raises(InvalidQuestion, match="conditions such as count >= 100") as refused:
        conditions(text)
    assert refused.value.field == "having"


@pytest.mark.parametrize("name", ["sum:y", "x", "avg:", "Count", "max:x"])
def test_numbers_that_are_not_asked_for_are_refused(name: str) -> None:
    """A condition on them would need another release."""
    with pytest.raises(InvalidQuestion, match="that is asked for"):
        conditions(f"{name} > 3")
