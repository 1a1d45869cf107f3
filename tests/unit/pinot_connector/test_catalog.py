"""The catalogue as the client gives it: whole, typed, of one policy."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from gris_api.dp.v1 import dp_pb2

from dp_service.server.served_policy import PolicyContent, ServedPolicy
from pinot_connector.catalog import FilterOperator, MeasureEntry, Refresh, TimeEntry, catalog_of
from pinot_connector.engines.base import TimeUnit
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import IntegrityError, RefusedByPolicy, ServiceRefused
from pinot_connector.parameters import Mechanism
from pinot_connector.questions import Measure
from tests.support.catalog_calls import DOMAIN, POLICY, calls_to, content
from tests.support.clients import blocking_client_of, client_of
from tests.support.world import World


async def test_all_pages_become_one_catalogue() -> None:
    """Three pages of one domain are one domain; days are days, and what is not known is None."""
    async with calls_to(ServedPolicy(content())) as calls:
        catalog = await calls.catalog("")
    (table,) = catalog.tables
    day, page, since = table.columns
    assert page.domain == tuple(DOMAIN)
    assert (page.mechanism, page.delta, page.null_value) == (Mechanism.KNOWN_LAP, 2, None)
    assert (since.mechanism, since.domain, since.null_value) == (None, None, datetime.date(2020, 2, 29))
    assert day.filters == (FilterOperator.RANGE,)
    assert table.measures == (MeasureEntry(Measure.EVENTS, 4, clipped=True),)
    assert table.time == TimeEntry("day", TimeUnit.DAYS, "UTC", Refresh.MONTH, closed_before=0)
    assert catalog.policy_id == content().policy_id
    assert catalog.to_dict()["tables"][0]["columns"][2]["null_value"] == "2020-02-29"


class Changing(ServedPolicy):
    """A policy that is replaced after some reads."""

    def __init__(self, of_read: Callable[[int], PolicyContent]) -> None:
        super().__init__(of_read(0))
        self._of_read = of_read
        self._reads = 0

    @property
    def content(self) -> PolicyContent:
        """Return the policy of the next read."""
        self._reads += 1
        return self._of_read(self._reads - 1)


async def test_a_policy_that_changes_between_pages_is_read_from_the_beginning() -> None:
    """The catalogue is whole and of the new policy."""
    before, after = content(), content(POLICY.replace("tau: 4", "tau: 5"))
    async with calls_to(Changing(lambda read: before if read < 1 else after)) as calls:
        catalog = await calls.catalog("")
    assert catalog.policy_id == after.policy_id
    assert catalog.tables[0].measures[0].tau == 5
    assert catalog.tables[0].columns[1].domain == tuple(DOMAIN)


async def test_a_policy_that_never_rests_is_given_up() -> None:
    """After three tries there is no catalogue rather than one of many policies."""
    contents = [content(POLICY.replace("tau: 4", f"tau: {tau}")) for tau in (4, 5)]
    async with calls_to(Changing(lambda read: contents[read % 2])) as calls:
        with pytest.raises(ServiceRefused, match="CATALOG_CHANGED"):
            await calls.catalog("")


async def test_both_clients_give_it(world: World) -> None:
    """Sync and async, all tables or one; an unknown table is refused as in a question."""
    engine = DuckDBEngine(world.tables)
    with blocking_client_of(world, engine) as client:
        catalog = client.catalog()
        assert "feedback" in [table.name for table in catalog.tables]
        with pytest.raises(RefusedByPolicy):
            client.catalog("employees")
    async with client_of(world, engine) as asynchronous:
        (feedback,) = (await asynchronous.catalog("feedback")).tables
        assert feedback == next(table for table in catalog.tables if table.name == "feedback")
    engine.close()


def page_with(**column: object) -> dp_pb2.GetCatalogResponse:
    """Return a page with one column."""
    page = dp_pb2.GetCatalogResponse(epsilon_per="1", delta="1/2", count_noise=dp_pb2.COUNT_NOISE_LAPLACE)
    table = page.tables.add(name="t", consistency=dp_pb2.CONSISTENCY_KEYED)
    table.columns.add(name="c", **({"type": 1} | column))
    return page


@pytest.mark.parametrize(
    "column",
    [
        {"domain_size": 2, "domain": {"name": "c", "strings": {"values": ["a"]}}},
        {"domain_size": 1, "domain": {"name": "other", "strings": {"values": ["a"]}}},
        {"domain_size": 1, "domain": {"name": "c", "int64s": {"values": [1]}}},
        {"type": 0},
        {"type": 99},
        {"mechanism": 99},
        {"filters": [99]},
        {"null_value": {"int64": 3}},
    ],
)
def test_what_cannot_be_understood_is_no_catalogue(column: dict[str, object]) -> None:
    """A part of a domain, another column's, another type, or a word of a later version."""
    assert catalog_of([page_with()]).tables[0].columns[0].name == "c"
    with pytest.raises(IntegrityError):
        catalog_of([page_with(**column)])
