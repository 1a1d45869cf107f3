"""An account that is closed is shown nothing any more, not even its own history."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc
from gris_api.budget.v1.budget_pb2 import Account

from gris_gateway.admission import GatewayAdmission
from gris_gateway.history import History
from gris_gateway.questions import Questions
from gris_gateway.rate_limits import CallerLimits, Limiter
from gris_gateway.service import PrivateQueryServicer
from gris_serving.instrumentation import NOTHING
from pinot_connector.channels import Timeouts
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.embedded import Ports
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.questions import sql_question
from pinot_connector.release_store import MemoryReleaseStore
from tests.support.clients import SHORT
from tests.support.embedded import embedded
from tests.support.gateways import stub_of
from tests.support.pki import Issuer
from tests.support.relay import relayed
from tests.support.rings import needs
from tests.support.world import BUDGET, COFACTS, POLICY, World
from tests.unit.gris_gateway.calls import TOP, ended
from tests.unit.gris_gateway.token_world import AUDIENCE, known_by_tokens

ASKS = replace(SHORT, account_open=0)
ASK = app_pb2.AskRequest(question=TOP, request_id="mine")
OK, REFUSED = grpc.StatusCode.OK, grpc.StatusCode.FAILED_PRECONDITION


@dataclass(frozen=True)
class Served:
    """A gateway in this process, for callers with a token."""

    stub: Any
    issuer: Issuer

    async def asked(self, who: str, request: app_pb2.AskRequest = ASK) -> grpc.StatusCode:
        """Ask, under one id unless said, and return how it ends."""
        return await ended(self.stub.Ask(request, metadata=self._shown(who), timeout=30))

    async def listed(self, who: str) -> int | grpc.StatusCode:
        """Return how many results the history lists, or how the call ends."""
        try:
            page = await self.stub.ListReleases(
                app_pb2.ListReleasesRequest(), metadata=self._shown(who), timeout=30
            )
        except grpc.aio.AioRpcError as error:
            return error.code()
        return len(page.releases)

    def _shown(self, who: str) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self.issuer.token(AUDIENCE, sub=who)}")]


@asynccontextmanager
async def served(
    dp: str, budget: str, issuer: Issuer, store: MemoryReleaseStore, timeouts: Timeouts = SHORT
) -> AsyncIterator[Served]:
    """Serve what a gateway with a release store does."""
    engine = DuckDBEngine({"feedback": COFACTS})
    async with AsyncPrivateClient(
        dp=dp, budget=budget, account="none", engine=engine, timeouts=timeouts, releases=store
    ) as client:
        limiter = Limiter(CallerLimits(1000, 1000, 8, 64), clock=time.monotonic)
        server = grpc.aio.server(interceptors=(GatewayAdmission(known_by_tokens(issuer), limiter, NOTHING),))
        questions = Questions(client, History(store))
        servicer = PrivateQueryServicer(questions)
        app_pb2_grpc.add_PrivateQueryServiceServicer_to_server(servicer, NOTHING.before(server))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Served(stub_of(channel), issuer)
        await server.stop(None)
        await questions.finish()
    engine.close()


@dataclass(frozen=True)
class Closable:
    """Gateways, one of which asks each time whether an account is open, and the administrator of their ledger."""

    gateway: Served
    asking: Served
    admin: admin_pb2_grpc.BudgetAdminServiceAsyncStub

    async def end(self, change: str) -> None:
        """Close Eve's account, or all of `app`."""
        eve, named = Account(path=["app", "eve"]), {"reason": "left", "request_id": change}
        account = Account(path=["app"]) if change == "close all" else eve
        await self.admin.CloseAccount(admin_pb2.CloseAccountRequest(account=account, **named))


@pytest.fixture
@needs("process")
async def closable(tmp_path: Path, starts_processes: None) -> AsyncIterator[Closable]:
    """Give a gateway at which Eve and Bob have paid for one question each."""
    with embedded(tmp_path, POLICY, BUDGET, ports=Ports(admin=0)) as services:
        addresses = services.dp_address, services.budget_address
        shared = Issuer(tmp_path), MemoryReleaseStore()
        async with (
            served(*addresses, *shared) as gateway,
            served(*addresses, *shared, ASKS) as asking,
            grpc.aio.insecure_channel(services.admin_address) as channel,
        ):
            assert [OK, OK] == [await gateway.asked(who) for who in ("eve", "bob")]
            stub: admin_pb2_grpc.BudgetAdminServiceAsyncStub = admin_pb2_grpc.BudgetAdminServiceStub(channel)  # type: ignore[assignment]
            yield Closable(gateway, asking, stub)


@pytest.mark.parametrize(("change", "others"), [("close", 1), ("close all", REFUSED)])
async def test_the_history_of_a_closed_account_is_not_told(
    closable: Closable, change: str, others: int | grpc.StatusCode
) -> None:
    """Neither as a list nor by the id of a request; others read on unless they are closed too."""
    await closable.end(change)
    assert await closable.asking.listed("eve") is REFUSED
    assert await closable.asking.asked("eve") is REFUSED
    assert await closable.asking.listed("bob") == others


async def test_a_history_is_told_for_a_minute_at_most_and_again_once_it_is_reopened(
    closable: Closable,
) -> None:
    """So long the ledger's last answer counts, as for repeats."""
    assert await closable.gateway.listed("eve") == 1
    await closable.end("close")
    assert await closable.gateway.listed("eve") == 1
    assert await closable.gateway.asked("eve") is OK
    assert await closable.asking.listed("eve") is REFUSED
    assert await closable.asking.asked("eve") is REFUSED
    eve = Account(path=["app", "eve"])
    request = admin_pb2.ReopenAccountRequest(account=eve, reason="back", request_id="reopen")
    await closable.admin.ReopenAccount(request)
    assert await closable.asking.listed("eve") == 1
    assert await closable.asking.asked("eve") is OK


async def test_while_the_ledger_is_silent_no_history_is_told(world: World, tmp_path: Path) -> None:
    """It is not known whether the account is closed. Where nothing is kept, the ledger is not asked."""
    shared = Issuer(tmp_path), MemoryReleaseStore()
    async with (
        relayed(world) as relay,
        served(world.dp, relay.address, *shared) as gateway,
        served(world.dp, relay.address, *shared, ASKS) as asking,
    ):
        assert await gateway.asked("silent") is OK
        assert await gateway.listed("silent") == await asking.listed("silent") == 1
        relay.refusals["GetBudget"] = grpc.StatusCode.UNAVAILABLE
        assert await gateway.listed("silent") == 1
        assert await asking.listed("silent") is grpc.StatusCode.UNAVAILABLE
        assert await asking.asked("silent") is grpc.StatusCode.UNAVAILABLE
        assert await gateway.listed("nobody-yet") == 0
        faulty = app_pb2.AskRequest(question=sql_question("SELECT nope"), request_id="faulty")
        assert await asking.asked("silent", faulty) is grpc.StatusCode.INVALID_ARGUMENT
        relay.refusals.clear()
        # The ledger is asked again once it was found to be alive.
        for _ in range(200):
            if (listed := await asking.listed("silent")) is not grpc.StatusCode.UNAVAILABLE:
                break
            await asyncio.sleep(0.05)
        assert listed == 1
