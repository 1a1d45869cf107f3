"""Data, plans and reservations that grow old while a question is asked."""

from __future__ import annotations

import asyncio
import datetime
import threading
from pathlib import Path

import pytest
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector import Timeouts
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    DataChanged,
    IntegrityError,
)
from tests.support.clients import Corrupting, asking_client, client_of, translation_of, untouched
from tests.support.relay import relayed
from tests.support.world import World, new_account, write_growing, write_small


async def test_data_that_change_once_are_asked_again(world: World, tmp_path: Path) -> None:
    """The first answer is thrown away, the question is translated again, and only one charge is made."""
    path = tmp_path / "small.parquet"
    write_small(path, 500)
    engine = _Replacing(path, changes=1)
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address, budget=relay.address) as client:
            result = await client.histogram("small", "element")
            assert result.rows[0].noisy_count is not None
            assert 990 <= result.rows[0].noisy_count <= 1010
            levels = await client.remaining()
            assert (levels[-1].spent.information, levels[-1].reserved.information) == (1, 0)
        assert relay.methods.count("ReserveBudget") == 2
        # Twice for a version, and once before that: whether the policy lists the table at all.
        assert relay.methods.count("TranslateQuery") == 3
        assert relay.methods.count("ReleaseReservation") == relay.methods.count("UpdateBudget") == 1
    engine.close()


async def test_data_that_never_rest_are_given_up(world: World, tmp_path: Path) -> None:
    """After three tries there is no result and nothing is held."""
    path = tmp_path / "small.parquet"
    write_small(path, 500)
    engine = _Replacing(path, changes=100)
    async with asking_client(world, engine) as client:
        with pytest.raises(DataChanged):
            await client.histogram("small", "element")
        assert engine.runs == 3
        assert await untouched(client)
    engine.close()


class _Replacing(DuckDBEngine):
    """DuckDB whose file is replaced just before a query runs."""

    def __init__(self, path: Path, changes: int) -> None:
        super().__init__({"small": path})
        self._path = path
        self._changes = changes
        self.runs = 0

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        self.runs += 1
        if self.runs <= self._changes:
            write_small(self._path, 1000 + self.runs - 1)
        return super().run(query, data_version)


async def test_data_that_change_under_a_promised_version_do_not_change_what_was_paid_for(
    world: World, tmp_path: Path
) -> None:
    """The account that has paid, and one that pays now, are given what is kept: nothing tells that the rows changed."""
    path = tmp_path / "pinned.parquet"
    write_small(path, 500)
    engine = DuckDBEngine({"pinned": path})
    async with asking_client(world, engine) as client:
        paid = await client.histogram("pinned", "element")
        write_small(path, 501)
        again = await client.histogram("pinned", "element")
        other = await client.on_behalf_of(new_account().split("/")).histogram("pinned", "element")
    assert paid.rows == again.rows == other.rows
    assert paid.release_id == again.release_id == other.release_id
    assert [1, 0, 1] == [each.charged.information for each in (paid, again, other)]
    engine.close()


async def test_where_a_store_was_lost_data_that_changed_under_a_promised_version_are_refused(
    world: World, tmp_path: Path
) -> None:
    """The ledger knows that the question was paid for with another release: nothing is shown, nothing is held."""
    path, account = tmp_path / "pinned.parquet", new_account()
    write_small(path, 500)
    engine = DuckDBEngine({"pinned": path})
    async with asking_client(world, engine, account=account) as client:
        paid = await client.histogram("pinned", "element")
    write_small(path, 501)
    async with asking_client(world, engine, account=account) as client:
        with pytest.raises(IntegrityError, match="could not be recorded"):
            await client.histogram("pinned", "element")
        levels = await client.remaining()
        assert (paid.cost.information, 0) == (levels[-1].spent.information, levels[-1].reserved.information)
    engine.close()


async def test_rows_of_an_open_period_and_changes_of_a_closed_one_change_no_answer(
    world: World, tmp_path: Path
) -> None:
    """What arrives now leaves a paid answer as it is, and free; so does a member whose rows are deleted."""
    path = tmp_path / "growing.parquet"
    write_growing(path, members=500)
    engine = DuckDBEngine({"growing": path})
    async with asking_client(world, engine) as client:
        paid = await client.histogram("growing", "element")
        write_growing(path, members=500, arriving=300)
        again = await client.histogram("growing", "element")
        assert (paid.rows, paid.release_id) == (again.rows, again.release_id)
        assert (1, 0) == (paid.charged.information, again.charged.information)
        write_growing(path, members=499, arriving=300)
        still = await client.histogram("growing", "element")
        assert (paid.rows, paid.release_id, 0) == (still.rows, still.release_id, still.charged.information)
    engine.close()


async def test_a_plan_that_expired_is_made_again(world: World, engine: DuckDBEngine) -> None:
    """A plan that dp_service does not honour any more is no failure: the question is translated again."""
    async with relayed(world) as relay, asking_client(world, engine, dp=relay.address) as client:
        stale = dp_pb2.TranslateQueryResponse()
        await client.top_k("feedback", "score", 1)
        request = dp_pb2.TranslateQueryRequest.FromString(relay.requests("TranslateQuery")[-1])
        request.question.structured.k = 2
        stale.CopyFrom(await translation_of(request.SerializeToString(), world))
        stale.plan = b"not a plan"
        relay.replies["TranslateQuery"] = stale.SerializeToString()
        asking = asyncio.ensure_future(client.top_k("feedback", "score", 2))
        await relay.called("TranslateQuery", times=4)
        relay.replies.clear()
        assert (await asking).rows[0].element == (1,)


ORDER = ["ReserveBudget", "ReleaseReservation", "ReserveBudget", "AddNoiseUnary", "UpdateBudget"]


async def test_a_reservation_that_a_slow_query_has_used_up_is_made_again_before_noise_is_drawn(
    world: World,
) -> None:
    """A query that takes more than a quarter of its reservation leaves too little time for the draw and the charge."""

    def outlast(answer: EngineAnswer) -> EngineAnswer:
        over.wait(3.5)
        return answer

    over = threading.Event()
    engine = Corrupting(world, outlast)
    async with relayed(world) as relay:
        client = client_of(relay.address, engine, timeouts=Timeouts(reservation=12))
        async with client:
            result = await client.top_k("feedback", "article_id", 5, where={"day": datetime.date(2017, 5, 2)})
            levels = await client.remaining()
        assert result.cost == result.charged == levels[-1].spent
        reserved = [
            budget_pb2.ReserveBudgetRequest.FromString(each).max_cost
            for each in relay.requests("ReserveBudget")
        ]
        assert reserved[0] == reserved[1]
        assert reserved[0].information > result.cost.information
        changes = [each for each in relay.methods if each in ORDER]
        assert changes == ORDER
    engine.close()
