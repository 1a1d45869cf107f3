"""Equal questions at once cost the engine one query, and each account its own charge."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from gris_api.budget.v1 import budget_pb2

from pinot_connector import AsyncPrivateClient, Timeouts
from pinot_connector.engine_calls import MAX_ENGINE_CALLS, EngineCalls
from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, ExpectedColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted, EngineUnavailable
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.release_store.interface import Account, Found
from tests.support.clients import client_of
from tests.support.relay import Relay, relayed
from tests.support.world import World, new_account, write_growing

VIEWERS = 40
# So many calls at once on a busy machine are no sign of a dead service.
LONG_TIMEOUTS = Timeouts(dp=20, engine=30, budget_attempt=20, budget=30, budget_silence=30)
YEARS = (datetime.date(2018, 1, 1), datetime.date(2020, 1, 1))


class Gated(DuckDBEngine):
    """DuckDB that answers once it is let, and counts its queries."""

    def __init__(self, tables: dict[str, Path | str]) -> None:
        super().__init__(tables)
        self.runs = 0
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Counts, waits, and answers."""
        self.runs += 1
        self.has_begun.set()
        assert self.may_end.wait(30)
        return super().run(query, data_version)


@dataclass
class Dashboard:
    """A client, its engine, and what it says to the services."""

    client: AsyncPrivateClient
    engine: Gated
    relay: Relay

    def viewer(self, account: str) -> AsyncPrivateClient:
        """Returns a client on whose questions the account pays."""
        return self.client.on_behalf_of(account.split("/"))

    async def begun(self) -> None:
        """Returns once the engine has a query."""
        assert await asyncio.to_thread(self.engine.has_begun.wait, 30)


@asynccontextmanager
async def dashboard(
    world: World, folder: Path, store: MemoryReleaseStore | None = None
) -> AsyncIterator[Dashboard]:
    """Gives a client of a table whose closed periods fix its version."""
    write_growing(folder / "growing.parquet", members=1000)
    engine = Gated({"growing": folder / "growing.parquet"})
    async with (
        relayed(world) as relay,
        client_of(
            relay.address, engine, timeouts=LONG_TIMEOUTS, releases=store or MemoryReleaseStore()
        ) as client,
    ):
        yield Dashboard(client, engine, relay)
    engine.may_end.set()
    engine.close()


async def test_many_viewers_cost_one_query_and_a_charge_each(world: World, tmp_path: Path) -> None:
    """Everybody is shown the same release, which dp_service draws once and signs twice."""
    async with dashboard(world, tmp_path) as board:
        viewers = [board.viewer(new_account()) for _ in range(VIEWERS)]
        asking = [asyncio.ensure_future(each.histogram("growing", "element")) for each in viewers]
        await board.begun()
        board.engine.may_end.set()
        results = await asyncio.gather(*asking)
        spent = [(await each.remaining())[-1].spent.information for each in viewers]
        calls = Counter(board.relay.methods)
    assert 1 == board.engine.runs
    assert 1 == len({result.release_id for result in results})
    assert [result.charged.information for result in results] == spent == [1] * VIEWERS
    assert (VIEWERS, VIEWERS) == (calls["ReserveBudget"], calls["UpdateBudget"])
    # Only the one who draws it has the question translated for the engine's version, and is shown it with its noise.
    assert (2, 1, 1) == (calls["TranslateQuery"], calls["AddNoiseUnary"], calls["ShowRelease"])


async def test_an_account_that_asks_several_times_at_once_reserves_and_pays_once(
    world: World, tmp_path: Path
) -> None:
    """The others are given what it has paid for: they need no budget, which may hold the worst case only once."""
    async with dashboard(world, tmp_path) as board:
        asking = [asyncio.ensure_future(board.client.histogram("growing", "element")) for _ in range(5)]
        await board.begun()
        board.engine.may_end.set()
        results = await asyncio.gather(*asking)
        calls = Counter(board.relay.methods)
    assert [0, 0, 0, 0, 1] == sorted(result.charged.information for result in results)
    assert (1, 1) == (calls["ReserveBudget"], calls["UpdateBudget"])


async def test_who_waits_for_a_release_does_not_wait_for_the_charge_of_the_one_who_draws_it(
    world: World, tmp_path: Path
) -> None:
    """It is kept by then: the other account is shown it while the first charge is still under way."""
    async with dashboard(world, tmp_path) as board:
        asking = {
            account: asyncio.ensure_future(board.viewer(account).histogram("growing", "element"))
            for account in (new_account(), new_account())
        }
        await board.begun()
        board.relay.delays["UpdateBudget"] = 5
        board.engine.may_end.set()
        await board.relay.called("UpdateBudget")
        del board.relay.delays["UpdateBudget"]
        (charge,) = map(budget_pb2.UpdateBudgetRequest.FromString, board.relay.requests("UpdateBudget"))
        first = asking.pop("/".join(charge.account.path))
        (second,) = asking.values()
        await second
        assert not first.done()
        await first
    assert (1, first.result().rows) == (board.engine.runs, second.result().rows)


class Counted(MemoryReleaseStore):
    """A store that counts what is looked up; each look may be a round trip to a database."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    async def find(self, query_id: str, account: Account) -> Found | None:
        """Counts, and looks up."""
        self.looks += 1
        return await super().find(query_id, account)


async def test_a_new_question_makes_four_calls_and_looks_twice_for_what_is_kept(
    world: World, tmp_path: Path
) -> None:
    """Of the four, the reservation does not wait for the engine, nor the engine for it."""
    store = Counted()
    async with dashboard(world, tmp_path, store) as board:
        board.engine.may_end.set()
        await board.client.histogram("growing", "element", time_range=YEARS)
        before = len(board.relay.methods)
        board.engine.has_begun.clear()
        board.engine.may_end.clear()
        store.looks = 0
        asking = asyncio.ensure_future(board.client.histogram("growing", "element"))
        await board.begun()
        await asyncio.wait_for(board.relay.called("ReserveBudget", 2), 20)
        board.engine.may_end.set()
        await asking
        calls = board.relay.methods[before:]
    assert ["TranslateQuery", "ReserveBudget", "AddNoiseUnary", "UpdateBudget"] == calls
    assert 2 == store.looks


async def test_those_who_cannot_pay_cost_no_query_more(world: World, tmp_path: Path) -> None:
    """Each of them is refused and shown nothing; the one who can pay is answered from the query of the first."""
    async with dashboard(world, tmp_path) as board:
        board.engine.may_end.set()
        poor = [board.viewer(new_account("poor")) for _ in range(10)]
        for each in poor:
            await each.histogram("growing", "element", time_range=YEARS)
        before = board.engine.runs
        board.engine.may_end.clear()
        board.engine.has_begun.clear()
        rich = board.viewer(new_account())
        asking = [asyncio.ensure_future(each.histogram("growing", "element")) for each in (*poor, rich)]
        refused, _ = await asyncio.wait(asking[:-1], timeout=20)
        board.engine.may_end.set()
        assert (await asking[-1]).rows
    assert {BudgetExhausted} == {type(each.exception()) for each in refused}
    assert (10, before + 1) == (len(refused), board.engine.runs)


@pytest.mark.parametrize("leaving", [1, 5])
async def test_who_leaves_takes_nobody_with_them(world: World, tmp_path: Path, leaving: int) -> None:
    """The query that the first ones began answers those who stay, and nothing of theirs is charged or held."""
    async with dashboard(world, tmp_path) as board:
        viewers = [board.viewer(new_account()) for _ in range(10)]
        asking = [asyncio.ensure_future(each.histogram("growing", "element")) for each in viewers]
        await board.begun()
        for number, each in enumerate(asking[:leaving], start=1):
            each.cancel()
            # The one who reserves has asked the engine.
            await board.relay.called("ReserveBudget", number + 1)
        board.engine.may_end.set()
        left = await asyncio.gather(*asking[:leaving], return_exceptions=True)
        stayed = await asyncio.gather(*asking[leaving:])
        held = [(await each.remaining())[-1] for each in viewers[:leaving]]
    assert {asyncio.CancelledError} == set(map(type, left))
    assert 1 == len({result.release_id for result in stayed})
    assert {(0, 0)} == {(level.spent.information, level.reserved.information) for level in held}
    assert 1 == board.engine.runs


QUERY = EngineQuery("t", "SELECT ..", (ExpectedColumn("element", ColumnType.STRING),), 10)


class Blocked:
    """An engine that notes its calls, each of which ends when and how the test says."""

    dialect = "duckdb"

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.may_end = threading.Event()
        self.error: Exception | None = None

    def data_version(self, table: str) -> str:
        """Is not asked for."""
        raise AssertionError

    def check(self, query: EngineQuery) -> None:
        """Is not asked for."""
        raise AssertionError

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Waits, and answers or fails."""
        self._called("run", query.sql + data_version)
        return EngineAnswer((["a"],), [1], data_version)

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Waits, and confirms or fails."""
        self._called("confirm", query.sql)

    def close(self) -> None:
        """Has nothing to close."""

    def _called(self, step: str, what: str) -> None:
        self.calls.append((step, what))
        self.may_end.wait(30)
        if self.error is not None:
            raise self.error


@asynccontextmanager
async def blocked(seconds: float = 30) -> AsyncIterator[tuple[Blocked, EngineCalls]]:
    """Gives an engine, and its calls, which may take so long."""
    engine = Blocked()
    calls = EngineCalls(engine, seconds)
    try:
        yield engine, calls
    finally:
        engine.may_end.set()
        calls.close()


async def test_only_equal_queries_on_one_version_share_a_call_and_only_while_it_is_under_way() -> None:
    """Another text, limit or version is another call, and what has been answered is asked again."""
    async with blocked() as (engine, calls):
        asked = [
            (QUERY, "1"),
            (QUERY, "2"),
            (replace(QUERY, sql="SELECT other"), "1"),
            (replace(QUERY, row_limit=11), "1"),
        ]
        running = [asyncio.ensure_future(calls.run(*each)) for each in asked * 3]
        await asyncio.sleep(0.05)
        engine.may_end.set()
        answers = await asyncio.gather(*running)
        assert (4, 4) == (len(engine.calls), len(set(map(id, answers))))
        again = await calls.run(QUERY, "1")
        assert 5 == len(engine.calls)
        assert all(again is not each for each in answers)


async def test_a_queued_call_is_dropped_when_all_have_left_who_wanted_it() -> None:
    """So nobody can fill the queue and go; what one of them still waits for is run."""
    async with blocked() as (engine, calls):
        busy = [asyncio.ensure_future(calls.run(QUERY, str(n))) for n in range(MAX_ENGINE_CALLS)]
        await asyncio.sleep(0.05)
        queued = [asyncio.ensure_future(calls.run(QUERY, version)) for version in ("left", "kept") * 5]
        await asyncio.sleep(0.05)
        for each in (*queued[::2], *queued[1:-1:2]):
            each.cancel()
        await asyncio.wait(queued[:-1])
        again = asyncio.ensure_future(calls.run(QUERY, "left, and asked again"))
        engine.may_end.set()
        await asyncio.gather(*busy, queued[-1], again)
        asked = [version.removeprefix(QUERY.sql) for _, version in engine.calls[MAX_ENGINE_CALLS:]]
        assert ["kept", "left, and asked again"] == sorted(asked)


async def test_a_confirmation_is_shared_only_by_those_who_have_the_same_answer() -> None:
    """An equal answer of another call was given at another time."""
    async with blocked() as (engine, calls):
        answers = [EngineAnswer((["a"],), [1], "1") for _ in range(2)]
        assert answers[0] == answers[1]
        confirming = [asyncio.ensure_future(calls.confirm(QUERY, each)) for each in answers * 3]
        await asyncio.sleep(0.05)
        engine.may_end.set()
        await asyncio.gather(*confirming)
        assert 2 == len(engine.calls)


async def test_a_failure_is_raised_for_all_and_none_of_them_waits_longer_than_the_call() -> None:
    """Each has an error of its own; a call whose time is over is not joined any more, though its thread still runs."""
    async with blocked(seconds=0.3) as (engine, calls):
        first = asyncio.ensure_future(calls.run(QUERY, "1"))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(calls.run(QUERY, "1"))
        failed = await asyncio.gather(first, second, return_exceptions=True)
        assert {EngineUnavailable} == set(map(type, failed))
        assert failed[0] is not failed[1]
        assert 1 == len(engine.calls)
        engine.may_end.set()
        assert (await calls.run(QUERY, "1")).counts == [1]
        assert 2 == len(engine.calls)


async def test_a_call_that_everybody_has_left_ends_in_silence() -> None:
    """Nobody retrieves its error, and nothing is logged of it; who comes before its end still joins it."""
    async with blocked() as (engine, calls):
        engine.error = EngineUnavailable("too long")
        asking = [asyncio.ensure_future(calls.run(QUERY, "1")) for _ in range(3)]
        await asyncio.sleep(0.05)
        for each in asking:
            each.cancel()
        await asyncio.wait(asking)
        late = asyncio.ensure_future(calls.run(QUERY, "1"))
        await asyncio.sleep(0.05)
        engine.may_end.set()
        with pytest.raises(EngineUnavailable):
            await late
        assert 1 == len(engine.calls)
