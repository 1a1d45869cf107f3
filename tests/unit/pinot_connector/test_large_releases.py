"""Releases that no message could hold: kept, and shown again in chunks, the same whatever a question shows of them."""

# ruff: noqa: S608  (the SQL is these tests' own)

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from gris_api.dp.v1 import dp_pb2

from pinot_connector import AsyncPrivateClient, Timeouts
from pinot_connector.channels import MAX_MESSAGE_BYTES
from pinot_connector.dp_service_client import show_requests
from pinot_connector.element_messages import merged
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import ReleaseStore
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from pinot_connector.results import PrivateResult
from tests.support.clients import Counted, client_of
from tests.support.embedded import embedded
from tests.support.release_stores import KEYS
from tests.support.rings import needs
from tests.support.sums_in_sql import summed
from tests.support.world import World, copy, new_account

SUMMED, COUNTED = 230_000, 100_000
COLUMNS = [f"v{number}" for number in range(16)]
VALUES = [f"      {name}: {{type: int64, lower: 0, upper: 2000000000}}" for name in COLUMNS]
# No noise of the first table hides an element: six members are three above the threshold. Its sums take five bytes
# each. Counts of the second one take three.
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  summed:
    member: member
    contributions: {{bound: assumed, delta: 1, units: 20000, sums: {{max_members: 1380000, max_rows: 1380000}}}}
    measures: {{distinct_members: true}}
    columns:
      member: {{type: int64}}
      element: {{type: int64, group_by: true}}
    values:
{chr(10).join(VALUES)}
  counted:
    member: member
    contributions: {{bound: assumed, delta: 1, units: 10}}
    measures: {{events: {{tau: 300000, tau_is: assumed}}}}
    columns:
      member: {{type: int64}}
      element: {{type: int64, group_by: true, domain: [{", ".join(map(str, range(COUNTED)))}]}}
"""
BUDGET = """
accounts:
  - path: [t]
    limit: {information: 1000000000, calls: 1000000}
  - path: [t, "*"]
    limit: {information: 1000000, calls: 10}
"""
# No end here is one of a slow machine.
UNHURRIED = Timeouts(dp=120, engine=60, budget_attempt=10, budget=30, budget_silence=60, reservation=300)


@pytest.fixture(scope="module")
@needs("process")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Services that know both tables, and the data: six members in each element, or two."""
    folder = tmp_path_factory.mktemp("large")
    values = ", ".join(f"range % 7 + {number} AS {name}" for number, name in enumerate(COLUMNS))
    copy(
        f"SELECT range AS member, range % {SUMMED} AS element, {values} FROM range({6 * SUMMED})",
        folder / "summed.parquet",
    )
    copy(
        f"SELECT range AS member, range % {COUNTED} AS element FROM range({2 * COUNTED})",
        folder / "counted.parquet",
    )
    with embedded(folder, POLICY, BUDGET) as services:
        yield World(services.dp_address, services.budget_address, folder)


@pytest.fixture
def engine(world: World) -> Iterator[Counted]:
    """The data."""
    engine = Counted({name: world.directory / f"{name}.parquet" for name in ("summed", "counted")})
    yield engine
    engine.close()


@asynccontextmanager
async def asking(
    world: World, engine: DuckDBEngine, store: ReleaseStore, account: str = ""
) -> AsyncIterator[AsyncPrivateClient]:
    """Give a client that has shown nothing yet."""
    async with client_of(
        world, engine, account=account or new_account(), releases=store, timeouts=UNHURRIED
    ) as client:
        yield client


def numbers(result: PrivateResult) -> list[tuple[object, ...]]:
    """Return elements, counts and values, which do not depend on how many of them are shown."""
    return [
        (row.element, row.noisy_count, *(each and each.value for each in row.values)) for row in result.rows
    ]


@pytest.mark.nightly
async def test_what_no_message_holds_is_shown_again_and_never_drawn_again(
    world: World, engine: Counted, tmp_path: Path
) -> None:
    """Another k and averages are free, from the disk too; another account pays for the same release."""
    account, file = new_account(), tmp_path / "releases.sqlite"
    store = SqliteReleaseStore(file, KEYS)
    async with asking(world, engine, store, account) as client:
        first = await client.sql(summed("summed", "element", sums=COLUMNS, k=3))
    found = await store.find(first.query_id, tuple(account.split("/")))
    assert found is not None
    content = found.kept.content
    assert content.element_count == SUMMED
    assert content.ByteSize() > MAX_MESSAGE_BYTES
    await store.close()
    store = SqliteReleaseStore(file, KEYS)
    async with asking(world, engine, store, account) as client:
        more = await client.sql(summed("summed", "element", sums=COLUMNS, k=7))
        averages = await client.sql(summed("summed", "element", averages=COLUMNS, k=3))
        assert [each.charged.information for each in (more, averages)] == [0, 0]
    assert numbers(more)[:3] == numbers(first)
    async with asking(world, engine, store) as other:
        same = await other.sql(summed("summed", "element", sums=COLUMNS, k=3))
        assert (same.charged.information, numbers(same)) == (first.charged.information, numbers(first))
    assert {each.release_id for each in (first, more, averages, same)} == {first.release_id}
    assert engine.runs == 1
    await store.close()


def test_a_kept_release_is_sent_in_chunks_of_a_mebibyte() -> None:
    """Put together they are the release; a small one is one message."""
    header = dp_pb2.KeptHeader(plan=b"p")
    for size, messages in ((3, 1), (COUNTED, 3)):
        ranks = range(size)
        rows = dp_pb2.KeptChunk(
            elements=dp_pb2.KeptElements(noisy_counts=ranks, sums=[{"values": [2**50] * size}] * 2),
            element_ranks=ranks,
        )
        requests = show_requests(header, rows)
        assert len(requests) == messages
        assert all(each.chunk.ByteSize() <= 2**20 for each in requests)
        assert [each.HasField("header") for each in requests] == [True] + [False] * (messages - 1)
        assert [each.HasField("end") for each in requests] == [False] * (messages - 1) + [True]
        assert (requests[0].header, requests[-1].end.row_count) == (header, size)
        assert merged(dp_pb2.KeptChunk(), [each.chunk for each in requests]) == rows
