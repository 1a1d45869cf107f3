"""What an administrator does under load: limits below what is spent, trims, the whole ledger verified."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

from tests.campaigns.chaos.accounts import LOWERED, ROOMY, ROOTS, Accounts
from tests.campaigns.chaos.history import Amount, Path
from tests.campaigns.chaos.stage import Stage

TIMEOUT_SECONDS = 60.0
CALL_SECONDS = 20.0
LONGEST_LOWERED_SECONDS = 1.0
# How far above what was acknowledged so far a late limit is, at most: below what is held then, or soon reached.
LATE_ROOM = Amount(60, 12)

Answer = TypeVar("Answer")


@dataclass
class Administrator:
    """Asks any of the services; what was begun is asked again until it is answered."""

    stage: Stage
    rng: random.Random
    accounts: Accounts
    # What was acknowledged at a level so far.
    acknowledged_at: Callable[[Path], Amount]
    lowered: int = 0
    late: set[Path] = field(default_factory=set)
    trimmed: int = 0
    differences: int = 0
    _ids: int = 0

    async def lower_a_limit(self) -> None:
        """Set a limit below what is spent, and take it back a while later."""
        level = self.rng.choice(LOWERED)
        limit = admin_pb2.Limit(
            information=1,
            calls=1,
            mode=budget_pb2.MODE_ENFORCE,
            period=admin_pb2.PERIOD_SLIDING,
            sliding_days=30,
        )
        await self._set(level, limit)
        await asyncio.sleep(LONGEST_LOWERED_SECONDS * self.rng.random())
        await self._set(level, None)
        self.lowered += 1

    async def limit_a_level_in_use(self) -> None:
        """Set the first limit of a level that is being charged; it stays."""
        level = self.accounts.late_company
        if level not in self.late:
            spent = self.acknowledged_at(level)
            room = Amount(self.rng.randint(0, LATE_ROOM.information), self.rng.randint(0, LATE_ROOM.calls))
            await self._set_late(level, spent.plus(room))

    async def limit_the_rest(self) -> None:
        """Set a limit on each level that was charged without one, so that it can be looked at."""
        for level in sorted(self.accounts.late_companies() - self.late):
            await self._set_late(level, Amount(ROOMY, ROOMY))

    async def _set_late(self, level: Path, most: Amount) -> None:
        limit = admin_pb2.Limit(
            information=most.information,
            calls=most.calls,
            mode=budget_pb2.MODE_ENFORCE,
            period=admin_pb2.PERIOD_NEVER,
        )
        await self._set(level, limit)
        self.late.add(level)

    async def trim(self) -> None:
        """Trim the journal of a root; one that differs is a broken promise."""
        root = budget_pb2.Account(path=[self.rng.choice(ROOTS)])
        reading = admin_pb2.ReadJournalRequest(under=root, at_most=1000)
        page = await self.until_answered(lambda stub: stub.ReadJournal(reading, timeout=CALL_SECONDS))
        if not page.last:
            return
        request = admin_pb2.TrimJournalRequest(account=root, exported=page.last)
        try:
            await self.until_answered(lambda stub: stub.TrimJournal(request, timeout=CALL_SECONDS))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            self.differences += 1
        self.trimmed += 1

    async def verify(self) -> None:
        """Verify every root."""
        request = admin_pb2.VerifyLedgerRequest()
        found = await self.until_answered(lambda stub: stub.VerifyLedger(request, timeout=CALL_SECONDS))
        self.differences += found.different

    async def _set(self, level: Path, limit: admin_pb2.Limit | None) -> None:
        self._ids += 1
        change = admin_pb2.LimitChange(path=level, limit=limit)
        request = admin_pb2.SetLimitsRequest(changes=[change], request_id=f"lower-{self._ids}")
        await self.until_answered(lambda stub: stub.SetLimits(request, timeout=CALL_SECONDS))

    async def until_answered(self, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        """Return what one of the services answers; raises AioRpcError if it refuses."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                address = self.rng.choice(self.stage.services).admin_address
                try:
                    async with grpc.aio.insecure_channel(address) as channel:
                        return await ask(admin_pb2_grpc.BudgetAdminServiceStub(channel))
                except grpc.aio.AioRpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
                await asyncio.sleep(0.1)
