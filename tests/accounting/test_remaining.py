"""How many questions a budget still pays for."""

from __future__ import annotations

import pytest

from dp_service.accounting.remaining import Units, questions_expected, questions_left

DEFAULT = Units(3000, 30)


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        # UnkGumb with k = 10 and 100, UnkLap, KnownGumb with k = 10.
        (Units(21, 1), 30),
        (Units(201, 1), 14),
        (Units(1, 1), 30),
        (Units(20, 0), 150),
    ],
)
def test_the_scarcer_unit_decides(price: Units, expected: int) -> None:
    """Whichever of the two is used up first."""
    assert expected == questions_left(DEFAULT, price)


def test_what_is_spent_up_pays_for_nothing() -> None:
    """No calls are left, so no unknown domain, but known ones still."""
    assert 0 == questions_left(Units(3000, 0), Units(1, 1))
    assert 3000 == questions_left(Units(3000, 0), Units(1, 0))


def test_history_gives_the_average_price() -> None:
    """Questions that ended in bottom cost less than their worst case, so more of them are expected."""
    past = [Units(2, 1), Units(201, 1), Units(8, 0)]
    assert 42 == questions_expected(DEFAULT, past)
    assert 45 == questions_expected(Units(3000, 30), [Units(1, 1), Units(1, 1), Units(1, 0)])


@pytest.mark.parametrize("past", [[], [Units(0, 0)]])
def test_free_questions_have_no_number(past: list[Units]) -> None:
    """A budget pays for endlessly many of them."""
    with pytest.raises(ValueError, match=r"^price must be"):
        questions_expected(DEFAULT, past)


def test_amounts_are_checked() -> None:
    """The error names the unit."""
    with pytest.raises(ValueError, match=r"^calls must be"):
        Units(1, -1)
