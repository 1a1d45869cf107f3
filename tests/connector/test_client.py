"""What a client refuses by itself: arguments that cannot be, and questions after its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from pinot_connector import AsyncPrivateClient, PrivateClient
from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import InvalidQuestion
from tests.support.clients import Corrupting
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
    client = PrivateClient(
        dp=world.dp, budget=world.budget, account=new_account(), engine=engine, confidence=0.75
    )
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
    client = PrivateClient(dp=world.dp, budget=world.budget, account=new_account(), engine=engine)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        use(client)


@pytest.mark.parametrize("use", _USES)
async def test_a_closed_asynchronous_client_says_so(
    world: World, engine: DuckDBEngine, use: Callable[[Any], Any]
) -> None:
    """The same words, and not those of gRPC or of a thread pool."""
    client = AsyncPrivateClient(dp=world.dp, budget=world.budget, account=new_account(), engine=engine)
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
        over.wait(10)
        return answer

    def ask() -> None:
        with pytest.raises(RuntimeError) as raised:
            client.top_k("feedback", "article_id", 5)
        reported.append(str(raised.value))

    engine = Corrupting(world, wait)
    client = PrivateClient(dp=world.dp, budget=world.budget, account=new_account(), engine=engine)
    asking = threading.Thread(target=ask)
    asking.start()
    reached.wait(10)
    client.close()
    asking.join(10)
    over.set()
    assert ["the client was closed before there was an answer"] == reported
    engine.close()
