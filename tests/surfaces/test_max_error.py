"""How exact counts have to be, as a question of Python states it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pinot_connector.errors import InvalidQuestion
from pinot_connector.questions import structured_question


@pytest.mark.parametrize("wanted", ["16", "7.5", "10%", "", 16, 7.5, Decimal("7.5")])
def test_a_number_is_its_text(wanted: str | int | float | Decimal) -> None:
    """Which the service reads; empty is the policy's price."""
    assert structured_question("t", "a", k=5, max_error=wanted).structured.max_error == str(wanted)


def test_what_no_message_can_hold_is_refused() -> None:
    """By the name of the argument."""
    with pytest.raises(InvalidQuestion) as refused:
        structured_question("t", "a", k=5, max_error="\ud800")
    assert refused.value.field == "max_error"
