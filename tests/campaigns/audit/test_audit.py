"""The short audit: two tables, one member more, the real services in fresh mode; `make audit` asks far more often."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.rings import needs

from .world import KNOWN_LAP, QUESTIONS, UNK_GUMB, WITH, Question, World, running_world

ASKS = 250
"""A right build is accused of breaking any one promise at most once in 10^6 runs, however often it is asked."""

ASKS_OF_A_BROKEN_BUILD = 1000
"""Enough to miss neither fault below more often than once in 10^9 runs."""


@pytest.fixture(scope="module")
@needs("process")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services over both tables, once for all tests."""
    with running_world(tmp_path_factory.mktemp("audit")) as world:
        yield world


def test_every_fresh_answer_is_a_release_of_its_own_and_charged(world: World) -> None:
    """Twenty times the same question on the same data: twenty ids of each kind, and twenty charges."""
    answers = asyncio.run(world.answers(UNK_GUMB, WITH, 20))
    assert (
        len({answer.release_id for answer in answers}) == len({answer.query_id for answer in answers}) == 20
    )
    assert all(answer.charged == answer.cost and answer.cost.information > 0 for answer in answers)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_the_empirical_loss_stays_below_the_promise(world: World, question: Question) -> None:
    """Nothing that was answered proves more than the promised delta at the promised epsilon."""
    assert world.audit(question, ASKS).proven_delta <= question.delta


@pytest.mark.parametrize(
    ("fault", "question"), [("half_the_noise", KNOWN_LAP), ("threshold_without_tau", UNK_GUMB)]
)
def test_a_broken_build_is_found(world: World, fault: str, question: Question) -> None:
    """The same audit of a service with half the noise, or without `+ tau`, proves that the promise is broken."""
    with world.broken(fault) as address:
        assert world.audit(question, ASKS_OF_A_BROKEN_BUILD, address).proven_delta > question.delta
