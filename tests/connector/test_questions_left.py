"""For how many more questions a budget lasts."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2

from pinot_connector import AsyncPrivateClient, Cost, Level, Mode, Share
from pinot_connector.budgets import questions_left, share_of
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


def test_an_average_is_not_rounded() -> None:
    """Three questions for four units: 3000 units last for 2250 more."""
    assert 2250 == questions_left([level(3000, 3000)], Cost(4, 3, ""), together=3)


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
