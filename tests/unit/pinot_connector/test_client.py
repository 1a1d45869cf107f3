"""What a client refuses by itself, and the confidence that each question has for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pinot_connector import AsyncPrivateClient, PrivateClient, structured_question
from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import InvalidQuestion
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore
from pinot_connector.results import PrivateResult
from tests.support.clients import Corrupting, Counted, blocking_client_of, client_of
from tests.support.world import World, new_account


@pytest.mark.parametrize("kind", [AsyncPrivateClient, PrivateClient])
@pytest.mark.parametrize("confidence", [0, 0.0, 0.5, 1.0, 1, -0.95, 95.0, float("nan"), "0.95", True, None])
async def test_a_confidence_that_cannot_be_is_refused_at_construction(
    world: World, engine: DuckDBEngine, kind: Callable[..., object], confidence: Any
) -> None:
    """0 above all, which a message would turn into 0.95."""
    with pytest.raises(InvalidQuestion) as raised:
        kind(dp=world.dp, budget=world.budget, account="t/a", engine=engine, confidence=confidence)
    assert "confidence" == raised.value.field


def test_the_confidence_that_was_asked_for_is_the_results(world: World, engine: DuckDBEngine) -> None:
    """Every number strictly between 0.5 and 1 is one."""
    client = blocking_client_of(world, engine, confidence=0.75)
    with client:
        assert 0.75 == client.top_k("feedback", "score", 1).confidence


@pytest.mark.parametrize("kind", [AsyncPrivateClient, PrivateClient])
@pytest.mark.parametrize("account", ["t/\ud83d", ("t", "\ud83d"), ("t", 7), b"t/a", 7])
async def test_an_account_that_no_message_can_hold_is_refused_at_construction(
    world: World, engine: DuckDBEngine, kind: Callable[..., object], account: Any
) -> None:
    """The field is named, and no thread is left behind."""
    with pytest.raises(InvalidQuestion) as raised:
        kind(dp=world.dp, budget=world.budget, account=account, engine=engine)
    assert "account" == raised.value.field
    assert "gris-client" not in {thread.name for thread in threading.enumerate()}


_USES: list[Callable[[Any], Any]] = [
    lambda client: client.top_k("feedback", "score", 1),
    lambda client: client.explain("SELECT"),
    lambda client: client.remaining(),
]


@pytest.mark.parametrize("use", _USES)
def test_a_closed_client_says_so(world: World, engine: DuckDBEngine, use: Callable[[Any], Any]) -> None:
    """In its own words, and without a coroutine that nobody awaits."""
    client = blocking_client_of(world, engine)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        use(client)


@pytest.mark.parametrize("use", _USES)
async def test_a_closed_asynchronous_client_says_so(
    world: World, engine: DuckDBEngine, use: Callable[[Any], Any]
) -> None:
    """The same words, and not those of gRPC or of a thread pool."""
    client = client_of(world, engine)
    await client.close()
    await client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        await use(client)


def test_whoever_waits_for_a_client_that_is_closed_is_told(world: World) -> None:
    """Another thread's question ends with the client instead of waiting for ever."""
    reached, over = threading.Event(), threading.Event()
    reported: list[str] = []

    def wait(answer: EngineAnswer) -> EngineAnswer:
        reached.set()
        over.wait(40)
        return answer

    def ask() -> None:
        with pytest.raises(RuntimeError) as raised:
            client.top_k("feedback", "article_id", 5)
        reported.append(str(raised.value))

    engine = Corrupting(world, wait)
    client = blocking_client_of(world, engine)
    asking = threading.Thread(target=ask)
    asking.start()
    reached.wait(40)
    client.close()
    asking.join(40)
    over.set()
    assert ["the client was closed before there was an answer"] == reported
    engine.close()


QUESTION = structured_question("feedback", "app", k=None)
LOW, OWN, HIGH = 0.6, 0.98, 0.9999999


@asynccontextmanager
async def asking(
    world: World, store: ReleaseStore | None = None
) -> AsyncIterator[tuple[AsyncPrivateClient, Counted]]:
    """Give a client with a confidence of its own, and its engine."""
    engine = Counted(world.tables)
    async with client_of(world, engine, confidence=OWN, releases=store or MemoryReleaseStore()) as client:
        yield client, engine
    engine.close()


def widths(result: PrivateResult) -> set[int]:
    """Return how wide the intervals are."""
    return {row.interval[-1] - row.interval[0] for row in result.rows if row.interval}


@pytest.mark.parametrize("order", [(LOW, HIGH), (HIGH, LOW)])
async def test_one_release_is_shown_with_two_confidences_for_one_price(
    world: World, order: tuple[float, float]
) -> None:
    """Counts are the same, intervals are not, and a repeat of either is what it was; the engine is asked once."""
    async with asking(world) as (client, engine):
        shown = {each: await client.ask(QUESTION, confidence=each) for each in order}
        own = await client.ask(QUESTION)
        again = {each: await client.ask(QUESTION, confidence=each) for each in order}
        spent = (await client.remaining())[-1].spent.information
    assert engine.runs == 1
    first, second = (shown[each] for each in order)
    assert first.charged.information == spent > 0
    assert second.charged.information == own.charged.information == 0
    assert [each.confidence for each in (first, second, own)] == [*order, OWN]
    assert {each.release_id for each in (first, second, own)} == {first.release_id}
    assert [row.noisy_count for row in first.rows] == [row.noisy_count for row in second.rows]
    assert max(widths(shown[LOW])) < min(widths(own)) <= max(widths(own)) < min(widths(shown[HIGH]))
    assert {each: result.rows for each, result in again.items()} == {
        each: result.rows for each, result in shown.items()
    }
    assert [result.confidence for result in again.values()] == list(order)


async def test_questions_at_once_with_two_confidences_are_shown_each_with_its_own(world: World) -> None:
    """Of one account and of two: they wait for one release, and pay as if they had asked one after the other."""
    store = MemoryReleaseStore()
    async with asking(world, store) as (client, engine):
        other = client.on_behalf_of(new_account().split("/"))
        asked = [(each, confidence) for each in (client, other) for confidence in (LOW, HIGH)]
        results = await asyncio.gather(
            *(each.ask(QUESTION, confidence=confidence) for each, confidence in asked)
        )
    assert [result.confidence for result in results] == [confidence for _, confidence in asked]
    assert max(widths(results[0])) < min(widths(results[1]))
    assert [result.rows for result in results[:2]] == [result.rows for result in results[2:]]
    paid = [result.charged.information for result in results]
    assert sorted(paid[:2]) == sorted(paid[2:])
    assert [min(paid[:2]), engine.runs] == [0, 1]


@pytest.mark.parametrize("confidence", [0.5, 1.0, 0.0, -0.9, 95.0, float("nan"), float("inf"), 1])
async def test_what_is_no_confidence_is_refused_by_name(world: World, confidence: float) -> None:
    """The refusal says what was expected and what it got; nothing is asked."""
    async with asking(world) as (client, engine):
        with pytest.raises(
            InvalidQuestion, match=f"strictly between 0.5 and 1, got {confidence!r}"
        ) as refused:
            await client.ask(QUESTION, confidence=confidence)
    assert refused.value.field == "confidence"
    assert engine.runs == 0


async def test_a_question_that_may_cost_more_than_allowed_is_refused_before_anything_is_asked(
    world: World,
) -> None:
    """Its price is named; what is paid for stays free."""
    async with asking(world) as (client, engine):
        price = (await client.explain(QUESTION)).worst_case_cost.information
        with pytest.raises(InvalidQuestion, match=f"may cost {price} information units") as refused:
            await client.ask(QUESTION, max_cost=price - 1)
        assert ("max_cost", 0, 0) == (
            refused.value.field,
            engine.runs,
            (await client.remaining())[-1].spent.information,
        )
        paid = await client.ask(QUESTION, max_cost=price)
        again = await client.ask(QUESTION, max_cost=0)
    assert (price, 0) == (paid.charged.information, again.charged.information)


@pytest.mark.parametrize("max_cost", [-1, 2**63, True, 1.5, "3"])
async def test_what_is_no_price_is_refused_by_name(world: World, max_cost: Any) -> None:
    """Before anything is asked."""
    async with asking(world) as (client, _):
        for asked in (
            client.ask(QUESTION, max_cost=max_cost),
            client.top_k("feedback", "article_id", 3, max_cost=max_cost),
            client.histogram("feedback", "app", max_cost=max_cost),
            client.total("feedback", max_cost=max_cost),
            client.sql("SELECT COUNT(*) FROM feedback", max_cost=max_cost),
        ):
            with pytest.raises(InvalidQuestion, match="max_cost: expected a whole number of information"):
                await asked
