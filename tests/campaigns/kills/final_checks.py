"""Asks everything once more when all is over: those who paid, somebody new, and the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

from tests.campaigns.kills.callers import Gateways, amount_of, levels_of, reason_of
from tests.campaigns.kills.history import FinalState, Heard, Level, Line, Path, Shown
from tests.campaigns.kills.questions import LIVE, VERSIONS, Asked
from tests.campaigns.kills.stage import RESERVATION_SECONDS, ROOMY, SHARED, TIGHT, VERSION_SECONDS

AT_ONCE = 12
# A busy machine may be late; a question that is never answered ends the campaign.
_LATER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.ABORTED)
LONGEST_SECONDS = 60.0
PAGE = 1000
NEWCOMER: Path = (ROOMY, "newcomer")
_KINDS = {
    admin_pb2.CHARGE_KIND_SETTLED: "settled",
    admin_pb2.CHARGE_KIND_DIRECT: "direct",
    admin_pb2.CHARGE_KIND_FORFEITED: "forfeited",
}


@dataclass(frozen=True)
class _Request:
    account: Path
    asked: Asked
    request_id: str = ""


async def looked(gateways: Gateways, heard: Heard) -> FinalState:
    """Return what everything says; all processes must run, and nobody else may ask."""
    await asyncio.sleep(RESERVATION_SECONDS + 1)
    journal = await _journal(gateways)
    levels = await _levels(gateways, {account for account, _ in heard.asked})
    asking = _Asking(gateways, heard, {(line.account, line.query_id) for line in journal if line.is_answered})
    for version in range(VERSIONS):
        await asking.everything(version)
    after = [line for line in await _journal(gateways) if line.account != NEWCOMER]
    return FinalState(
        journal=journal,
        grown=len(after) - len(journal),
        anew=tuple(asking.anew),
        again=tuple(asking.again),
        repeated=tuple(asking.repeated),
        levels=levels,
        refused=tuple(asking.refused),
        differences=await _differences(gateways),
    )


@dataclass
class _Asking:
    """Asks again, and notes what is shown and what is refused; `paid` has accounts with what they paid for."""

    gateways: Gateways
    heard: Heard
    paid: set[tuple[Path, str]]
    anew: list[Shown] = field(default_factory=list)
    again: list[Shown] = field(default_factory=list)
    repeated: list[tuple[Shown, Shown]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    async def everything(self, version: int) -> None:
        """Ask all that was asked on one version of the table whose version is its rows'."""
        self.gateways.stage.rows.put(LIVE, version)
        await asyncio.sleep(2 * VERSION_SECONDS)
        # The other tables' questions have one version, whatever their rows.
        now = {each for each in self.heard.asked if each[1].table == LIVE or version == 0}
        new = await self._all(_Request(NEWCOMER, asked) for asked in sorted({asked for _, asked in now}))
        self.anew += new.values()
        query_ids = {each.asked: each.query_id for each in new.values()}
        bought = sorted(each for each in now if (each[0], query_ids.get(each[1])) in self.paid)
        self.again += (await self._all(_Request(*each) for each in bought)).values()
        named = {
            _Request(each.account, each.asked, each.request_id): each
            for each in self.heard.shown
            if each.request_id and each.query_id == query_ids.get(each.asked)
        }
        second = await self._all(named)
        self.repeated += [(named[request], shown) for request, shown in second.items()]

    async def _all(self, requests: Iterable[_Request]) -> dict[_Request, Shown]:
        found: dict[_Request, Shown] = {}
        waiting = iter(enumerate(requests))

        async def ask() -> None:
            for number, request in waiting:
                if (shown := await self._answered(request, number)) is not None:
                    found[request] = shown

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(ask())
        return found

    async def _answered(self, request: _Request, number: int) -> Shown | None:
        gateway = number % len(self.gateways.channels)
        async with asyncio.timeout(LONGEST_SECONDS):
            while True:
                try:
                    return await self.gateways.asked(
                        request.account, request.asked, request.request_id, gateway
                    )
                except grpc.aio.AioRpcError as error:
                    if error.code() not in _LATER:
                        self.refused.append(f"{reason_of(error)}: {request}")
                        return None
                await asyncio.sleep(0.1)


async def _levels(gateways: Gateways, accounts: Iterable[Path]) -> dict[Path, Level]:
    found: dict[Path, Level] = {}
    async with grpc.aio.insecure_channel(gateways.stage.budget.address) as channel:
        for account in sorted(accounts):
            found |= await levels_of(channel, account)
    return found


async def _journal(gateways: Gateways) -> tuple[Line, ...]:
    lines: list[Line] = []
    async with grpc.aio.insecure_channel(gateways.stage.admin) as channel:
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        for root in (ROOMY, SHARED, TIGHT):
            request = admin_pb2.ReadJournalRequest(under=budget_pb2.Account(path=[root]), at_most=PAGE)
            is_end = False
            while not is_end:
                page = await stub.ReadJournal(request, timeout=30)
                lines += map(_line, page.entries)
                request.after, is_end = page.last, page.is_end
    return tuple(lines)


def _line(entry: admin_pb2.JournalEntry) -> Line:
    cost, kind = amount_of(entry.cost), _KINDS.get(entry.kind, str(entry.kind))
    return Line(tuple(entry.account.path), entry.query_id, entry.release_id, cost, kind)


async def _differences(gateways: Gateways) -> int:
    async with grpc.aio.insecure_channel(gateways.stage.admin) as channel:
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        return int((await stub.VerifyLedger(admin_pb2.VerifyLedgerRequest(), timeout=60)).different)
