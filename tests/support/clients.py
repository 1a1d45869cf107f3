"""What tests of failures share: an engine that can be spoilt, a client in a hurry, and a look at the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import grpc
from gris_api.dp.v1 import dp_pb2

from pinot_connector import AsyncPrivateClient, PrivateClient, Timeouts
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine, EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore

from .embedded import UNHURRIED
from .world import World, new_account

# Long silences: a machine that is busy with tests is not a ledger that is dead.
SHORT = Timeouts(dp=5, engine=5, budget_attempt=2.0, budget=4.0, budget_silence=5, reservation=10)


class Serving(Protocol):
    """Where both services are."""

    @property
    def dp(self) -> str:
        """The address of dp_service."""

    @property
    def budget(self) -> str:
        """The address of budget_service."""


Place = Serving | EmbeddedServices | str
"""Both services: of a world, of a test's own, or behind one address."""


def _addresses(place: Place) -> tuple[str, str]:
    if isinstance(place, str):
        return place, place
    if isinstance(place, EmbeddedServices):
        return place.dp_address, place.budget_address
    return place.dp, place.budget


def client_of(
    place: Place, engine: Engine, *, account: str | Sequence[str] = "", **options: Any
) -> AsyncPrivateClient:
    """Return a client with an account of its own unless one is named."""
    dp, budget = _addresses(place)
    return AsyncPrivateClient(
        dp=dp, budget=budget, account=account or new_account(), engine=engine, **options
    )


def blocking_client_of(
    place: Place, engine: Engine, *, account: str | Sequence[str] = "", **options: Any
) -> PrivateClient:
    """Return a client for ordinary code, with an account of its own unless one is named."""
    dp, budget = _addresses(place)
    return PrivateClient(dp=dp, budget=budget, account=account or new_account(), engine=engine, **options)


Corruption = Callable[[EngineAnswer], EngineAnswer]


class Counted(DuckDBEngine):
    """DuckDB that writes its queries down."""

    def __init__(self, tables: Mapping[str, Path | str]) -> None:
        super().__init__(tables)
        self.queries: list[str] = []

    @property
    def runs(self) -> int:
        """How many there were."""
        return len(self.queries)

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers as DuckDB does."""
        self.queries.append(query.sql)
        return super().run(query, data_version)


class Corrupting(DuckDBEngine):
    """DuckDB whose answers are changed on their way, or whose runs do something besides."""

    def __init__(self, world: World, change: Corruption) -> None:
        super().__init__(world.tables)
        self._change = change

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers with the changed answer."""
        return self._change(super().run(query, data_version))


@asynccontextmanager
async def asking_client(
    world: World,
    engine: Engine,
    *,
    dp: str = "",
    budget: str = "",
    account: str = "",
    timeouts: Timeouts = SHORT,
) -> AsyncIterator[AsyncPrivateClient]:
    """Gives a client with short time-outs, a store and, unless one is named, an account of its own."""
    async with AsyncPrivateClient(
        dp=dp or world.dp,
        budget=budget or world.budget,
        account=account or new_account(),
        engine=engine,
        timeouts=timeouts,
        releases=MemoryReleaseStore(),
    ) as client:
        yield client


@contextmanager
def own_client(
    services: EmbeddedServices, tables: Mapping[str, Path], *, account: str = "", **options: Any
) -> Iterator[PrivateClient]:
    """Give a client that asks DuckDB, with an account of its own unless one is named."""
    engine = DuckDBEngine(tables)
    with blocking_client_of(services, engine, account=account, **{"timeouts": UNHURRIED} | options) as client:
        yield client
    engine.close()


async def untouched(client: AsyncPrivateClient) -> bool:
    """Tells whether the account itself has spent nothing and holds nothing; others share the levels above it."""
    level = (await client.remaining())[-1]
    amounts = (level.spent.information, level.spent.calls, level.reserved.information, level.reserved.calls)
    return amounts == (0, 0, 0, 0)


async def translation_of(request: bytes, world: World) -> dp_pb2.TranslateQueryResponse:
    """Returns what dp_service answers to a recorded request."""
    async with grpc.aio.insecure_channel(world.dp) as channel:
        translate: Any = channel.unary_unary("/gris.dp.v1.DpService/TranslateQuery")
        return dp_pb2.TranslateQueryResponse.FromString(await translate(request))
