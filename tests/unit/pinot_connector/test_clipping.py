"""Events that the policy clips: answered by DuckDB, and refused before anything is reserved by an old Pinot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pinot_connector.engines.base import EngineQuery, Feature
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineRefused
from tests.support.clients import asking_client, translation_of, untouched
from tests.support.fake_pinot import FakePinot
from tests.support.relay import relayed
from tests.support.world import World, copy


async def test_members_with_many_events_count_no_more_than_tau(world: World, tmp_path: Path) -> None:
    """Four hundred members with ten events each are 1,200 events at tau = 3, and the noise is of that scale."""
    path = tmp_path / "orders.parquet"
    copy("SELECT range % 400 AS member_id, 'a' AS element FROM range(4000)", path)
    engine = DuckDBEngine({"orders": path})
    async with asking_client(world, engine) as client:
        result = await client.histogram("orders", "element", measure="events")
        (row,) = result.rows
        (total,) = (await client.total("orders", measure="events")).rows
    engine.close()
    for each in (row, total):
        assert each.noisy_count is not None
        # Noise of scale 2 * 3 / 8 is farther away than 30 with a probability below 1e-17.
        assert 1170 <= each.noisy_count <= 1230
    # A reader of 1,200 would otherwise think that there are so many rows, and there are 4,000.
    (clipped,) = (each.text for each in result.statements if each.code == "counts.clipped")
    assert clipped == (
        "At most 3 rows of a member count in each element; counts and intervals are without the others."
    )


@pytest.fixture
def old_pinot() -> Iterator[FakePinot]:
    """A Pinot that says it is 0.11, with a table that looks whole."""
    fake = FakePinot()
    fake.replies |= {
        "/version": {"pinot-controller": "0.11.0"},
        "/tables/orders": {"OFFLINE": {"tableName": "orders_OFFLINE"}},
        "/tables/orders/schema": {"schemaName": "orders"},
        "/tables/orders/idealstate": {"OFFLINE": {"s": {"server": "ONLINE"}}, "REALTIME": None},
        "/tables/orders/externalview": {"OFFLINE": {"s": {"server": "ONLINE"}}, "REALTIME": None},
        "/segments/orders": [{"OFFLINE": ["s"]}],
        "/segments/orders_OFFLINE/metadata": {"s": {"segmentName": "s", "crc": 1, "totalDocs": 7}},
        "/segments/orders_OFFLINE/crc": {"s": "1"},
        "/segments/orders_OFFLINE/s/metadata": {"segment.crc": "1", "segment.total.docs": "7"},
    }
    with fake.serving():
        yield fake


async def test_an_old_pinot_is_not_asked_and_nothing_is_reserved(world: World, old_pinot: FakePinot) -> None:
    """The measure is refused by name, on the version that the cluster states, not by a query that fails."""
    engine = PinotEngine(controller=old_pinot.url, broker=old_pinot.url)
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address, budget=relay.address) as client:
            with pytest.raises(EngineRefused, match=r"Pinot 0\.11 cannot answer the measure events"):
                await client.histogram("orders", "element", measure="events")
            with pytest.raises(EngineRefused, match=r"Pinot 0\.11 cannot answer the measure events"):
                await client.total("orders", measure="events")
            assert await untouched(client)
        assert "ReserveBudget" not in relay.methods
    assert old_pinot.queries == []
    engine.close()


async def test_a_feature_that_this_version_does_not_know_is_refused(world: World) -> None:
    """A newer dp_service may ask for more than this connector can look for."""
    engine = DuckDBEngine(world.tables)
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address, budget=relay.address) as client:
            await client.histogram("small", "element")
            translation = await translation_of(relay.requests("TranslateQuery")[-1], world)
            for query in translation.engine_queries:
                query.requires.append(99)  # type: ignore[arg-type]  # no feature of this version
            relay.replies["TranslateQuery"] = translation.SerializeToString()
        # Another client: the first one has kept the release.
        async with asking_client(world, engine, dp=relay.address, budget=relay.address) as client:
            with pytest.raises(EngineRefused, match="does not know"):
                await client.histogram("small", "element")
        assert relay.methods.count("ReserveBudget") == 1
    engine.close()


def test_duckdb_has_nothing_that_could_be_required() -> None:
    """A query that requires a feature of another engine is not for it."""
    engine = DuckDBEngine({})
    with pytest.raises(EngineRefused):
        engine.check(EngineQuery("t", "", (), 1, frozenset({Feature.PINOT_MULTISTAGE})))
    engine.close()
