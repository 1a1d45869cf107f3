"""The load: clients that reserve, settle, release, charge and repeat; a request keeps its id until it is answered."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import grpc
from google.protobuf.json_format import MessageToDict
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from tests.campaigns.chaos.accounts import Accounts, Blocks
from tests.campaigns.chaos.history import (
    NOTHING,
    Amount,
    Fate,
    History,
    Level,
    Path,
    Replay,
    Reported,
)

UNIT = "0123456789abcdef" * 2
EVERYBODY: Blocks = ()
ATTEMPT_SECONDS = 1.0
TIMEOUT_SECONDS = 20.0
INSISTENT_SHARE = 0.9
RELEASE_SHARE = 0.5
PAUSE_SECONDS = 0.05
# Shorter than some pauses of the service, so that some reservations lapse before they are settled.
HOLD_SECONDS = 4
SHORTEST_HOLD_SECONDS = 1

# With a reason of the service's own, these are the ledger's word that nothing was charged.
DECIDED = frozenset(
    (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
    )
)
NO_EFFECT = ("STORE_UNAVAILABLE", "BUDGET_HELD")
CHANNEL_OPTIONS = (
    # Each client has connections of its own, as clients on different machines would.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 250),
    ("grpc.enable_retries", 0),
)

Asked: TypeAlias = pb.ReserveBudgetRequest | pb.UpdateBudgetRequest | pb.ReleaseReservationRequest
_METHODS = {
    pb.ReserveBudgetRequest: "ReserveBudget",
    pb.UpdateBudgetRequest: "UpdateBudget",
    pb.ReleaseReservationRequest: "ReleaseReservation",
}


@dataclass
class Load:
    """What all clients share: whom they ask, what they spend, and what was reported to them."""

    addresses: Sequence[str]
    accounts: Accounts
    rng: random.Random
    history: History = field(default_factory=History)
    answered: list[tuple[Asked, Reported]] = field(default_factory=list)
    acknowledged: int = 0
    known: set[Path] = field(default_factory=set)
    _ids: Any = field(default_factory=itertools.count)

    def acknowledged_at(self, level: Path) -> Amount:
        """Return what was acknowledged at a level so far."""
        found = NOTHING
        for each in self.history.reported:
            if each.account[: len(level)] == level:
                found = found.plus(each.spent)
        return found

    def new_id(self) -> str:
        """Return an id that nothing else in this campaign has."""
        return f"chaos-{next(self._ids)}"

    def record(self, reported: Reported) -> None:
        """Keep what became of a request."""
        self.history.reported.append(reported)
        if reported.fate is Fate.REFUSED:
            self.accounts.refused(reported.account)
        if reported.fate is Fate.ACKNOWLEDGED:
            self.known.add(reported.account)
        if reported.fate is Fate.ACKNOWLEDGED and reported.spent != NOTHING:
            self.acknowledged += 1


@dataclass
class Client:
    """One caller, with a connection of its own to every service; a repeat may go to another one than the first try."""

    load: Load
    stubs: Sequence[budget_pb2_grpc.BudgetServiceAsyncStub]

    async def work(self, stop: asyncio.Event) -> None:
        """Ask one thing after another until it is stopped."""
        kinds = [self.charge, self.settle, self.give_back, self.repeat, self.pay_again]
        while not stop.is_set():
            (kind,) = self.load.rng.choices(kinds, weights=[45, 32, 7, 10, 6])
            await kind()

    async def charge(self) -> None:
        """Deduct directly; now and then without waiting for the answer to be found out."""
        account, most = self.load.accounts.choose()
        request = _charge(self.load, account, most, self.load.accounts.choose_blocks(account))
        await self._ask(request, insistent=self.load.rng.random() < INSISTENT_SHARE)

    async def settle(self) -> None:
        """Reserve, think, and charge no more than was held."""
        account, most = self.load.accounts.choose()
        blocks = self.load.accounts.choose_blocks(account)
        if reservation_id := await self._reserve(account, most, HOLD_SECONDS, blocks):
            await asyncio.sleep(self.load.rng.random() * 0.05)
            cost = Amount(self.load.rng.randint(1, most.information), most.calls)
            request = _charge(self.load, account, cost, blocks, reservation_id)
            await self._ask(request, insistent=self.load.rng.random() < INSISTENT_SHARE)

    async def give_back(self) -> None:
        """Reserve, and release or forget."""
        account, most = self.load.accounts.choose()
        blocks = self.load.accounts.choose_blocks(account)
        reservation_id = await self._reserve(account, most, SHORTEST_HOLD_SECONDS, blocks)
        if reservation_id and self.load.rng.random() < 0.5:
            id_ = self.load.new_id()
            await self._ask(
                pb.ReleaseReservationRequest(
                    account=pb.Account(path=account), reservation_id=reservation_id, request_id=id_
                )
            )

    async def repeat(self) -> None:
        """Repeat something that was answered, and note both answers."""
        if self.load.answered:
            await self.replay(*self.load.rng.choice(self.load.answered))

    async def replay(self, request: Asked, first: Reported) -> bool:
        """Repeat one request until it is answered again, and tell whether it was."""
        again = await self._until_known(request, TIMEOUT_SECONDS)
        if again.answer:
            self.load.history.replays.append(Replay(request.request_id, first.answer, again.answer))
        return bool(again.answer)

    async def pay_again(self) -> None:
        """Charge a release that this account has paid for, under a new id."""
        paid = self.load.rng.choice(self.load.answered)[0] if self.load.answered else None
        if isinstance(paid, pb.UpdateBudgetRequest) and paid.release_id:
            again = pb.UpdateBudgetRequest()
            again.CopyFrom(paid)
            again.request_id = self.load.new_id()
            again.reservation_id = ""
            await self._ask(again)

    async def touch(self, account: Path) -> bool:
        """Let what has lapsed on a root be written: any change does that. Return whether it was answered."""
        reported = await self._ask(_reservation(self.load, account, NOTHING, SHORTEST_HOLD_SECONDS))
        return reported.fate is Fate.ACKNOWLEDGED

    async def charge_once(self, account: Path, cost: Amount) -> None:
        """Deduct directly from an account that nobody else charges."""
        self.load.accounts.used.add(account)
        await self._ask(_charge(self.load, account, cost, EVERYBODY))

    async def levels(self, account: Path, known: Collection[Path] = ()) -> list[tuple[Path, Level]]:
        """Return what the ledger says of an account and of the levels above it; raises AioRpcError.

        What is reserved it tells each account of itself only. Levels above that are known are left out.
        """
        levels = await self._levels(account)
        for above in {account[: len(path)] for path in levels if len(path) < len(account)}:
            above_it = {} if above in known else await self._levels(above)
            for path in [path for path in levels if len(path) == len(above)]:
                del levels[path]
            levels |= {path: level for path, level in above_it.items() if len(path) == len(above)}
        return list(levels.items())

    async def _levels(self, account: Path) -> dict[Path, Level]:
        request = pb.GetBudgetRequest(account=pb.Account(path=account))
        answer = await self._stub().GetBudget(request, timeout=ATTEMPT_SECONDS)
        return {tuple(each.path): _level(each) for each in answer.levels}

    async def _reserve(self, account: Path, most: Amount, seconds: int, blocks: Blocks) -> str:
        reported = await self._ask(_reservation(self.load, account, most, seconds, blocks))
        if reported.fate is not Fate.ACKNOWLEDGED:
            return ""
        return pb.ReserveBudgetResponse.FromString(reported.answer).reservation_id

    async def _ask(self, request: Asked, *, insistent: bool = True) -> Reported:
        # Of an account that the ledger does not know yet no refusal is remembered.
        is_known = tuple(request.account.path) in self.load.known
        reported = await self._until_known(request, TIMEOUT_SECONDS if insistent else 0)
        self.load.record(reported)
        if reported.answer and (is_known or reported.fate is Fate.ACKNOWLEDGED):
            self.load.answered.append((request, reported))
        return reported

    async def _until_known(self, request: Asked, seconds: float) -> Reported:
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        untouched = True
        while True:
            try:
                call = getattr(self._stub(), _METHODS[type(request)])
                return _answered(request, await call(request, timeout=ATTEMPT_SECONDS))
            except grpc.aio.AioRpcError as error:
                if error.code() in DECIDED and _reason(error):
                    return _reported(request, Fate.REFUSED, answer=_refusal(error))
                untouched = untouched and _reason(error) in NO_EFFECT
            if clock() >= end:
                return _reported(request, Fate.UNTOUCHED if untouched else Fate.UNKNOWN)
            await asyncio.sleep(PAUSE_SECONDS * (0.5 + self.load.rng.random()))

    def _stub(self) -> budget_pb2_grpc.BudgetServiceAsyncStub:
        return self.load.rng.choice(self.stubs)


@asynccontextmanager
async def connected(load: Load) -> AsyncIterator[Client]:
    """Give a client with channels of its own."""
    async with AsyncExitStack() as stack:
        channels = [grpc.aio.insecure_channel(each, options=CHANNEL_OPTIONS) for each in load.addresses]
        stubs: list[Any] = [
            budget_pb2_grpc.BudgetServiceStub(await stack.enter_async_context(channel))
            for channel in channels
        ]
        yield Client(load, stubs)


def _reservation(
    load: Load, account: Path, most: Amount, seconds: int, blocks: Blocks = EVERYBODY
) -> pb.ReserveBudgetRequest:
    request = pb.ReserveBudgetRequest(
        account=pb.Account(path=account),
        max_cost=cost_message(most, blocks),
        query_id=f"query-{load.new_id()}",
        request_id=load.new_id(),
    )
    request.ttl.seconds = seconds
    return request


def _charge(
    load: Load, account: Path, cost: Amount, blocks: Blocks, reservation_id: str = ""
) -> pb.UpdateBudgetRequest:
    request_id = load.new_id()
    return pb.UpdateBudgetRequest(
        account=pb.Account(path=account),
        cost=cost_message(cost, blocks),
        request_id=request_id,
        reservation_id=reservation_id,
        # Without a release, only the request id keeps a repeat from being charged again.
        release_id=f"release-{request_id}" if load.rng.random() < RELEASE_SHARE else "",
    )


def _answered(request: Asked, response: Any) -> Reported:
    response.replayed = False
    spent = _amount(response.charged) if isinstance(response, pb.UpdateBudgetResponse) else NOTHING
    reported = _reported(request, Fate.ACKNOWLEDGED, spent, response.SerializeToString(deterministic=True))
    if isinstance(response, pb.ReserveBudgetResponse):
        return replace(reported, held=_amount(response.held), reservation_id=response.reservation_id)
    return reported


def _reported(request: Asked, fate: Fate, spent: Amount = NOTHING, answer: bytes = b"") -> Reported:
    return Reported(
        request.request_id,
        tuple(request.account.path),
        fate,
        most=_amount(request.cost) if isinstance(request, pb.UpdateBudgetRequest) else NOTHING,
        spent=spent,
        answer=answer,
        held=_amount(request.max_cost) if isinstance(request, pb.ReserveBudgetRequest) else NOTHING,
        reservation_id="" if isinstance(request, pb.ReserveBudgetRequest) else request.reservation_id,
        blocks=tuple(request.cost.blocks) if isinstance(request, pb.UpdateBudgetRequest) else (),
    )


def cost_message(amount: Amount, blocks: Blocks = EVERYBODY) -> cost_pb2.Cost:
    """Return an amount in the currency of the campaign."""
    return cost_pb2.Cost(information=amount.information, calls=amount.calls, unit_id=UNIT, blocks=blocks)


def _amount(cost: cost_pb2.Cost) -> Amount:
    return Amount(cost.information, cost.calls)


def _level(message: pb.Level) -> Level:
    return Level(_amount(message.limit), _amount(message.spent), _amount(message.reserved))


def _reason(error: grpc.aio.AioRpcError) -> str:
    for detail in _status(error).details:
        info = ErrorInfo()
        if detail.Unpack(info) and info.domain == "gris.budget":
            return str(info.reason)
    return ""


def _refusal(error: grpc.aio.AioRpcError) -> bytes:
    # The entries of a map have no order on the wire.
    return json.dumps(MessageToDict(_status(error)), sort_keys=True).encode()


def _status(error: grpc.aio.AioRpcError) -> Status:
    packed = dict(tuple(error.trailing_metadata() or ())).get("grpc-status-details-bin", b"")
    return Status.FromString(packed if isinstance(packed, bytes) else packed.encode())
