"""Audiences at a gateway: who is of which follows from the caller's account, on every port, for new answers and old."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import question_pb2
from pydantic import ValidationError

from dp_service.queries.blocks import Blocks
from gris_cli.past_results import print_past_results
from gris_gateway.configuration import AudienceRule
from gris_gateway.faces.mcp.results import past_answer_of
from pinot_connector.past_results import PastResult
from tests.support.catalogues import wait_for_catalogue
from tests.support.embedded import embedded
from tests.support.gateways import stub_of
from tests.support.pki import ISSUER, Issuer
from tests.support.processes import process
from tests.support.rings import needs
from tests.support.world import World
from tests.unit.gris_gateway.token_world import AUDIENCE

POLICY = """
epsilon_per: 1
delta: 1e-9
blocks: {name: tenant, values: [acme, acmecorp]}
tables:
  ads:
    member: m
    block: tenant
    data_version: one
    measures: {distinct_members: true}
    columns:
      campaign: {type: string, group_by: true, filter: [in], domain: [spring, summer], delta: 2}
      country: {type: string, filter: [in]}
      tenant: {type: string, group_by: true, filter: [in]}
  salaries:
    member: m
    data_version: one
    measures: {distinct_members: true}
    columns: {}
audiences:
  tenant: {tables: {ads: {columns: [campaign], where: {tenant: $tenant}}}}
  germany: {tables: {ads: {where: {country: DE}}}}
"""
BUDGET = """
accounts:
  - path: [t]
    limit: {information: 1000000000, calls: 1000000}
  - {path: [t, "*"], limit: {information: 100000000, calls: 100000}}
  - {path: [t, "*", "*"], limit: {information: 1000000, calls: 1000}}
"""
SQL = "SELECT campaign, COUNT(DISTINCT m) AS people FROM ads GROUP BY campaign"
BLOCKS = Blocks(name="tenant", values=("acme", "acmecorp"))
TENANTS = {
    "acme": 1000,
    "acmecorp": 3000,
    "o'hara": 5000,
    **{f"t{each}": 300 + 100 * each for each in range(47)},
}
NEAR = 60


@dataclass(frozen=True)
class Asked:
    """A gateway of tenants, and tokens of them."""

    ready: dict[str, str]
    issuer: Issuer

    def token(self, tenant: str, org: str = "tenants") -> str:
        """Return the token of an analyst of a tenant."""
        return self.issuer.token(AUDIENCE, org=org, sub=tenant)

    def bearer(self, tenant: str, org: str = "tenants") -> list[tuple[str, str]]:
        """Return the metadata of its calls."""
        return [("authorization", f"Bearer {self.token(tenant, org)}")]

    @asynccontextmanager
    async def stub(self) -> AsyncIterator[Any]:
        """Give a stub."""
        async with grpc.aio.insecure_channel(self.ready["address"]) as channel:
            yield stub_of(channel)


@pytest.fixture(scope="module")
@needs("process")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run both services on rows of fifty tenants."""
    folder = tmp_path_factory.mktemp("audiences")
    rows = [
        (f"{tenant}/{each}", "spring" if each % 4 else "summer", "DE" if each % 2 else "FR", tenant)
        for tenant, members in TENANTS.items()
        for each in range(members)
    ]
    columns = zip(("m", "campaign", "country", "tenant"), zip(*rows, strict=True), strict=True)
    pq.write_table(pa.table({name: list(values) for name, values in columns}), folder / "ads.parquet")
    with embedded(folder, POLICY, BUDGET) as running:
        yield World(running.dp_address, running.budget_address, folder)


@contextmanager
def gateway(
    services: World, folder: Path, audiences: list[dict[str, Any]], *, catalogue: bool = False
) -> Iterator[Asked]:
    """Run a gateway whose accounts are of these audiences; what it keeps is in the folder."""
    issuer = Issuer(folder)
    (folder / "releases.key").write_bytes(b"k" * 32)
    (folder / "releases.key").chmod(0o600)
    accounts = [
        {"claim": "org", "equals": org, "prefix": ["t", org], "append": "sub"}
        for org in ("tenants", "others")
    ]
    config = {
        "listen": "127.0.0.1:0",
        "dp": {"address": services.dp},
        "budget": {"address": services.budget},
        "engine": {"duckdb": {"ads": str(services.directory / "ads.parquet")}},
        "identity": {
            "jwt": {
                "key_file": str(issuer.key_file),
                "algorithms": ["ES256"],
                "issuer": ISSUER,
                "audience": AUDIENCE,
                "accounts": accounts,
            }
        },
        **({"audiences": audiences} if audiences else {}),
        "releases": {"file": str(folder / "releases.db"), "key_file": str(folder / "releases.key")},
        "broker": {"listen": "127.0.0.1:0"},
        "postgres": {"listen": "127.0.0.1:0"} | ({} if catalogue else {"catalogue": False}),
        "limits": {"per_second": 200, "burst": 400},
        "timeouts": {"budget_silence": 30, "budget_attempt": 20, "budget": 30},
    }
    (folder / "gateway.yaml").write_text(json.dumps(config))
    with process("gris_gateway", ["--config", folder / "gateway.yaml"], folder / "gateway.log") as ready:
        yield Asked(ready, issuer)


OF_TENANTS = [{"accounts": ["t", "tenants"], "audience": "tenant", "values": {"tenant": "account[2]"}}]


async def answer(asked: Asked, tenant: str, **fields: Any) -> app_pb2.AskResponse:
    """Return the end of an answer by gRPC, with its elements."""
    parts = await parts_of(asked, tenant, **fields)
    return parts[-1] if len(parts) == 1 else parts[0]


async def parts_of(asked: Asked, tenant: str, sql: str = SQL, **fields: Any) -> list[app_pb2.AskResponse]:
    """Return all messages of an answer by gRPC."""
    request = app_pb2.AskRequest(question=question_pb2.Question(sql=sql), **fields)
    async with asked.stub() as stub:
        return [each async for each in stub.Ask(request, timeout=60, metadata=asked.bearer(tenant))]


async def left(asked: Asked, tenant: str) -> list[budget_pb2.Level]:
    """Return what a tenant is shown of its budget."""
    async with asked.stub() as stub:
        found = await stub.GetRemaining(app_pb2.GetRemainingRequest(), metadata=asked.bearer(tenant))
    return list(found.levels)


def of_everybody(levels: list[budget_pb2.Level]) -> list[tuple[int, int, list[tuple[str, int]]]]:
    """Return what is spent and left, in information units, on the level that all share; and what is left of blocks."""
    return [
        (
            level.spent.information,
            level.limit.information - level.remaining.information,
            [
                ("".join(each.blocks), level.limit.information - each.information)
                for each in level.remaining_of_blocks
            ],
        )
        for level in levels
        if len(level.path) == 1
    ]


def by_broker(asked: Asked, tenant: str) -> int:
    """Return the people that the broker counts for a tenant."""
    found = httpx.post(
        f"http://{asked.ready['broker_address']}/query/sql",
        json={"sql": SQL},
        headers={"Authorization": f"Bearer {asked.token(tenant)}"},
        timeout=60,
    ).json()
    return sum(int(row[1]) for row in found["resultTable"]["rows"])


def connected(asked: Asked, tenant: str, org: str = "tenants") -> psycopg.Connection:
    """Connect as a client of PostgreSQL."""
    host, _, port = asked.ready["postgres_address"].rpartition(":")
    token = asked.token(tenant, org)
    return psycopg.connect(host=host, port=port, user="-", password=token, dbname="gris", autocommit=True)


def by_postgres(asked: Asked, tenant: str) -> int:
    """Return the people that a client of PostgreSQL counts for a tenant."""
    with connected(asked, tenant) as connection:
        return sum(people for _, people in connection.execute(SQL).fetchall())


@pytest.mark.slow
def test_each_tenant_counts_its_own_members_on_every_port(services: World, tmp_path: Path) -> None:
    """Fifty tenants ask the same words: each is counted itself, one whose name begins another's among them."""
    with gateway(services, tmp_path, OF_TENANTS) as asked:
        for tenant, members in TENANTS.items():
            elements = asyncio.run(answer(asked, tenant)).chunk
            assert abs(sum(elements.noisy_counts) - members) < NEAR
        for tenant in ("acme", "acmecorp", "o'hara"):
            assert abs(by_broker(asked, tenant) - TENANTS[tenant]) < NEAR
            assert abs(by_postgres(asked, tenant) - TENANTS[tenant]) < NEAR
        # What others have spent of their own blocks is theirs.
        levels = asyncio.run(left(asked, "acme"))
        named = {id_ for level in levels for cost in level.remaining_of_blocks for id_ in cost.blocks}
        assert named == {BLOCKS.ids["acme"]}
        # A tenant without rows has none of the others.
        assert abs(sum(asyncio.run(answer(asked, "stranger")).chunk.noisy_counts)) < NEAR


@pytest.mark.slow
def test_what_others_spend_of_their_blocks_changes_no_number(services: World, tmp_path: Path) -> None:
    """A tenant is shown of a shared level what its own block has spent and has left; those of one block share it."""
    sql = "SELECT COUNT(DISTINCT m) AS people FROM ads WHERE campaign = 'spring'"
    with gateway(services, tmp_path, OF_TENANTS) as asked:

        def shown() -> dict[str, list[budget_pb2.Level]]:
            return {each: asyncio.run(left(asked, each)) for each in ("acme", "acmecorp", "o'hara", "t8")}

        def asks(tenant: str) -> tuple[int, list[budget_pb2.Level]]:
            end = asyncio.run(parts_of(asked, tenant, sql))[-1].end
            return end.charged.information, list(end.remaining)

        # With the first charge of all, everybody sees the currency.
        asks("stranger")
        for tenant in ("acme", "acmecorp", "o'hara"):
            before = shown()
            price, charged = asks(tenant)
            after = shown()
            assert price > 0
            sharing = {"o'hara", "t8"} if tenant == "o'hara" else {tenant}
            for other in before.keys() - sharing:
                assert after[other] == before[other]
            for each in sharing:
                spent = [amount for amount, *_ in of_everybody(after[each])]
                assert spent == [amount + price for amount, *_ in of_everybody(before[each])]
                id_ = BLOCKS.ids.get(each, BLOCKS.rest)
                for amount, taken, blocks in of_everybody(after[each]):
                    assert (taken, blocks) == (amount, [(id_, amount), ("", 0)])
            # The answer says the same as what is asked for afterwards.
            assert [each[:2] for each in of_everybody(charged)] == [
                each[:2] for each in of_everybody(after[tenant])
            ]


@pytest.mark.slow
def test_callers_cannot_say_of_which_audience_they_are(services: World, tmp_path: Path) -> None:
    """One in the question is refused; an account that no rule gives one is none, on every port."""
    with gateway(services, tmp_path, OF_TENANTS) as asked:

        async def refused(org: str, question: question_pb2.Question) -> grpc.aio.AioRpcError:
            request, metadata = app_pb2.AskRequest(question=question), asked.bearer("acme", org)
            async with asked.stub() as stub:
                with pytest.raises(grpc.aio.AioRpcError) as found:
                    [each async for each in stub.Ask(request, metadata=metadata)]
            return found.value

        claimed = question_pb2.Question(sql=SQL, audience=question_pb2.Audience(name="germany"))
        error = asyncio.run(refused("tenants", claimed))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert (error.details() or "").startswith("question.audience: expected none")
        error = asyncio.run(refused("others", question_pb2.Question(sql=SQL)))
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        found = httpx.post(
            f"http://{asked.ready['broker_address']}/query/sql",
            json={"sql": SQL},
            headers={"Authorization": f"Bearer {asked.token('acme', 'others')}"},
        )
        assert "no audience" in found.json()["exceptions"][0]["message"]


@pytest.mark.slow
def test_the_catalogue_of_a_tenant_has_what_it_is_offered(services: World, tmp_path: Path) -> None:
    """The columns that the audience lists and the one that it is restricted by."""
    with gateway(services, tmp_path, OF_TENANTS) as asked:

        async def columns() -> list[str]:
            async with asked.stub() as stub:
                page = (
                    await stub.GetCatalog(app_pb2.GetCatalogRequest(), metadata=asked.bearer("acme"))
                ).page
            return [column.name for column in page.tables[0].columns]

        assert asyncio.run(columns()) == ["campaign", "tenant"]


@pytest.mark.slow
@pytest.mark.usefixtures("programs_of_postgres")
def test_tools_of_postgresql_find_what_their_caller_is_offered(services: World, tmp_path: Path) -> None:
    """Two callers of different audiences, in turn, each its own columns."""
    listing = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1"
    others = {"accounts": ["t", "others"], "audience": "germany"}
    with (
        gateway(services, tmp_path, [*OF_TENANTS, others], catalogue=True) as asked,
        connected(asked, "acme") as tenant,
        connected(asked, "ana", "others") as other,
    ):
        for connection in (tenant, other):
            wait_for_catalogue(connection)
        for _ in range(2):
            assert tenant.execute(listing).fetchall() == [("campaign",), ("m",), ("tenant",)]
            assert other.execute(listing).fetchall() == [("campaign",), ("country",), ("m",), ("tenant",)]
        assert tenant.execute("SELECT current_database() FROM pg_catalog.pg_class LIMIT 1").fetchall() == [
            ("gris",)
        ]


@pytest.mark.slow
def test_old_answers_are_shown_to_whom_they_are_still_offered(
    services: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An account that is of another audience by now is listed what it asked, without numbers, and asks anew."""

    async def listed(asked: Asked) -> app_pb2.PastRelease:
        async with asked.stub() as stub:
            found = await stub.ListReleases(app_pb2.ListReleasesRequest(), metadata=asked.bearer("t9"))
        release: app_pb2.PastRelease = found.releases[-1]
        return release

    with gateway(services, tmp_path, OF_TENANTS) as asked:
        first = asyncio.run(answer(asked, "t9", request_id="one")).chunk.noisy_counts
        again = asyncio.run(answer(asked, "t9", request_id="one")).chunk.noisy_counts
        kept = asyncio.run(listed(asked))
        assert list(first) == list(again) == list(kept.elements.noisy_counts)
    with gateway(services, tmp_path, [{"accounts": ["t"], "audience": "germany"}]) as asked:
        past = asyncio.run(listed(asked))
        assert (past.question.sql, past.elements_omitted, past.not_offered) == (SQL, True, True)
        assert not past.elements.noisy_counts
        require_named_alone(PastResult.of(past), capsys)
        assert not past.result.shown.HasField("bottom")
        with pytest.raises(grpc.aio.AioRpcError, match="by an audience that was offered other rows"):
            asyncio.run(answer(asked, "t9", request_id="one"))
        everybody = sum(asyncio.run(answer(asked, "t9")).chunk.noisy_counts)
        assert abs(everybody - sum(TENANTS.values()) / 2) < NEAR
    with gateway(services, tmp_path, []) as asked:
        # One that knows of no audiences shows nothing under a policy that has them.
        assert asyncio.run(listed(asked)).elements_omitted
        with pytest.raises(grpc.aio.AioRpcError, match="the policy answers audiences alone"):
            asyncio.run(answer(asked, "t9"))


def require_named_alone(past: PastResult, capsys: pytest.CaptureFixture[str]) -> None:
    """Assert that a result is not said to be too large, or to have cost nothing."""
    print_past_results([past], as_json=False)
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "not offered" in printed
    assert "0 calls" not in printed
    assert past.to_dict()["not_offered"]
    assert past_answer_of(past)["not_offered"]


def test_a_segment_that_no_account_has_is_named() -> None:
    """What stands there is said, and what may."""
    with pytest.raises(ValidationError, match=r"expected account\[0\] to account\[3\], got 'account\[9\]'"):
        AudienceRule(accounts=["a"], audience="s", values={"city": "account[9]"})
