"""What the history has of a caller who leaves while a result is being kept, and of repeats."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.common.v1.cost_pb2 import Cost

from gris_gateway.admission import GatewayAdmission
from gris_gateway.history import DAY_SECONDS, History
from gris_gateway.questions import Questions
from gris_gateway.rate_limits import CallerLimits, Limiter
from gris_gateway.service import PrivateQueryServicer
from gris_serving.identity import Context
from gris_serving.instrumentation import NOTHING
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Charge
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore, Receipt
from tests.support.clients import client_of
from tests.support.gateways import GatewayWorld, stub_of
from tests.support.pki import Issuer
from tests.support.release_stores import kept, receipt
from tests.support.world import COFACTS
from tests.unit.gris_gateway.calls import TOP, ended
from tests.unit.gris_gateway.token_world import AUDIENCE, known_by_tokens

ASK = app_pb2.AskRequest(question=TOP, request_id="left")


class Watched(PrivateQueryServicer):
    """A gateway's service that says when a question is over for its caller."""

    def __init__(self, questions: Questions) -> None:
        super().__init__(questions)
        self.left = asyncio.Event()

    async def Ask(self, request: app_pb2.AskRequest, context: Context) -> AsyncIterator[app_pb2.AskResponse]:  # noqa: N802
        """Answer, and notice the end."""
        try:
            async for each in super().Ask(request, context):
                yield each
        finally:
            self.left.set()


class SlowHistory(History):
    """A history that keeps nothing before it may."""

    def __init__(self) -> None:
        super().__init__(MemoryReleaseStore())
        self.asked = asyncio.Event()
        self.may = asyncio.Event()
        self.added = asyncio.Event()
        self.accounts: list[Sequence[str]] = []

    async def add(self, account: Sequence[str], release: app_pb2.PastRelease) -> None:
        """Keep a result once it may be kept."""
        self.asked.set()
        await self.may.wait()
        await super().add(account, release)
        self.accounts.append(account)
        self.added.set()


@asynccontextmanager
async def served(
    gateway: GatewayWorld, history: SlowHistory, issuer: Issuer
) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Serve as a gateway with this history, in this process; give the address, and an event for the end of a call."""
    engine = DuckDBEngine({"feedback": COFACTS})
    async with client_of(gateway, engine, account="none") as client:
        limiter = Limiter(CallerLimits(1000, 1000, 8, 64), clock=time.monotonic)
        server = grpc.aio.server(interceptors=(GatewayAdmission(known_by_tokens(issuer), limiter, NOTHING),))
        questions = Questions(client, history)
        servicer = Watched(questions)
        app_pb2_grpc.add_PrivateQueryServiceServicer_to_server(servicer, NOTHING.before(server))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield f"127.0.0.1:{port}", servicer.left
        finally:
            history.may.set()
            await server.stop(None)
            await questions.finish()
    engine.close()


async def test_whoever_leaves_while_a_result_is_being_kept_finds_it(
    gateway: GatewayWorld, tmp_path: Path
) -> None:
    """Another request of its id waits until it is kept, so that nobody pays for it twice."""
    history, issuer = SlowHistory(), Issuer(tmp_path)
    metadata = [("authorization", f"Bearer {issuer.token(AUDIENCE, sub='leaver')}")]
    async with (
        asyncio.timeout(60),
        served(gateway, history, issuer) as (address, left),
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub = stub_of(channel)
        leaving = stub.Ask(ASK, metadata=metadata)
        await history.asked.wait()
        leaving.cancel()
        await left.wait()
        meanwhile = asyncio.create_task(ended(stub.Ask(ASK, metadata=metadata, timeout=20)))
        done, _ = await asyncio.wait([meanwhile], timeout=0.5)
        history.may.set()
        assert (set(), grpc.StatusCode.OK) == (done, await meanwhile)
        found = await history.page(history.accounts[0], 10, None)
    assert ("app", "leaver") == tuple(history.accounts[0])
    assert [("left", 21)] == [(each.request_id, each.result.charged.information) for each in found.releases]


async def test_whoever_leaves_while_the_charge_travels_finds_the_result(
    gateway: GatewayWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has charged and its answer is on the way: nobody waits for the result, and it is kept all the same."""
    charged, may, charging = asyncio.Event(), asyncio.Event(), BudgetServiceClient.charge

    async def slow(budget: BudgetServiceClient, cost: Cost, **ids: Any) -> Charge:
        charge = await charging(budget, cost, **ids)
        charged.set()
        await may.wait()
        return charge

    monkeypatch.setattr(BudgetServiceClient, "charge", slow)
    history, issuer = SlowHistory(), Issuer(tmp_path)
    history.may.set()
    metadata = [("authorization", f"Bearer {issuer.token(AUDIENCE, sub='hasty')}")]
    async with (
        asyncio.timeout(60),
        served(gateway, history, issuer) as (address, _),
        grpc.aio.insecure_channel(address) as channel,
    ):
        leaving = stub_of(channel).Ask(ASK, metadata=metadata)
        await charged.wait()
        leaving.cancel()
        # Long enough for the cancellation to arrive: the question goes on until it is charged.
        await asyncio.sleep(0.2)
        may.set()
        await history.added.wait()
        found = await history.page(history.accounts[0], 10, None)
    assert [("left", 21)] == [(each.request_id, each.result.charged.information) for each in found.releases]


ANA = ("app", "acme", "ana")


class Counting(MemoryReleaseStore):
    """A store that counts what is written."""

    written = 0

    async def add_receipt(self, account: tuple[str, ...], receipt: Receipt) -> None:
        """Counts, and notes it."""
        self.written += 1
        await super().add_receipt(account, receipt)


def shown(*, k: int = 1, request_id: str = "", days_ago: int = 0) -> app_pb2.PastRelease:
    """Return a result of a release that is kept, shown so many days ago."""
    past = app_pb2.PastRelease()
    past.CopyFrom(receipt("q", request_id=request_id, k=k).shown)
    past.result.shown.release_id = "r"
    past.released_at.GetCurrentTime()
    past.released_at.seconds -= days_ago * DAY_SECONDS
    return past


async def test_a_repeat_is_noted_once_a_day() -> None:
    """It adds nothing to the list, and waits for no disk; the next day it is the newest again."""
    store = Counting()
    await store.keep("q", kept())
    history = History(store)
    for _ in range(3):
        await history.add(ANA, shown(days_ago=1))
    assert 1 == store.written
    await history.add(ANA, shown(k=2, days_ago=1))
    await history.add(("app", "acme", "bob"), shown(days_ago=1))
    assert 3 == store.written
    await history.add(ANA, shown())
    assert 4 == store.written
    listed = (await history.page(ANA, 10, None)).releases
    assert [1, 2] == [each.result.shown.element_count for each in listed]


async def test_a_request_with_an_id_is_always_noted() -> None:
    """Its caller may have lost the answer, and comes back for it by the id."""
    store = Counting()
    await store.keep("q", kept())
    history = History(store)
    for name in ("", "one", "two"):
        await history.add(ANA, shown(request_id=name))
    assert None is not await history.find(ANA, "one")
    assert None is not await history.find(ANA, "two")
    assert 3 == store.written


async def test_only_what_was_shown_of_a_kept_release_is_noted() -> None:
    """The elements come from the release; a result of another release has its own."""
    store = Counting()
    await store.keep("q", kept())
    history = History(store)
    await history.add(ANA, shown(k=2, request_id="x"))
    found = await history.find(ANA, "x")
    assert found is not None
    assert ["secret-element-0", "secret-element-1"] == list(found.elements.columns[0].strings.values)
    other = shown(k=2, request_id="other")
    other.result.shown.release_id = "another"
    await history.add(ANA, other)
    assert other == await history.find(ANA, "other")
