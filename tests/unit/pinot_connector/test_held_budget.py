"""Budget that other questions hold is waited for, in order, and nothing is reserved twice or left behind."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from gris_api.dp.v1 import question_pb2

from pinot_connector import AsyncPrivateClient, structured_question, telemetry
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetHeld
from pinot_connector.held_budgets import HeldQueue, HeldQueues
from tests.support.clients import untouched
from tests.support.relay import relayed
from tests.support.world import World, new_account
from tests.unit.pinot_connector.held_budget import POOR, WAITING, held_account


@asynccontextmanager
async def client_of(
    world: World, engine: DuckDBEngine, account: str, *, budget: str = "", held_seconds: float = 20.0
) -> AsyncIterator[AsyncPrivateClient]:
    """Gives a client that waits so long for held budget."""
    timeouts = replace(WAITING, budget_held=held_seconds)
    async with AsyncPrivateClient(
        dp=world.dp, budget=budget or world.budget, account=account, engine=engine, timeouts=timeouts
    ) as client:
        yield client


def _cohorts() -> question_pb2.Question:
    return structured_question("feedback", "cohort", k=None)


async def test_many_large_questions_at_once_of_a_fresh_account_are_all_answered(
    world: World, engine: DuckDBEngine
) -> None:
    """Their worst cases are more than the 3,000 units of the account, and what they cost is a few hundred."""
    days = [datetime.date(2019, 3, day) for day in range(1, 32)]
    async with client_of(world, engine, new_account()) as client:
        worst = await client.explain(
            "SELECT article_id, COUNT(DISTINCT member_id) AS c FROM feedback "
            "GROUP BY article_id ORDER BY c DESC LIMIT 1000"
        )
        assert 30 * worst.worst_case_cost.information > 2 * 3000
        results = await asyncio.gather(
            *(client.top_k("feedback", "article_id", 1000, time_range=each) for each in pairwise(days))
        )
        (*_, level) = await client.remaining()
    charged = sum(result.charged.information for result in results)
    assert len({result.release_id for result in results}) == 30
    assert (charged, 0) == (level.spent.information, level.reserved.information)


async def test_a_question_waits_for_budget_that_another_process_holds(
    world: World, engine: DuckDBEngine
) -> None:
    """One request is sent again and again, with growing pauses and by nobody else, until it is granted."""
    account = new_account(POOR)
    async with relayed(world) as relay, client_of(world, engine, account, budget=relay.address) as client:
        async with held_account(world, client, account) as holder:
            asking = asyncio.ensure_future(client.histogram("feedback", "cohort"))
            await relay.called("ReserveBudget", 3)
            assert not asking.done()
            await holder.free()
            assert (await asking).rows
        (*_, level) = await client.remaining()
    assert (1, 0) == (level.spent.information, level.reserved.information)
    assert len(set(relay.requests("ReserveBudget"))) == 1
    # By gRPC itself each of them would have been sent four times.
    assert len(relay.requests("ReserveBudget")) < 30


async def test_a_question_that_waited_in_vain_says_that_the_budget_is_held(
    world: World, engine: DuckDBEngine
) -> None:
    """Not that it is exhausted; and soon after its time-out, with nothing left behind."""
    account = new_account(POOR)
    async with (
        client_of(world, engine, account, held_seconds=0.5) as client,
        held_account(world, client, account) as holder,
    ):
        asked = [client.histogram("feedback", "cohort"), client.top_k("feedback", "score", 1)]
        async with asyncio.timeout(15):
            errors = await asyncio.gather(*asked, return_exceptions=True)
        assert [BudgetHeld, BudgetHeld] == [type(each) for each in errors]
        assert "questions that run now hold the budget, which is not exhausted" in str(errors[0])
        # The ledger is not dead: nothing is refused for that.
        assert await client.remaining()
        await holder.free()
        assert await untouched(client)
        assert (await client.histogram("feedback", "cohort")).rows


@pytest.mark.parametrize("wait_seconds", [0.0, 0.3])
async def test_a_caller_may_wait_for_less_than_the_time_out(
    world: World, engine: DuckDBEngine, wait_seconds: float
) -> None:
    """As a gateway does whose caller has a deadline."""
    account = new_account(POOR)
    question = _cohorts()
    async with (
        client_of(world, engine, account, held_seconds=20) as client,
        held_account(world, client, account),
        asyncio.timeout(15),
    ):
        with pytest.raises(BudgetHeld):
            await client.ask(question, wait_seconds=wait_seconds)


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_a_caller_who_leaves_while_waiting_leaves_nothing_behind(
    world: World, engine: DuckDBEngine, attempts: int
) -> None:
    """While a request is under way, or between two; and the next in the queue goes on."""
    account = new_account(POOR)
    async with relayed(world) as relay, client_of(world, engine, account, budget=relay.address) as client:
        async with held_account(world, client, account) as holder:
            leaving = asyncio.ensure_future(client.top_k("feedback", "score", 1))
            await relay.called("ReserveBudget", attempts)
            staying = asyncio.ensure_future(client.histogram("feedback", "cohort"))
            await asyncio.sleep(0.02)
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            await holder.free()
            assert (await staying).rows
        (*_, level) = await client.remaining()
    assert (1, 0) == (level.spent.information, level.reserved.information)


async def test_a_caller_who_leaves_at_any_moment_leaves_nothing_behind(
    world: World, engine: DuckDBEngine
) -> None:
    """Also at the one at which the budget becomes free."""
    async with client_of(world, engine, new_account(POOR)) as client:
        for step in range(20):
            account = new_account(POOR)
            async with held_account(world, client, account) as holder:
                asking_client = client.on_behalf_of(account.split("/"))
                asking = asyncio.ensure_future(asking_client.histogram("feedback", "cohort"))
                await asyncio.sleep(0.1)
                await holder.free()
                await asyncio.sleep(0.004 * step)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                (*_, level) = await asking_client.remaining()
                assert level.reserved.information == 0
                assert level.spent.information in (0, 1)


async def test_questions_are_granted_in_the_order_in_which_they_came() -> None:
    """A later one does not overtake, though its attempt might succeed."""
    queue, granted, room = HeldQueue(), list[int](), asyncio.Semaphore(0)
    deadline = asyncio.get_running_loop().time() + 20

    async def ask(number: int) -> None:
        async def attempt() -> None:
            await asyncio.sleep(0)
            if room.locked():
                raise BudgetHeld(())
            await room.acquire()
            granted.append(number)

        await queue.granted(attempt, deadline)

    asking = []
    for number in range(6):
        asking.append(asyncio.ensure_future(ask(number)))
        await asyncio.sleep(0.01)
    assert not queue.is_empty
    for _ in asking:
        room.release()
        queue.wake()
        await asyncio.sleep(0.005)
    await asyncio.gather(*asking)
    assert granted == list(range(6))
    assert queue.is_empty


async def test_what_ends_below_a_root_wakes_those_who_wait_there() -> None:
    """At once rather than after a pause; other roots are left alone."""
    queues = HeldQueues()
    mine, theirs = queues.of(("acme", "ann")), queues.of(("other", "ann"))
    attempts = dict.fromkeys((mine, theirs), 0)

    async def ask(queue: HeldQueue) -> None:
        async def attempt() -> None:
            attempts[queue] += 1
            raise BudgetHeld(())

        await queue.granted(attempt, asyncio.get_running_loop().time() + 20)

    asking = [asyncio.ensure_future(ask(each)) for each in (mine, theirs)]
    for _ in range(50):
        await asyncio.sleep(0)
        queues.freed(("acme", "bob"))
    assert attempts[mine] > 10 > attempts[theirs]
    for each in asking:
        each.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


@dataclass
class Waits:
    """Counts what telemetry reports of waits."""

    outcomes: list[str] = field(default_factory=list)

    def question(self, outcome: str, seconds: float) -> None:
        """Not what this is about."""

    def engine_call(self, engine: str, step: str, outcome: str) -> None:
        """Not what this is about."""

    def release_lookup(self, outcome: str) -> None:
        """Not what this is about."""

    def budget_wait(self, outcome: str, seconds: float) -> None:
        """Notes the outcome."""
        assert seconds > 0
        self.outcomes.append(outcome)


async def test_waits_are_counted_by_how_they_end(world: World, engine: DuckDBEngine) -> None:
    """In vain, or answered; who need not wait is not counted."""
    account, waits = new_account(POOR), Waits()
    with telemetry.recorded_by(waits):
        async with client_of(world, engine, account) as client:
            async with held_account(world, client, account) as holder:
                with pytest.raises(BudgetHeld):
                    await client.ask(_cohorts(), wait_seconds=0.2)
                asking = asyncio.ensure_future(client.ask(_cohorts()))
                await asyncio.sleep(0.2)
                await holder.free()
                await asking
            assert waits.outcomes == ["budget_held", "answered"]
            await client.ask(_cohorts())
    assert len(waits.outcomes) == 2
