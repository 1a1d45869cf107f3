"""Releases that are kept: what they add up to is paid for, whichever callers leave, wait or lose their account."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc
from gris_api.budget.v1.budget_pb2 import Account

from pinot_connector import AsyncPrivateClient
from pinot_connector.embedded import Ports
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ServiceRefused, ServiceUnavailable
from pinot_connector.known_accounts import KnownAccounts
from pinot_connector.release_store import Found, KeptRelease, MemoryReleaseStore
from pinot_connector.reservations import Reservation
from tests.support.clients import SHORT, client_of
from tests.support.embedded import UNHURRIED, embedded
from tests.support.relay import relayed
from tests.support.rings import needs
from tests.support.world import BUDGET, POLICY, World, new_account, write_growing
from tests.unit.pinot_connector.held_budget import POOR, WAITING, held_account
from tests.unit.pinot_connector.watched_engine import Watched

ASKS = replace(SHORT, account_open=0)


class SlowStore(MemoryReleaseStore):
    """As a database whose write takes a moment."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Keeps it as the threads of a stored release store do: a cancellation does not stop the write."""
        self.begun.set()
        writing = asyncio.ensure_future(super().keep(query_id, kept))
        await asyncio.shield(writing)
        await asyncio.sleep(0.2)
        return writing.result()


async def test_callers_who_leave_while_their_release_is_kept_have_paid_for_it(
    world: World, engine: DuckDBEngine
) -> None:
    """So what is kept is bounded by what budgets buy: of eight such callers, those without budget keep nothing."""
    store = SlowStore()
    async with client_of(world, engine, account=new_account(POOR), timeouts=SHORT, releases=store) as client:
        for number in range(8):
            where = {"article_id": f"no article {number}"}
            asking = asyncio.ensure_future(client.histogram("feedback", "cohort", where=where))
            begun = asyncio.ensure_future(store.begun.wait())
            await asyncio.wait((asking, begun), return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            store.begun.clear()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        (*_, level) = await client.remaining()
        kept = await store.statistics()
    assert (kept.unpaid, level.reserved.information) == (0, 0)
    assert 0 < kept.releases <= level.spent.calls + level.spent.information


async def test_an_account_does_not_wait_for_the_budget_of_another_one(
    world: World, engine: DuckDBEngine
) -> None:
    """Both ask the same question; the budget of the first is held, that of the second is free."""
    account = new_account(POOR)
    async with client_of(world, engine, account=account, timeouts=replace(WAITING, budget_held=6.0)) as first:
        second = first.on_behalf_of(new_account().split("/"))
        async with held_account(world, first, account) as holder:
            waits = asyncio.ensure_future(first.histogram("feedback", "cohort", where={"score": 1}))
            await asyncio.sleep(1)
            began = time.monotonic()
            result = await second.histogram("feedback", "cohort", where={"score": 1})
            took = time.monotonic() - began
            assert took < 2, f"the second account waited {took:.1f} s for budget that the first one lacks"
            assert not waits.done()
            await holder.free()
            late = await waits
        levels = [(await each.remaining())[-1] for each in (first, second)]
    assert (result.rows, result.release_id) == (late.rows, late.release_id)
    assert [(1, 0), (1, 0)] == [(each.spent.information, each.reserved.information) for each in levels]


@pytest.mark.parametrize("others", [0, 1, 5])
async def test_those_who_waited_for_budget_ask_the_engine_only_for_what_nobody_has_kept(
    world: World, tmp_path: Path, others: int
) -> None:
    """Others ask while the budget of one is held: all are given one release, and the last for no further query."""
    write_growing(tmp_path / "growing.parquet", members=1000)
    engine = Watched({"growing": tmp_path / "growing.parquet"})
    account = new_account(POOR)
    async with (
        client_of(world, engine, account=account, timeouts=replace(UNHURRIED, budget_held=120)) as first,
        held_account(world, first, account) as holder,
    ):
        asking = [asyncio.ensure_future(first.histogram("growing", "element"))]
        async with asyncio.timeout(60):
            # Where the ledger is quicker than the engine, the query is not begun before there is budget.
            while not engine.asked:  # noqa: ASYNC110 - the engine answers in threads of its own
                await asyncio.sleep(0.02)
        asking += [
            asyncio.ensure_future(
                first.on_behalf_of(new_account().split("/")).histogram("growing", "element")
            )
            for _ in range(others)
        ]
        await asyncio.wait(asking[1:] or asking, timeout=60 if others else 0.5)
        before = engine.asked.count("run")
        await holder.free()
        results = await asyncio.gather(*asking)
    engine.close()
    assert len({each.release_id for each in results}) == 1
    assert engine.asked.count("run") == (before if others else before + 1)


async def test_a_question_whose_budget_is_taken_again_waits_again(
    world: World, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of two looks whose reservation was too old for the second, while others wanted the budget."""
    made_at_once, taken = Reservation.made_at_once, [True] * 3

    async def made_unless_taken(self: Reservation) -> bool:
        return not (taken and taken.pop()) and await made_at_once(self)

    monkeypatch.setattr(Reservation, "made_at_once", made_unless_taken)
    async with client_of(world, engine) as client:
        result = await client.histogram("feedback", "cohort", where={"score": 1})
        (*_, level) = await client.remaining()
    assert not taken
    assert (1, 1, 0) == (result.charged.information, level.spent.information, level.reserved.information)


class Restored(MemoryReleaseStore):
    """As a database that knows nothing of what it kept until it is restored, which happens during a question."""

    is_empty = False

    async def find(self, query_id: str, account: tuple[str, ...]) -> Found | None:
        """Returns what is kept once it is restored."""
        return None if self.is_empty else await super().find(query_id, account)

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Forgets what it is given before it is restored."""
        if not self.is_empty:
            return await super().keep(query_id, kept)
        self.is_empty = False
        return kept


async def test_a_release_that_the_ledger_refuses_gives_way_to_the_one_that_was_paid_for(
    world: World, tmp_path: Path
) -> None:
    """Rows are deleted meanwhile: what was drawn again is another release, and is neither charged nor shown."""
    path, store = tmp_path / "growing.parquet", Restored()
    write_growing(path, members=1000)
    engine = Watched({"growing": path})
    async with client_of(world, engine, releases=store) as client:
        before = await client.histogram("growing", "element")
        store.is_empty = True
        write_growing(path, members=999)
        after = await client.histogram("growing", "element")
        (*_, level) = await client.remaining()
    engine.close()
    assert 2 == engine.asked.count("run")
    assert (before.release_id, before.rows) == (after.release_id, after.rows)
    assert (0, 1, 0) == (after.charged.information, level.spent.information, level.reserved.information)


@dataclass(frozen=True)
class Closable:
    """Clients of an account, one of which asks each time whether it is open, and the ledger's administrator."""

    client: AsyncPrivateClient
    asking: AsyncPrivateClient
    admin: admin_pb2_grpc.BudgetAdminServiceAsyncStub

    async def end(self, change: str) -> None:
        """Closes the account, or its company."""
        eve, named = Account(path=["t", "eve"]), {"reason": "left", "request_id": change}
        account = Account(path=["t"]) if change == "close the company" else eve
        await self.admin.CloseAccount(admin_pb2.CloseAccountRequest(account=account, **named))

    async def reopen(self) -> None:
        """Opens it again."""
        eve = Account(path=["t", "eve"])
        await self.admin.ReopenAccount(
            admin_pb2.ReopenAccountRequest(account=eve, reason="back", request_id="reopen")
        )

    async def refused(
        self, where: dict[str, int] | None = None, by: AsyncPrivateClient | None = None
    ) -> tuple[str, str]:
        """Asks, and returns reason and text of the refusal."""
        with pytest.raises(ServiceRefused) as refusal:
            await (by or self.client).histogram("feedback", "cohort", where=where)
        return refusal.value.reason, str(refusal.value)


@pytest.fixture
@needs("process")
async def closable(engine: DuckDBEngine, tmp_path: Path, starts_processes: None) -> AsyncIterator[Closable]:
    """Gives an account that has paid for one question."""
    with embedded(tmp_path, POLICY, BUDGET, ports=Ports(admin=0)) as services:
        async with (
            client_of(services, engine, account="t/eve", timeouts=SHORT) as client,
            client_of(services, engine, account="t/eve", timeouts=ASKS) as asking,
            grpc.aio.insecure_channel(services.admin_address) as channel,
        ):
            assert (await client.histogram("feedback", "cohort")).rows
            stub: admin_pb2_grpc.BudgetAdminServiceAsyncStub = admin_pb2_grpc.BudgetAdminServiceStub(channel)  # type: ignore[assignment]
            yield Closable(client, asking, stub)


@pytest.mark.parametrize("change", ["close", "close the company"])
async def test_a_closed_account_is_given_nothing_that_is_kept(closable: Closable, change: str) -> None:
    """Somebody who has left does not go on reading; the refusal is that of a question not paid for."""
    await closable.end(change)
    refusal = await closable.refused(by=closable.asking)
    assert refusal == await closable.refused({"score": 1}, by=closable.asking)
    assert refusal[0] == "ACCOUNT_CLOSED"


async def test_an_account_that_is_closed_reads_on_for_a_minute_at_most(closable: Closable) -> None:
    """So long the ledger's last answer counts; an account that is opened again is given what is kept at once."""
    before = await closable.client.histogram("feedback", "cohort")
    await closable.end("close")
    assert before.rows == (await closable.client.histogram("feedback", "cohort")).rows
    await closable.refused(by=closable.asking)
    await closable.reopen()
    after = await closable.asking.histogram("feedback", "cohort")
    assert (before.rows, 0) == (after.rows, after.charged.information)


async def test_a_dead_ledger_keeps_back_what_is_paid_for_a_minute_after_its_last_answer(
    world: World, engine: DuckDBEngine
) -> None:
    """Whether the account is closed is not known any more, so nothing is given."""
    async with relayed(world) as relay:
        options: dict[str, Any] = {"dp": world.dp, "budget": relay.address, "account": new_account()}
        async with (
            AsyncPrivateClient(engine=engine, timeouts=SHORT, **options) as client,
            AsyncPrivateClient(engine=engine, timeouts=ASKS, **options) as asking,
        ):
            paid = await client.histogram("feedback", "cohort")
            await asking.histogram("feedback", "cohort")
            relay.refusals["GetBudget"] = grpc.StatusCode.UNAVAILABLE
            assert paid.rows == (await client.histogram("feedback", "cohort")).rows
            with pytest.raises(ServiceUnavailable):
                await asking.histogram("feedback", "cohort")


async def test_what_is_remembered_of_accounts_is_bounded() -> None:
    """The account that was asked about longest ago is forgotten first."""
    remembered, asked = KnownAccounts(known_seconds=60, most=2), list[str]()

    async def look(name: str) -> None:
        async def ask() -> bool:
            asked.append(name)
            return name == "b"

        assert (name == "b") == await remembered.is_closed((name,), ask)

    for name in "abacacab":
        await look(name)
    assert "".join(asked) == "abcab"


async def test_many_who_ask_at_once_whether_an_account_is_closed_ask_the_ledger_once() -> None:
    """All get the one answer, which is remembered afterwards."""
    accounts, may, asked = KnownAccounts(known_seconds=60), asyncio.Event(), list[str]()

    async def ask() -> bool:
        asked.append("x")
        await may.wait()
        return True

    waiting = [asyncio.create_task(accounts.is_closed(("app", "new"), ask)) for _ in range(64)]
    await asyncio.sleep(0)
    may.set()
    assert {*await asyncio.gather(*waiting)} == {True}
    assert await accounts.is_closed(("app", "new"), ask)
    assert len(asked) == 1
