"""Whatever fails, there is no result, and what was reserved is given back; replies that are lost are repeated."""

from __future__ import annotations

import asyncio
import datetime
import threading
from itertools import pairwise

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2

from pinot_connector import AsyncPrivateClient, Timeouts
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    ChargedUnanswered,
    EngineUnavailable,
    GrisError,
    InvalidQuestion,
    OutcomeUnknown,
    RefusedByPolicy,
    ServiceFailed,
    ServiceUnavailable,
)
from tests.support.clients import Corrupting, asking_client, client_of, untouched
from tests.support.ports import free_port
from tests.support.relay import Swallower, relayed
from tests.support.world import World, new_account


async def test_a_dead_engine_gives_the_reservation_back(world: World) -> None:
    """The engine's error is what the caller sees."""

    def die(_: EngineAnswer) -> EngineAnswer:
        raise EngineUnavailable("gone")

    engine = Corrupting(world, die)
    async with asking_client(world, engine) as client:
        with pytest.raises(EngineUnavailable, match="gone"):
            await client.top_k("feedback", "article_id", 5)
        assert await untouched(client)
    engine.close()


async def test_an_engine_that_hangs_is_left_after_its_time(world: World) -> None:
    """The question ends when the engine's time is over, whatever the engine does."""
    over = threading.Event()

    def hang(answer: EngineAnswer) -> EngineAnswer:
        over.wait(40)
        return answer

    engine = Corrupting(world, hang)
    client = client_of(world, engine, timeouts=Timeouts(engine=0.3))
    async with client:
        with pytest.raises(EngineUnavailable):
            await client.top_k("feedback", "article_id", 5)
        assert await untouched(client)
    over.set()
    engine.close()


async def test_a_refusal_of_the_ledger_does_not_wait_for_the_engine(world: World) -> None:
    """The two are asked at the same time, and the first failure ends both."""
    over = threading.Event()

    def hang(answer: EngineAnswer) -> EngineAnswer:
        over.wait(60)
        return answer

    engine = Corrupting(world, hang)
    try:
        async with asking_client(world, engine, account=new_account("poor")) as client:
            with pytest.raises(BudgetExhausted):
                async with asyncio.timeout(30):
                    await client.top_k("feedback", "article_id", 5)
            assert not over.is_set()
            assert await untouched(client)
    finally:
        over.set()
        engine.close()


async def test_a_dead_dp_service_is_unavailable(world: World, engine: DuckDBEngine) -> None:
    """Without translation nothing is reserved."""
    async with asking_client(world, engine, dp=f"127.0.0.1:{free_port()}") as client:
        with pytest.raises(ServiceUnavailable) as raised:
            await client.top_k("feedback", "article_id", 5)
        assert raised.value.service == "dp_service"
        assert await untouched(client)


async def test_a_dead_budget_service_means_no_noise(world: World, engine: DuckDBEngine) -> None:
    """The engine is asked at the same time, and its answer is thrown away."""
    async with relayed(world) as relay:
        dead = f"127.0.0.1:{free_port()}"
        async with asking_client(world, engine, dp=relay.address, budget=dead) as client:
            with pytest.raises(ServiceUnavailable) as raised:
                await client.top_k("feedback", "article_id", 5)
        assert raised.value.service == "budget_service"
        assert {"TranslateQuery"} == set(relay.methods)


async def test_an_engine_that_is_to_be_spared_is_not_asked_without_a_budget(world: World) -> None:
    """The policy says reserve_first: no budget answer, no query."""

    def never(_: EngineAnswer) -> EngineAnswer:
        raise AssertionError("the engine was asked without a budget")

    engine = Corrupting(world, never)
    async with asking_client(world, engine, budget=f"127.0.0.1:{free_port()}") as client:
        with pytest.raises(ServiceUnavailable) as raised:
            await client.histogram("small", "element")
        assert raised.value.service == "budget_service"
    engine.close()


async def test_noise_that_fails_gives_the_reservation_back(world: World, engine: DuckDBEngine) -> None:
    """dp_service dies between translation and noise."""
    async with relayed(world) as relay:
        relay.refusals["AddNoiseUnary"] = grpc.StatusCode.UNAVAILABLE
        async with asking_client(world, engine, dp=relay.address) as client:
            with pytest.raises(ServiceUnavailable):
                await client.top_k("feedback", "article_id", 5)
            assert await untouched(client)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("TranslateQuery", ServiceFailed),
        ("AddNoiseUnary", ChargedUnanswered),
        ("ReserveBudget", ServiceFailed),
        ("UpdateBudget", OutcomeUnknown),
    ],
)
async def test_a_service_that_fails_says_so(
    world: World, engine: DuckDBEngine, method: str, expected: type[GrisError]
) -> None:
    """A charge may have happened all the same, and one that adds noise is charged; everything else costs nothing."""
    async with relayed(world) as relay:
        relay.faults.add(method)
        async with asking_client(world, engine, dp=relay.address, budget=relay.address) as client:
            with pytest.raises(expected, match="the service failed"):
                await client.top_k("feedback", "article_id", 5)


async def test_what_may_have_happened_once_stays_unknown(world: World, engine: DuckDBEngine) -> None:
    """The first answer was lost; that a later repeat had no effect says nothing about the first."""
    async with relayed(world) as relay:
        relay.refusals["UpdateBudget"] = grpc.StatusCode.UNAVAILABLE
        async with asking_client(world, engine, budget=relay.address) as client:
            asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
            await relay.called("UpdateBudget", times=2)
            relay.refusals["UpdateBudget"] = grpc.StatusCode.RESOURCE_EXHAUSTED
            with pytest.raises(OutcomeUnknown):
                await asking


async def test_a_charge_that_is_never_answered_is_an_unknown_outcome(
    world: World, engine: DuckDBEngine
) -> None:
    """The charge is repeated with one id until its time is over; then there is no result."""
    async with relayed(world) as relay:
        relay.refusals["UpdateBudget"] = grpc.StatusCode.UNAVAILABLE
        async with asking_client(world, engine, budget=relay.address) as client:
            with pytest.raises(OutcomeUnknown):
                await client.top_k("feedback", "article_id", 5)
            assert await untouched(client)
        assert len(relay.requests("UpdateBudget")) > 1
        assert len(set(relay.requests("UpdateBudget"))) == 1


async def test_an_exhausted_account_is_told_what_is_missing(world: World, engine: DuckDBEngine) -> None:
    """Every shortfall names its level, its unit, what was asked and what is left; nothing is held."""
    account = new_account("poor")
    async with asking_client(world, engine, account=account) as client:
        with pytest.raises(BudgetExhausted) as raised:
            await client.top_k("feedback", "article_id", 5)
        (shortfall,) = raised.value.shortfalls
        assert tuple(account.split("/")) == shortfall.level
        assert (shortfall.unit, shortfall.requested, shortfall.remaining) == ("information", 11, 5)
        assert shortfall.refreshes_at is not None
        assert await untouched(client)


async def test_an_exhausted_account_can_read_what_it_has_paid_for(world: World, engine: DuckDBEngine) -> None:
    """An answer that was paid for stays free when the budget is gone."""
    async with asking_client(world, engine, account=new_account("poor")) as client:
        paid = await client.histogram("feedback", "cohort")
        with pytest.raises(BudgetExhausted):
            await client.top_k("feedback", "article_id", 1, time_range=(None, None), where={"score": 1})
        assert paid.rows == (await client.histogram("feedback", "cohort")).rows


async def test_an_unknown_account_may_ask_nothing(world: World, engine: DuckDBEngine) -> None:
    """Nobody gave it a budget."""
    async with asking_client(world, engine, account="stranger") as client:
        with pytest.raises(AccountUnknown):
            await client.top_k("feedback", "article_id", 5)


async def test_the_policy_refuses_and_nothing_is_reserved(world: World, engine: DuckDBEngine) -> None:
    """The privacy unit in a filter, and a table that is not there."""
    async with asking_client(world, engine) as client:
        with pytest.raises(RefusedByPolicy):
            await client.top_k("feedback", "article_id", 5, where={"member_id": "x"})
        with pytest.raises((RefusedByPolicy, InvalidQuestion)):
            await client.top_k("nothing", "article_id", 5)
        assert await untouched(client)


async def test_a_malformed_question_names_its_field(client: AsyncPrivateClient) -> None:
    """Wrong SQL and a wrong k are the caller's mistakes."""
    with pytest.raises(GrisError):
        await client.sql("SELECT")
    with pytest.raises(InvalidQuestion) as raised:
        await client.top_k("feedback", "article_id", 0)
    assert raised.value.field == "k"


async def test_a_release_that_fails_hides_no_error(world: World) -> None:
    """If giving back fails, the reservation lapses by itself; the caller sees what went wrong first."""

    def die(_: EngineAnswer) -> EngineAnswer:
        raise EngineUnavailable("gone")

    engine = Corrupting(world, die)
    async with relayed(world) as relay:
        relay.refusals["ReleaseReservation"] = grpc.StatusCode.UNAVAILABLE
        async with asking_client(world, engine, budget=relay.address) as client:
            with pytest.raises(EngineUnavailable, match="gone"):
                await client.top_k("feedback", "article_id", 5)
    engine.close()


async def test_many_questions_at_once_each_have_their_own_reservation(
    world: World, engine: DuckDBEngine
) -> None:
    """Twenty different questions together: all answered, all charged, nothing held."""
    async with asking_client(world, engine) as client:
        days = [datetime.date(2019, 3, day) for day in range(1, 22)]
        results = await asyncio.gather(
            *(client.top_k("feedback", "score", 1, time_range=pair) for pair in pairwise(days))
        )
        levels = await client.remaining()
    assert len({result.release_id for result in results}) == 20
    assert (levels[-1].spent.information, levels[-1].reserved.information) == (40, 0)


class _Arming(DuckDBEngine):
    """DuckDB that has the next replies swallowed once its answer is confirmed: the charge is the next call."""

    def __init__(self, world: World, swallower: Swallower, replies: int) -> None:
        super().__init__(world.tables)
        self._swallower = swallower
        self._replies = replies

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        super().confirm(query, answer)
        self._swallower.swallow(self._replies)


async def test_a_charge_whose_reply_is_lost_is_repeated_and_charged_once(world: World) -> None:
    """Twice the ledger has charged and the line breaks; the third time the same answer arrives."""
    async with relayed(world) as relay, Swallower(relay.address).listening() as swallower:
        engine = _Arming(world, swallower, replies=2)
        async with AsyncPrivateClient(
            dp=world.dp,
            budget=swallower.address,
            account=new_account(),
            engine=engine,
            timeouts=Timeouts(budget_attempt=1.0),
        ) as client:
            result = await client.top_k("feedback", "article_id", 5)
            levels = await client.remaining()
        engine.close()
        charges = [budget_pb2.UpdateBudgetRequest.FromString(each) for each in relay.requests("UpdateBudget")]
        assert swallower.swallowed == 2
        assert len(charges) == 3
        assert len({charge.request_id for charge in charges}) == 1
        assert result.cost == result.charged == levels[-1].spent
        assert (levels[-1].reserved.information, levels[-1].reserved.calls) == (0, 0)
