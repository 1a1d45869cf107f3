"""A guard of what a connection spends within an hour: exact, also for several at once; repeats are free."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, cast

import pytest

from pinot_connector import AsyncPrivateClient, structured_question
from pinot_connector.budgets import Cost
from pinot_connector.errors import (
    EndedBetweenLooks,
    EngineUnavailable,
    IntegrityError,
    InvalidQuestion,
    OutcomeUnknown,
    ServiceFailed,
    ServiceUnavailable,
)
from pinot_connector.results import PrivateResult
from pinot_connector.spending_guard import SpendingGuard, SpendingGuards
from tests.support.clients import Counted, blocking_client_of
from tests.support.world import World, new_account

RESULT = cast("PrivateResult", object())
LARGEST = 2**63 - 1


class Asking:
    """Questions of one price under a guard, at a time that a test says."""

    def __init__(self, limit: int) -> None:
        self.now = 1000.0
        self.guard = SpendingGuard(limit, lambda: self.now)
        self.limits: list[int] = []

    async def ask(
        self,
        units: int,
        *,
        charged: int | None = None,
        ends: BaseException | None = None,
        most: int | None = None,
    ) -> PrivateResult:
        """Ask a question that costs so much at most; `charged`: what it costs indeed."""

        async def asked(limit: int) -> tuple[PrivateResult, int]:
            self.limits.append(limit)
            if ends is not None:
                raise ends
            costs = units if charged is None else charged
            if costs > limit:
                raise InvalidQuestion("max_cost", "too dear")
            return RESULT, costs

        async def price() -> Cost:
            return Cost(units, 0, "u")

        return await self.guard.asked(asked, price, most)


async def refused(asked: Awaitable[PrivateResult]) -> str:
    """Return the refusal of a guard."""
    with pytest.raises(InvalidQuestion) as refusal:
        await asked
    assert refusal.value.field == "max_per_hour"
    return refusal.value.problem


async def test_an_hour_later_there_is_room_again() -> None:
    """The refusal says what was spent, the price, the limit, and in how many minutes; the last unit is not lost."""
    asking = Asking(LARGEST)
    assert await asking.ask(LARGEST - 10) is RESULT
    asking.now += 1800
    assert await asking.ask(10) is RESULT
    said = await refused(asking.ask(1))
    assert said.startswith(
        f"the question may cost 1 information units, {LARGEST} were spent within the last hour"
    )
    assert f"at most {LARGEST} an hour are allowed; there is room in 30 minutes; nothing was asked" in said
    assert "in 60 minutes" in await refused(asking.ask(LARGEST - 9))
    asking.now += 1799.5
    assert "in 1 minute;" in await refused(asking.ask(1))
    asking.now += 0.5
    assert await asking.ask(LARGEST - 10) is RESULT
    assert asking.limits[-1] == LARGEST - 10


async def test_what_is_free_is_given_and_does_not_count() -> None:
    """Also where no room is left: it is asked for with a max_cost of 0."""
    asking = Asking(10)
    await asking.ask(10)
    assert await asking.ask(10, charged=0) is RESULT
    assert await asking.ask(11, charged=0) is RESULT
    assert "refused at any time" in await refused(asking.ask(11))
    asking.now += 3600
    for _ in range(5):
        await asking.ask(10, charged=0)
    await asking.ask(10, charged=4)
    assert await asking.ask(6) is RESULT
    assert asking.limits[:5] == [10, 0, 0, 0, 10]


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (ServiceUnavailable("gateway", "it does not answer"), 0),
        (EngineUnavailable("it does not answer"), 0),
        (EndedBetweenLooks("it ended", 3, 1), 3),
        (OutcomeUnknown("gateway", "no answer came"), 10),
        (ServiceFailed("dp_service", "the service failed"), 0),
        (ServiceFailed("gateway", "the gateway failed"), 10),
        (IntegrityError("not to be trusted"), 10),
        (asyncio.CancelledError(), 10),
        (RuntimeError("the client was closed"), 10),
    ],
)
async def test_what_ended_without_a_result_counts_as_far_as_it_may_be_charged(
    error: BaseException, counted: int
) -> None:
    """Nothing where nothing was, all where nobody knows."""
    asking = Asking(10)
    with pytest.raises(type(error)):
        await asking.ask(10, ends=error)
    assert await asking.ask(10 - counted) is RESULT
    await refused(asking.ask(1))


async def test_a_lower_max_cost_decides_first() -> None:
    """With its own field; what it refuses holds no room."""
    asking = Asking(10)
    with pytest.raises(InvalidQuestion) as refusal:
        await asking.ask(8, most=7)
    assert (refusal.value.field, asking.limits) == ("max_cost", [0])
    assert await asking.ask(8, most=7, charged=0) is RESULT
    assert await asking.ask(10, most=10) is RESULT


@pytest.mark.parametrize("units", [-1, 2**63, True, 1.5, float("nan"), "3", "\uff13", None, Cost(1, 0, "u")])
def test_a_limit_that_is_no_number_of_units_is_refused_by_name(units: Any) -> None:
    """Whatever it is."""
    with pytest.raises(InvalidQuestion, match="max_per_hour: expected a whole number of information units"):
        SpendingGuard(units)


def test_threads_that_share_a_client_spend_no_more_than_the_limit_together(world: World) -> None:
    """What runs holds its price; who finds no room is refused before the engine is asked, repeats are given."""
    with closing(Counted(world.tables)) as engine:
        questions = [structured_question("feedback", "article_id", k=k) for k in (5, 6, 7, 8, 9, 10, 11, 12)]
        account = new_account()
        with blocking_client_of(world, engine, account=account, max_per_hour=40) as client:

            def asked(question: Any) -> int | None:
                try:
                    return client.ask(question).charged.information
                except InvalidQuestion:
                    return None

            with ThreadPoolExecutor(8) as threads:
                charged = list(threads.map(asked, questions * 2))
            level = client.remaining()[-1]
            answered = [each for each in charged if each]
            assert level.spent.information == sum(answered) <= 40
            assert None in charged
            runs = engine.runs
            assert runs <= len(answered)
            again = [asked(question) for question in questions]
            assert again.count(0) >= len(answered)
            assert sum(each or 0 for each in again) + sum(answered) <= 40


async def test_questions_and_results_of_a_client_without_a_guard_are_not_priced_first(world: World) -> None:
    """And with one, both kinds of client say the same of SQL and of a structured question."""
    with closing(Counted(world.tables)) as engine:
        async with AsyncPrivateClient(
            dp=world.dp, budget=world.budget, account=new_account(), engine=engine, max_per_hour=0
        ) as client:
            for asked in (
                client.top_k("feedback", "article_id", 3),
                client.total("feedback"),
                client.sql("SELECT COUNT(DISTINCT member_id) FROM feedback"),
            ):
                assert "refused at any time" in await refused(asked)
            assert (await client.sql("EXPLAIN SELECT COUNT(DISTINCT member_id) FROM feedback")).explanation
            assert engine.runs == 0


async def test_each_of_many_who_ask_has_a_guard_until_what_was_spent_counts_no_longer() -> None:
    """However many others ask meanwhile; one that nothing counts of any longer is forgotten."""
    asking = Asking(10)
    guards = SpendingGuards(10, lambda: asking.now)
    asking.guard = guards.of("first")
    await asking.ask(8)
    for number in range(5000):
        assert guards.of(f"other {number}") is not asking.guard
    assert guards.of("first") is asking.guard
    asking.now += 3601
    assert asking.guard.is_idle
    for number in range(20_000):
        guards.of(f"later {number}")
    assert guards.of("first") is not asking.guard
