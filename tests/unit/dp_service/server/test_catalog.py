"""GetCatalog: all that the policy shows and nothing else, in pages of any size."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.releases.keys import KeySet
from dp_service.server.served_policy import ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from tests.support.dp_questions import KEY, Clock, Entropy, error_of
from tests.support.dp_server import servicer_of, serving
from tests.support.some import some

POLICY = """
epsilon_per: 0.15
delta: 1e-10
tables:
  visits:
    member: m
    data_version: CANARY-VERSION
    time: {column: day, type: date, zone: Europe/Berlin}
    consistency: fresh
    measures: {distinct_members: true, events: {tau: 4, tau_is: clipped}}
    columns:
      m: {type: string}
      hidden: {type: string, nulls: keep, null_value: CANARY-NULL}
      page: {type: string, group_by: true, filter: [in, not_in], nulls: keep, null_value: nowhere}
      region: {type: string, group_by: true, domain: [c, a, b], delta: 1}
      score: {type: int64, group_by: true, filter: [range], domain: [3, -1, 2]}
      paid: {type: bool, filter: [in], nulls: keep, null_value: true}
      since: {type: date, group_by: true, delta: 1, domain: [2020-01-02, 2020-01-01]}
  clicks:
    member: user
    time: {column: at, type: int64, unit: seconds, refresh: week, delay_minutes: 0}
    measures: {events: {tau: 9, tau_is: assumed}}
    columns: {}
"""


@asynccontextmanager
async def catalogued(policy: str = POLICY) -> AsyncIterator[Any]:
    """Serve a policy and give a stub; its clock stands in the third week of 1970."""
    clock = Clock()
    clock.seconds = 86_400.0 * 15
    async with serving(servicer_of(policy, clock=clock)) as stub:
        yield stub


async def pages(dp: Any, table: str = "", page_size: int = 0) -> list[dp_pb2.GetCatalogResponse]:
    """Return all pages."""
    request = dp_pb2.GetCatalogRequest(table=table, page_size=page_size)
    found = [await dp.GetCatalog(request)]
    while found[-1].next_page_token:
        request.page_token = found[-1].next_page_token
        found.append(await dp.GetCatalog(request))
    return found


async def test_a_table_is_shown_with_what_questions_can_use() -> None:
    """Measures with their tau, time column, and for each column type, mechanism, conditions, domain and nulls."""
    async with catalogued() as dp:
        (page,) = await pages(dp, "visits")
    (table,) = page.tables
    assert (page.epsilon_per, page.delta) == ("3/20", "1/10000000000")
    assert (page.unit_id, page.count_noise) == (
        "61c38258a2d5d2f817f4797eeb22bee5",
        dp_pb2.COUNT_NOISE_LAPLACE,
    )
    assert (table.name, table.member, table.consistency) == ("visits", "m", dp_pb2.CONSISTENCY_FRESH)
    assert [(each.measure, each.tau, each.clipped) for each in table.measures] == [
        (question_pb2.MEASURE_DISTINCT_MEMBERS, 1, False),
        (question_pb2.MEASURE_EVENTS, 4, True),
    ]
    assert table.time == dp_pb2.CatalogTime(column="day", unit=dp_pb2.TIME_UNIT_DAYS, zone="Europe/Berlin")
    assert [column.name for column in table.columns] == ["day", "page", "paid", "region", "score", "since"]
    columns = {column.name: column for column in table.columns}
    in_, not_in, range_ = (
        dp_pb2.FILTER_OPERATOR_IN,
        dp_pb2.FILTER_OPERATOR_NOT_IN,
        dp_pb2.FILTER_OPERATOR_RANGE,
    )
    assert {name: list(column.filters) for name, column in columns.items()} == {
        "day": [range_],
        "page": [in_, not_in],
        "paid": [in_],
        "region": [],
        "score": [range_],
        "since": [],
    }
    assert {name: column.mechanism for name, column in columns.items()} == {
        "day": dp_pb2.MECHANISM_UNSPECIFIED,
        "page": dp_pb2.MECHANISM_UNK_GUMB,
        "paid": dp_pb2.MECHANISM_UNSPECIFIED,
        "region": dp_pb2.MECHANISM_KNOWN_LAP,
        "score": dp_pb2.MECHANISM_KNOWN_GUMB,
        "since": dp_pb2.MECHANISM_KNOWN_LAP,
    }
    assert columns["score"].type == histogram_pb2.COLUMN_TYPE_INT64
    assert list(columns["region"].domain.strings.values) == ["a", "b", "c"]
    assert list(columns["score"].domain.int64s.values) == [-1, 2, 3]
    assert list(columns["since"].domain.dates.days) == [18262, 18263]
    assert (columns["region"].delta, columns["page"].delta) == (1, 0)
    assert columns["page"].null_value == question_pb2.Value(string="nowhere")
    assert columns["paid"].null_value == question_pb2.Value(bool=True)
    assert not columns["region"].HasField("null_value")


async def test_closed_periods_are_shown_with_where_they_end_now() -> None:
    """An analyst sees up to when there are answers: Monday, on the service's clock."""
    async with catalogued() as dp:
        (page,) = await pages(dp, "clicks")
    assert page.tables[0].time == dp_pb2.CatalogTime(
        column="at",
        unit=dp_pb2.TIME_UNIT_SECONDS,
        zone="UTC",
        refresh=dp_pb2.REFRESH_PERIOD_WEEK,
        closed_before=86_400 * 11,
    )


async def test_what_questions_cannot_use_is_not_shown() -> None:
    """Neither a column without a use, nor the declared version of the data, which may be a hash of them."""
    async with catalogued() as dp:
        shown = str(await pages(dp))
    for word in ("hidden", "CANARY"):
        assert word not in shown


def merged(found: list[dp_pb2.GetCatalogResponse]) -> dict[tuple[str, str], list[object]]:
    """Return what pages show together: every column with its values, in order."""
    together: dict[tuple[str, str], list[object]] = {}
    for table in (table for page in found for table in page.tables):
        together.setdefault((table.name, ""), [])
        for column in table.columns:
            kind = column.domain.WhichOneof("values")
            values = [] if kind is None else list(next(iter(getattr(column.domain, kind).ListFields()))[1])
            together.setdefault((table.name, column.name), []).extend(values)
    return together


async def test_pages_of_every_size_show_the_same() -> None:
    """Nothing is lost or shown twice, wherever a page ends."""
    async with catalogued() as dp:
        whole = await pages(dp)
        assert len(whole) == 1
        # Two tables, seven columns, and eight values.
        for size in range(1, 19):
            found = await pages(dp, page_size=size)
            assert merged(found) == merged(whole)
            assert len(found) == -(-17 // size)
            shown = sum(len(table.columns) for page in found for table in page.tables)
            # A column is there again only where its domain goes on: at worst, for each of eight values.
            assert shown <= 7 + 8 if size == 1 else shown <= 7 + len(found)


@pytest.mark.slow
async def test_the_largest_domain_comes_in_pages_below_the_limit_of_every_client() -> None:
    """A hundred thousand values, and the longest texts there can be: no page is near 4 MiB."""
    values = [f"{i:06}" for i in range(99_000)] + ["\U0001f600" * 1018 + f"{i:06}" for i in range(1000)]
    policy = POLICY.replace("domain: [c, a, b]", f"domain: {sorted(values)!r}")
    async with catalogued(policy) as dp:
        found = await pages(dp, "visits")
    assert merged(found)["visits", "region"] == sorted(values)
    assert max(page.ByteSize() for page in found) < 4 * 2**20
    assert all(
        column.domain_size == 100_000 for page in some(found[1:-1]) for column in page.tables[0].columns
    )


async def test_a_page_of_a_replaced_policy_is_refused() -> None:
    """Half a catalogue of one policy and half of another is none."""
    served = ServedPolicy(usable_policy(POLICY.encode(), "policy", KEY))
    async with serving(DpServicer(served, KeySet(KEY), Environment(Clock(), Entropy()))) as dp:
        first = await dp.GetCatalog(dp_pb2.GetCatalogRequest(page_size=3))
        served.replace(usable_policy(POLICY.replace("tau: 4", "tau: 5").encode(), "policy", KEY))
        request = dp_pb2.GetCatalogRequest(page_size=3, page_token=first.next_page_token)
        code, reason, _ = await error_of(dp.GetCatalog(request))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "CATALOG_CHANGED") == (code, reason)


@pytest.mark.parametrize(
    "token",
    ["x", "\u00e9", "AAAA", base64.urlsafe_b64encode(b"0123456789abcdef:-1:").decode(), "=" * 10_000],
)
async def test_a_token_that_no_page_said_is_refused(token: str) -> None:
    """It is opaque, and nothing is guessed of it."""
    async with catalogued() as dp:
        code, _, metadata = await error_of(dp.GetCatalog(dp_pb2.GetCatalogRequest(page_token=token)))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "page_token") == (code, metadata["field"])


async def test_a_token_goes_on_with_its_own_question_only() -> None:
    """A token for all tables is none for one, and none points beyond the end."""
    async with catalogued() as dp:
        page = await dp.GetCatalog(dp_pb2.GetCatalogRequest(page_size=1))
        for_all = page.next_page_token
        beyond = base64.urlsafe_b64encode(f"{page.policy_id}:99:".encode()).decode()
        requests = [
            dp_pb2.GetCatalogRequest(table="visits", page_token=for_all),
            dp_pb2.GetCatalogRequest(page_token=beyond),
        ]
        for request in requests:
            code, _, metadata = await error_of(dp.GetCatalog(request))
            assert (grpc.StatusCode.INVALID_ARGUMENT, "page_token") == (code, metadata["field"])


async def test_other_faults_are_named() -> None:
    """A table that the policy does not list, as for every question; and a size below 0."""
    async with catalogued() as dp:
        code, _, metadata = await error_of(dp.GetCatalog(dp_pb2.GetCatalogRequest(table="employees")))
        assert (grpc.StatusCode.PERMISSION_DENIED, "table") == (code, metadata["rule"])
        code, _, metadata = await error_of(dp.GetCatalog(dp_pb2.GetCatalogRequest(page_size=-1)))
        assert (grpc.StatusCode.INVALID_ARGUMENT, "page_size") == (code, metadata["field"])
