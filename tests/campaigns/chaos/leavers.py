"""Analysts who leave and are forgotten, each under the name of the one before, while all around them is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import grpc
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import budget_pb2

from tests.campaigns.chaos.administrator import CALL_SECONDS, Administrator
from tests.campaigns.chaos.clients import Client
from tests.campaigns.chaos.history import Amount

PEOPLE_OF_A_NAME = 3
TEAM = ("roomy", "leavers")
# Each changes the limits of a root that is charged, which everybody then looks up again.
PAUSE_SECONDS = 1.0


@dataclass
class Leavers:
    """They take nothing, so that they may be forgotten at once; the last one of each name charges, and stays."""

    client: Client
    administrator: Administrator
    forgotten: int = 0
    _names: int = 0

    async def work(self, stop: asyncio.Event) -> None:
        """Let one after another come and leave until it is stopped."""
        while not stop.is_set():
            account = (*TEAM, f"a{self._names}")
            self._names += 1
            for _ in range(PEOPLE_OF_A_NAME):
                await self.client.touch_unseen(account)
                await self._leave(budget_pb2.Account(path=account))
                await asyncio.sleep(PAUSE_SECONDS)
            await self.client.charge_once(account, Amount(1, 1))

    async def _leave(self, account: budget_pb2.Account) -> None:
        ids = [self.client.load.new_id() for _ in range(2)]
        closing = pb.CloseAccountRequest(account=account, reason="left", request_id=ids[0])
        forgetting = pb.ForgetAccountRequest(account=account, reason="erased", request_id=ids[1])
        await self.administrator.until_answered(lambda stub: stub.CloseAccount(closing, timeout=CALL_SECONDS))
        # Who has not heard of it yet asks under the name meanwhile.
        async with asyncio.TaskGroup() as group:
            group.create_task(self.client.touch_unseen(tuple(account.path)))
            await self.administrator.until_answered(
                lambda stub: _gone(stub.ForgetAccount(forgetting, timeout=CALL_SECONDS))
            )
        self.forgotten += 1


async def _gone(forgetting: Awaitable[Any]) -> None:
    """Wait until there is no such account: also if the answer that it was forgotten is lost."""
    try:
        await forgetting
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
