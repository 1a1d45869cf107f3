"""Callers of the gateways: they ask, leave, and ask again, and note what they are shown."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from tests.campaigns.kills.history import Amount, Heard, Level, Path, Shown
from tests.campaigns.kills.questions import Asked, drawn
from tests.campaigns.kills.stage import ROOMY, SHARED, TIGHT, Stage

ASK_SECONDS = 10.0
POLL_SECONDS = 0.05
# After so many answers there are a new question and new accounts.
QUESTIONS_EACH = 12
LEAVES = 0.15
LONGEST_PAUSE_SECONDS = 0.5
LONGEST_STAY_SECONDS = 0.15
# A killed server is back within a second or two.
_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 300))


@dataclass
class Gateways:
    """Connections to all gateways, for the accounts below every root."""

    stage: Stage
    channels: Sequence[grpc.aio.Channel]
    tokens: dict[str, str]

    async def asked(self, account: Path, asked: Asked, request_id: str, gateway: int) -> Shown:
        """Ask once."""
        stub: Any = app_pb2_grpc.PrivateQueryServiceStub(self.channels[gateway])
        request = app_pb2.AskRequest(
            question=asked.question(), account=budget_pb2.Account(path=account), request_id=request_id
        )
        metadata = [("authorization", f"Bearer {self.tokens[account[0]]}")]
        parts = [part async for part in stub.Ask(request, metadata=metadata, timeout=ASK_SECONDS)]
        return _shown(account, asked, request_id, parts)


def connected(stage: Stage) -> Gateways:
    """Connect; the channels end with the event loop's exit stack of the campaign."""
    channels = [grpc.aio.insecure_channel(each.address, options=_OPTIONS) for each in stage.gateways]
    return Gateways(stage, channels, {root: stage.token(root) for root in (ROOMY, SHARED, TIGHT)})


def _shown(account: Path, asked: Asked, request_id: str, parts: list[app_pb2.AskResponse]) -> Shown:
    end = app_pb2.Result()
    end.CopyFrom(parts[-1].end)
    # An answer that ends early is none.
    assert parts[-1].HasField("end")
    for name in ("charged", "remaining", "replayed"):
        end.ClearField(name)
    content = [part.SerializeToString(deterministic=True) for part in parts[:-1]]
    return Shown(
        account=account,
        asked=asked,
        request_id=request_id,
        query_id=end.shown.query_id,
        release_id=end.shown.release_id,
        content=b"".join((*content, end.SerializeToString(deterministic=True))),
        price=amount_of(end.shown.cost),
        charged=amount_of(parts[-1].end.charged),
        replayed=parts[-1].end.replayed,
    )


def amount_of(cost: cost_pb2.Cost) -> Amount:
    """Return a cost without its currency."""
    return Amount(cost.information, cost.calls)


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Return the gateway's reason for a refusal, or gRPC's code if the gateway gave none."""
    packed = dict(tuple(error.trailing_metadata() or ())).get("grpc-status-details-bin", b"")
    info = ErrorInfo()
    for detail in Status.FromString(packed if isinstance(packed, bytes) else packed.encode()).details:
        if detail.Unpack(info):
            return str(info.reason)
    return f"code {error.code().name}"


@dataclass
class Load:
    """Many callers at once, for as long as it lasts."""

    gateways: Gateways
    rng: random.Random
    heard: Heard = field(default_factory=Heard)
    _ids: itertools.count[int] = field(default_factory=itertools.count)

    async def call(self, stop: asyncio.Event) -> None:
        """Ask one question after another until it is stopped."""
        while not stop.is_set():
            account, asked = self._account(), drawn(self.rng, self._newest)
            self.heard.asked.add((account, asked))
            request_id = f"r{next(self._ids)}" if self.rng.random() < 0.5 else ""
            for _ in range(self.rng.randint(1, 3)):
                if await self._ask(account, asked, request_id):
                    break
                await asyncio.sleep(LONGEST_PAUSE_SECONDS * self.rng.random())

    async def poll_budgets(self, stop: asyncio.Event) -> None:
        """Read the budgets of random accounts again and again."""
        async with grpc.aio.insecure_channel(self.gateways.stage.budget.address, options=_OPTIONS) as channel:
            while not stop.is_set():
                await asyncio.sleep(POLL_SECONDS)
                with suppress(grpc.aio.AioRpcError):
                    self.heard.seen.extend((await levels_of(channel, self._account())).items())

    async def _ask(self, account: Path, asked: Asked, request_id: str) -> bool:
        gateway = self.rng.randrange(len(self.gateways.channels))
        asking = asyncio.ensure_future(self.gateways.asked(account, asked, request_id, gateway))
        stays = self.rng.random() * LONGEST_STAY_SECONDS if self.rng.random() < LEAVES else None
        await asyncio.wait([asking], timeout=stays)
        if not asking.done():
            asking.cancel()
            await asyncio.wait([asking])
            self.heard.left += 1
            return False
        try:
            self.heard.shown.append(asking.result())
        except grpc.aio.AioRpcError as error:
            self.heard.refused[reason_of(error)] += 1
            return False
        return True

    @property
    def _newest(self) -> int:
        return len(self.heard.shown) // QUESTIONS_EACH

    def _account(self) -> Path:
        number = max(0, self._newest - int(self.rng.expovariate(0.2)))
        return self.rng.choice(
            (
                (ROOMY, f"a{number % 40}"),
                (SHARED, f"c{number}", f"a{self.rng.randrange(3)}"),
                (TIGHT, f"a{number}"),
            )
        )


async def levels_of(channel: grpc.aio.Channel, account: Path) -> dict[Path, Level]:
    """Return all levels of an account that have a limit."""
    stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
    request = budget_pb2.GetBudgetRequest(account=budget_pb2.Account(path=account))
    answer = await stub.GetBudget(request, timeout=2)
    return {
        tuple(level.path): Level(*map(amount_of, (level.limit, level.spent, level.reserved)))
        for level in answer.levels
    }
