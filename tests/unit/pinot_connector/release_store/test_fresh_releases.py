"""`consistency: fresh`: nothing is looked up, nothing is kept, and each question is drawn and paid for anew."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import Found, MemoryReleaseStore
from tests.support.clients import SHORT, client_of
from tests.support.embedded import embedded
from tests.support.world import BUDGET, POLICY, new_account, write_growing


class Watched(MemoryReleaseStore):
    """A store that notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    async def find(self, query_id: str, account: tuple[str, ...]) -> Found | None:
        """Note it."""
        self.found.append(query_id)
        return await super().find(query_id, account)


@pytest.mark.usefixtures("starts_processes")
async def test_a_fresh_question_is_never_looked_up_and_never_kept(tmp_path: Path) -> None:
    """Twice the same question is two releases and two charges, also at once; the table beside it is looked up."""
    growing = "  growing:\n    member: member_id\n"
    assert growing in POLICY
    write_growing(tmp_path / "growing.parquet", members=1000)
    write_growing(tmp_path / "small.parquet", members=1000)
    engine = DuckDBEngine({name: tmp_path / f"{name}.parquet" for name in ("growing", "small")})
    store = Watched()
    with embedded(
        tmp_path, POLICY.replace(growing, f"{growing}    consistency: fresh\n"), BUDGET
    ) as services:
        async with client_of(services, engine, timeouts=SHORT, releases=store) as client:
            fresh = [await client.histogram("growing", "element") for _ in "12"]
            assert (store.found, (await store.statistics()).releases) == ([], 0)
            beside = [await client.histogram("small", "element") for _ in "12"]
            others = [client.on_behalf_of(new_account().split("/")) for _ in range(5)]
            at_once = await asyncio.gather(*(each.histogram("growing", "element") for each in others))
    engine.close()
    assert len({each.release_id for each in fresh}) == 2
    assert [each.charged.information for each in fresh] == [1, 1]
    assert len({each.release_id for each in beside}) == 1
    assert store.found
    assert len({each.release_id for each in at_once}) == len({each.query_id for each in at_once}) == 5
    assert [each.charged.information for each in at_once] == [1] * 5
