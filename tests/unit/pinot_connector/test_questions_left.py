"""For how many more questions a budget lasts."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2

from pinot_connector import AsyncPrivateClient, Cost, Level, Mode, Share, formats
from pinot_connector.budgets import Balance, balance_of, questions_left, share_of
from pinot_connector.errors import IntegrityError
from pinot_connector.questions import structured_question


def level(information: int, calls: int, mode: Mode = Mode.ENFORCE) -> Level:
    """Return a level with so much left."""
    some = Cost(information, calls, "")
    return Level(("a",), some, some, some, some, mode, None, None)


DEFAULT = level(3000, 30)


@pytest.mark.parametrize(
    ("information", "calls", "expected"),
    [
        # UnkGumb with k = 10 and 100, UnkLap, KnownGumb with k = 10.
        (21, 1, 30),
        (201, 1, 14),
        (1, 1, 30),
        (20, 0, 150),
        (3001, 0, 0),
        (0, 0, None),
    ],
)
def test_the_scarcer_unit_decides(information: int, calls: int, expected: int | None) -> None:
    """Whichever of the two is used up first; what costs nothing has no number."""
    assert expected == questions_left([DEFAULT], Cost(information, calls, ""))


def test_the_scarcest_level_that_enforces_decides() -> None:
    """A company may have less left than its analyst; a level that only records refuses nobody."""
    price = Cost(10, 1, "")
    assert 5 == questions_left([level(50, 30), DEFAULT], price)
    assert 30 == questions_left([level(50, 30, Mode.TRACK), DEFAULT], price)
    assert questions_left([dataclasses.replace(DEFAULT, mode=Mode.TRACK)], price) is None


async def test_a_client_tells_it_for_a_question(client: AsyncPrivateClient) -> None:
    """At the worst-case price: 300 calls last for 272 top fives of 11 units, and that many certainly."""
    assert 272 == await client.questions_left(structured_question("feedback", "article_id", k=5))
    text = "SELECT cohort, COUNT(DISTINCT member_id) FROM feedback GROUP BY cohort"
    assert 300 == await client.questions_left(text)


@pytest.mark.parametrize("wrong", [{"mode": budget_pb2.MODE_UNSPECIFIED}, {"cost": 0}, {"cost": -1}])
def test_a_share_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    """A gateway that sends a share of no mode or no cost is not believed; one without a limit has no part of it."""
    sent: dict[str, Any] = {
        "path": ["a"],
        "unit": "calls",
        "cost": 2,
        "limit": 0,
        "remaining": 0,
        "mode": budget_pb2.MODE_TRACK,
    }
    assert Share(("a",), "calls", 2, 0, 0, Mode.TRACK) == share_of(app_pb2.BudgetShare(**sent))
    with pytest.raises(IntegrityError):
        share_of(app_pb2.BudgetShare(**(sent | wrong)))


@pytest.mark.parametrize(
    ("spent", "limit", "expected"),
    [
        # 21 units a call of 3000 and 30: 143 calls would do, each with 30 / 143 of the delta.
        ((21, 1), (3000, 30), Balance("calls", 143, Fraction(30, 143))),
        ((21, 1), (3000, 300), Balance("information", 143, Fraction(300, 143))),
        ((100, 10), (3000, 300), Balance("", 300, Fraction(1))),
        # Less than one call in the time of all units: one is the fewest there are.
        ((3001, 1), (3000, 30), Balance("information", 1, Fraction(30))),
        ((20, 0), (3000, 300), Balance("information")),
        ((0, 2), (3000, 300), Balance("calls")),
        ((0, 0), (3000, 300), None),
        ((5, 1), (0, 30), None),
        ((5, 1), (30, 0), None),
    ],
)
def test_the_unit_that_runs_out_first_is_said_with_what_would_balance_both(
    spent: tuple[int, int], limit: tuple[int, int], expected: Balance | None
) -> None:
    """Whichever has the larger share spent; calls times delta stay as they are."""
    found = balance_of(Cost(*spent, ""), Cost(*limit, ""))
    assert expected == found
    if found is not None and found.calls:
        assert limit[1] == found.calls * found.of_delta
    assert bool(found) == bool(formats.balance(found))


def test_a_balance_is_said_with_the_delta_where_it_is_known() -> None:
    """300 calls of 1e-11 are 143 of 2.09e-11, rounded down; elsewhere as a multiple."""
    found = balance_of(Cost(21, 1, ""), Cost(3000, 300, ""))
    said = "at this rate information will run out first; 143 calls with {} would last as long and promise the same"
    assert said.format("2.09 times the delta") == formats.balance(found)
    assert said.format("delta 2.09e-11") == formats.balance(found, Fraction("1e-11"))
