"""Analysts who leave and come back, while all around them is killed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import budget_pb2

from tests.campaigns.chaos.administrator import CALL_SECONDS, Administrator
from tests.campaigns.chaos.clients import Client
from tests.campaigns.chaos.history import Amount

TEAM = ("roomy", "leavers")
# Each changes the limits of a root that is charged, which everybody then looks up again.
PAUSE_SECONDS = 1.0


@dataclass
class Leavers:
    """Each account is closed and opened again, and then charged once."""

    client: Client
    administrator: Administrator
    returned: int = 0

    async def work(self, stop: asyncio.Event) -> None:
        """Let one after another leave and come back until it is stopped."""
        while not stop.is_set():
            account = (*TEAM, f"a{self.returned}")
            await self._leave(budget_pb2.Account(path=account))
            await self.client.charge_once(account, Amount(1, 1))
            self.returned += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _leave(self, account: budget_pb2.Account) -> None:
        ids = [self.client.load.new_id() for _ in range(2)]
        closing = pb.CloseAccountRequest(account=account, reason="left", request_id=ids[0])
        opening = pb.ReopenAccountRequest(account=account, reason="is back", request_id=ids[1])
        await self.administrator.until_answered(lambda stub: stub.CloseAccount(closing, timeout=CALL_SECONDS))
        await self.administrator.until_answered(
            lambda stub: stub.ReopenAccount(opening, timeout=CALL_SECONDS)
        )
