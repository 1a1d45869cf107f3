"""Sharpening through a gateway: each caller pays on its own, and the history lists what was shown."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.dp.v1 import question_pb2

from gris_gateway.admission import GatewayAdmission
from gris_gateway.history import History
from gris_gateway.rate_limits import CallerLimits, Limiter
from gris_gateway.service import PrivateQueryServicer
from gris_serving.instrumentation import NOTHING
from pinot_connector import sharpened_question, structured_question
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import NotSharpenable
from pinot_connector.gateway_client import AsyncGatewayClient, result_of
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.results import PrivateResult
from pinot_connector.rpc_errors import Service, error_of_rpc
from tests.gateway.conftest import stub_of
from tests.gateway.token_world import AUDIENCE, known_by_tokens
from tests.support.clients import client_of
from tests.support.embedded import embedded
from tests.support.pki import Authority, Issuer
from tests.support.rings import needs
from tests.support.world import BUDGET, COFACTS, World

POLICY = """
epsilon_per: 0.5
delta: 1e-6
count_noise: gaussian
tables:
  feedback:
    member: member_id
    contributions:
      {bound: in_query, delta_0: 8, units: 10, names: {delta_1: 4, share: 1/4, max_names: 20}, sharpening: 50}
    measures: {distinct_members: true}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true}
"""
TOP = structured_question("feedback", "article_id", k=5)
SHARPER = sharpened_question(TOP, [13])


@pytest.fixture
@needs("process")
def world(tmp_path: Path) -> Iterator[World]:
    """Both services under the policy above."""
    with embedded(tmp_path, POLICY, BUDGET) as services:
        yield World(services.dp_address, services.budget_address, tmp_path)


class Callers:
    """Callers of a gateway in this process, each known by a token."""

    def __init__(self, stub: Any, issuer: Issuer, client: AsyncGatewayClient) -> None:
        self._stub = stub
        self._issuer = issuer
        self.client = client

    async def asked(self, who: str, question: question_pb2.Question) -> PrivateResult:
        """Ask, and return the result; an error is the one that a gateway's client raises."""
        call = self._stub.Ask(app_pb2.AskRequest(question=question), metadata=self._shown(who), timeout=60)
        try:
            *chunks, end = [part async for part in call]
        except grpc.RpcError as error:
            raise error_of_rpc(Service.GATEWAY, error) from None
        return result_of([each.chunk for each in chunks], end.end)

    async def listed(self, who: str) -> list[app_pb2.PastRelease]:
        """Return the history, newest first."""
        page = await self._stub.ListReleases(app_pb2.ListReleasesRequest(), metadata=self._shown(who))
        return list(page.releases)

    def _shown(self, who: str) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self._issuer.token(AUDIENCE, sub=who)}")]


@asynccontextmanager
async def served(world: World) -> AsyncIterator[Callers]:
    """Serve what a gateway with a release store does."""
    engine, issuer, store = DuckDBEngine({"feedback": COFACTS}), Issuer(world.directory), MemoryReleaseStore()
    async with client_of(world, engine, account="none", releases=store) as client:
        limiter = Limiter(CallerLimits(1000, 1000, 8, 64), clock=time.monotonic)
        server = grpc.aio.server(interceptors=(GatewayAdmission(known_by_tokens(issuer), limiter, NOTHING),))
        servicer = PrivateQueryServicer(client, History(store))
        app_pb2_grpc.add_PrivateQueryServiceServicer_to_server(servicer, NOTHING.before(server))
        port = server.add_insecure_port("127.0.0.1:0")
        authority = Authority.new(world.directory)
        certificate, key = authority.server()
        tls = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
        tls_port = server.add_secure_port("127.0.0.1:0", tls)
        await server.start()
        token = issuer.token_file(AUDIENCE, "token", sub="client")
        credentials = Credentials(ca_file=authority.ca_file, token_file=token)
        async with (
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
            AsyncGatewayClient(Endpoint(f"localhost:{tls_port}", credentials)) as typed,
        ):
            yield Callers(stub_of(channel), issuer, typed)
        await server.stop(None)
        await servicer.finish()
    engine.close()


async def test_callers_sharpen_what_they_have_paid_for(world: World) -> None:
    """A caller who has not is refused by a reason of its own; the history shows both releases as they were shown."""
    async with served(world) as gateway:
        await gateway.asked("eve", TOP)
        result = await gateway.asked("eve", SHARPER)
        assert (result.charged.information, result.charged.calls) == (13, 0)
        assert result.parameters.sharpened is not None
        assert any(row.noisy_count != round(row.noisy_count or 0) for row in result.rows)
        with pytest.raises(NotSharpenable, match="paid"):
            await gateway.asked("bob", SHARPER)
        again = await gateway.asked("eve", SHARPER)
        assert (again.rows, again.charged.information) == (result.rows, 0)
        newest, *_ = await gateway.listed("eve")
        assert newest.question == SHARPER
        assert result_of([newest.elements], newest.result).rows == result.rows
