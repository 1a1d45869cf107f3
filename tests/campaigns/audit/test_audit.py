"""The short audit: two tables, one member more, the real services in fresh mode; the campaign asks far more often."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.examples import long_rows_but
from tests.support.rings import needs

from .estimating import Event, proven_delta
from .world import (
    BOUND_GAUSS,
    BOUND_GAUSS_KNOWN,
    BOUND_MOMENTS,
    BOUNDED_POLICY,
    BOUNDED_QUESTIONS,
    KNOWN_LAP,
    QUESTIONS,
    SERIES,
    SHIFT,
    SMALL_KNOWN_GUMB,
    SMALL_KNOWN_GUMB_ORDER,
    SMALL_POLICY,
    TOTAL,
    TWO_LOOKS,
    UNK_GUMB,
    UNK_LAP,
    WITH,
    Question,
    World,
    running_world,
)

ASKS = {KNOWN_LAP: 150, TOTAL: 150, UNK_LAP: 50, UNK_GUMB: 50}
# Without any noise the member makes a tie, which shows the event half the time: more answers than for the others.
SMALL_ASKS = {SMALL_KNOWN_GUMB: 160, SMALL_KNOWN_GUMB_ORDER: 130}
BOUNDED_ASKS = {
    BOUND_GAUSS_KNOWN: 170,
    BOUND_GAUSS: 50,
    SERIES: 170,
    TWO_LOOKS: 170,
    SHIFT: 170,
    BOUND_MOMENTS: 230,
}
EVERY_ASKS = ASKS | SMALL_ASKS | BOUNDED_ASKS
"""How often each table is asked each question: enough to find a build that gives the member away every time.

A right build is accused of breaking any one promise at most once in 10^6 runs, however often it is asked.
"""

ASKS_OF_BROKEN_BUILDS = {
    "bounds_nobody": 400,
    "half_the_gaussian_noise": 400,
    "half_the_noise": 800,
    "no_threshold_for_names": 500,
    "sums_without_noise": 400,
    "total_without_noise": 400,
    "threshold_without_min_count": 200,
    "threshold_without_tau": 800,
}
"""At most: enough to miss none of these faults more often than once in 10^8 runs; most take a fraction."""


@pytest.fixture(scope="module")
@needs("process")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services over both tables, once for all tests."""
    with running_world(tmp_path_factory.mktemp("audit")) as world:
        yield world


@pytest.fixture(scope="module")
@needs("process")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same tables under a policy that promises so little loss that few answers can break it."""
    with running_world(tmp_path_factory.mktemp("small"), SMALL_POLICY) as world:
        yield world


@pytest.fixture(scope="module")
@needs("process")
def bounded_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same tables under a policy that bounds contributions; it has a currency of its own."""
    with running_world(tmp_path_factory.mktemp("bounded"), BOUNDED_POLICY) as world:
        yield world


def test_every_question_of_the_campaign_is_audited() -> None:
    """Here as there, choices at another epsilon."""
    assert {each.name for each in EVERY_ASKS} == {each.name for each in (*QUESTIONS, *BOUNDED_QUESTIONS)}


@pytest.mark.parametrize("question", EVERY_ASKS, ids=lambda question: question.name)
def test_a_member_who_is_given_away_every_time_is_found(question: Question) -> None:
    """What every answer with the member shows, and none without, breaks the promise after so many answers."""
    asks = EVERY_ASKS[question]
    events = [Event[bool](event.name, bool, event.impossible_without) for event in question.events]
    finding = proven_delta(
        [True] * asks, [False] * asks, events, epsilon=question.epsilon, delta=question.delta
    )
    assert finding.proven_delta > question.delta


@pytest.mark.parametrize("question", BOUNDED_ASKS, ids=lambda question: question.name)
def test_bounded_contributions_keep_their_promise(bounded_world: World, question: Question) -> None:
    """What Gaussian noise of this variance gives at epsilon = 2, and delta for the threshold."""
    assert bounded_world.audit(question, BOUNDED_ASKS[question]).proven_delta <= question.delta


@pytest.mark.parametrize(
    ("fault", "question"),
    long_rows_but(
        lambda _, question: question in (BOUND_GAUSS, BOUND_GAUSS_KNOWN),
        [
            ("half_the_gaussian_noise", BOUND_GAUSS_KNOWN),
            ("threshold_without_min_count", BOUND_GAUSS),
            ("no_threshold_for_names", TWO_LOOKS),
            ("bounds_nobody", SERIES),
            ("total_without_noise", SHIFT),
            ("sums_without_noise", BOUND_MOMENTS),
        ],
    ),
)
def test_a_broken_build_of_bounded_contributions_is_found(
    bounded_world: World, fault: str, question: Question
) -> None:
    """Half the sigma, no threshold, no min_count, no bound, totals or sums as they are: all are found."""
    with bounded_world.broken(fault) as address:
        assert bounded_world.proves_a_fault(question, ASKS_OF_BROKEN_BUILDS[fault], address)


def test_every_fresh_answer_is_a_release_of_its_own_and_charged(world: World) -> None:
    """Twenty times the same question on the same data: twenty ids of each kind, and twenty charges."""
    answers = asyncio.run(world.answers(UNK_GUMB, WITH, 20))
    assert (
        len({answer.release_id for answer in answers}) == len({answer.query_id for answer in answers}) == 20
    )
    assert all(answer.charged == answer.cost and answer.cost.information > 0 for answer in answers)


@pytest.mark.parametrize("question", ASKS, ids=lambda question: question.name)
def test_the_empirical_loss_stays_below_the_promise(world: World, question: Question) -> None:
    """Nothing that was answered proves more than the promised delta at the promised epsilon."""
    assert world.audit(question, ASKS[question]).proven_delta <= question.delta


@pytest.mark.parametrize("question", SMALL_ASKS, ids=lambda question: question.name)
def test_the_empirical_loss_of_choices_stays_below_the_promise(
    small_world: World, question: Question
) -> None:
    """At an epsilon that few answers could exceed; the campaign `audit` asks at the one of the other mechanisms."""
    assert small_world.audit(question, SMALL_ASKS[question]).proven_delta <= question.delta


@pytest.mark.parametrize(
    ("fault", "question"), [("half_the_noise", KNOWN_LAP), ("threshold_without_tau", UNK_GUMB)]
)
def test_a_broken_build_is_found(world: World, fault: str, question: Question) -> None:
    """The same audit of a service with half the noise, or without `+ tau`, proves that the promise is broken."""
    with world.broken(fault) as address:
        assert world.proves_a_fault(question, ASKS_OF_BROKEN_BUILDS[fault], address)
