"""Calls to budget_service. A change is retried with one request_id until it is answered or its time is over.

gRPC retries, by the channel's service config, calls whose lost answer does no harm; this module retries the others.
gRPC hides the outcome of every attempt but the last: a charge that was lost and then refused by a dead store would look
like one that had no effect.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
from google.protobuf import duration_pb2
from google.protobuf.message import Message
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pinot_connector import telemetry
from pinot_connector.budgets import Charge, Level, charge_of, levels_of, shortfall_of
from pinot_connector.channels import Timeouts, open_channel
from pinot_connector.circuit_breaker import CircuitBreaker
from pinot_connector.endpoints import Address, named
from pinot_connector.errors import (
    BudgetExhausted,
    GrisError,
    HomeUnavailable,
    IntegrityError,
    OutcomeUnknown,
    ServiceFailed,
    ServiceRefused,
    ServiceUnavailable,
)
from pinot_connector.held_budgets import HeldQueue, HeldQueues
from pinot_connector.known_accounts import KnownAccounts
from pinot_connector.rpc_errors import Service, error_of_rpc

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5
# budget_service holds nothing longer.
LONGEST_HELD_SECONDS = 600

_SERVICE = budget_pb2.DESCRIPTOR.services_by_name["BudgetService"].full_name
# Not the service's own health: a service that is stopping reports that it does not serve, and serves until it ends.
_STORE = health_pb2.HealthCheckRequest(service=f"{_SERVICE}/store")
_RETRIED_BY_GRPC = [f"{_SERVICE}/{method}" for method in ("CheckBudget", "GetBudget", "ReserveBudget")]

# A dead service is noticed by its silence, so its calls need not fail while no replica is connected for a short time.
_SERVICES = (_SERVICE, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)

# Any other status of the health check, even that there is no such service, shows that the service is there.
_DEAD = frozenset((grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED))

_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response")


class BudgetServiceClient:
    """budget_service, as one account sees it."""

    def __init__(self, address: Address, account: Sequence[str], timeouts: Timeouts) -> None:
        self._channel = open_channel(address, _RETRIED_BY_GRPC, waiting=_SERVICES)
        self._stub: budget_pb2_grpc.BudgetServiceAsyncStub = budget_pb2_grpc.BudgetServiceStub(self._channel)  # type: ignore[assignment]
        self._account = budget_pb2.Account(path=account)
        self._address = named(address)
        self._health: Any = health_pb2_grpc.HealthStub(self._channel)  # it has no types for asyncio
        self._timeouts = timeouts
        self._circuit = CircuitBreaker(self._is_alive, self._address, timeouts.budget_silence)
        self._queues = HeldQueues()
        self._known = KnownAccounts(timeouts.account_open)

    def for_account(self, account: Sequence[str]) -> BudgetServiceClient:
        """Returns a client of the same connection for another account."""
        other = copy.copy(self)
        other._account = budget_pb2.Account(path=account)
        return other

    @property
    def queue(self) -> HeldQueue:
        """The account's questions that wait for budget, of all clients of this connection."""
        return self._queues.of(self.account)

    async def reserve(
        self, worst_case: cost_pb2.Cost, query_id: str, *, request_id: str = "", queries: int = 1
    ) -> budget_pb2.ReserveBudgetResponse:
        """Holds the worst case of a question.

        Args:
            worst_case: the worst case.
            query_id: names the question.
            request_id: names the request; the same for a retry after BudgetHeld. Empty: a new one.
            queries: how many queries of the engine the question has, one after the other: it is held as much longer.

        Raises:
            BudgetExhausted: it does not fit; the error says where.
            BudgetHeld: it would fit if no reservation were open; nothing happened.
            ServiceUnavailable, ServiceFailed: no answer came, now or shortly before. What may be held meanwhile lapses
                by itself.
        """
        request = budget_pb2.ReserveBudgetRequest(
            account=self._account,
            max_cost=worst_case,
            query_id=query_id,
            request_id=request_id or new_request_id(),
            ttl=duration_pb2.Duration(seconds=self.seconds_held(queries)),
        )
        try:
            return await self._guarded(self._stub.ReserveBudget, request)
        except BudgetExhausted as refusal:
            raise await self._in_full(refusal, worst_case) from None

    @property
    def seconds_to_charge(self) -> float:
        """The longest that a charge takes, with all its retries."""
        return self._timeouts.budget

    def seconds_held(self, queries: int) -> int:
        """Returns how long the worst case of a question with so many queries is held."""
        once = self._timeouts.reservation
        return max(once, min(queries * once, LONGEST_HELD_SECONDS))

    async def charge(
        self,
        cost: cost_pb2.Cost,
        *,
        reservation_id: str,
        release_id: str,
        query_id: str,
        charge_ticket: bytes,
        policy_statement: str,
    ) -> Charge:
        """Settles a reservation with what the release cost; the statement is the release's, as dp_service made it.

        Raises:
            ReservationOver: the reservation lapsed before.
            IntegrityError: the ledger will not record this release.
            OutcomeUnknown: no answer came that can be read, and the charge may have happened.
        """
        request = budget_pb2.UpdateBudgetRequest(
            account=self._account,
            cost=cost,
            request_id=new_request_id(),
            reservation_id=reservation_id,
            release_id=release_id,
            query_id=query_id,
            charge_ticket=charge_ticket,
            policy_statement=policy_statement,
        )
        asked_at = asyncio.get_running_loop().time()
        try:
            response: budget_pb2.UpdateBudgetResponse = await self._retried(
                self._stub.UpdateBudget, request, self._timeouts.budget
            )
        except ServiceFailed:
            raise OutcomeUnknown(Service.BUDGET, "the service failed while it charged") from None
        finally:
            self._queues.freed(self.account)
        # Of a closed account nothing is charged.
        self._known.learn(self.account, asked_at, is_closed=False)
        try:
            return charge_of(response)
        except IntegrityError:
            raise OutcomeUnknown(Service.BUDGET, "it charged, and its answer cannot be read") from None

    async def cancel(self, reservation_id: str) -> None:
        """Cancels a reservation; if the ledger does not answer soon, the reservation lapses by itself."""
        request = budget_pb2.ReleaseReservationRequest(
            account=self._account, reservation_id=reservation_id, request_id=new_request_id()
        )
        try:
            await self._retried(self._stub.ReleaseReservation, request, self._timeouts.budget_attempt)
        finally:
            self._queues.freed(self.account)

    @property
    def account(self) -> tuple[str, ...]:
        """The account whose budget it is."""
        return tuple(self._account.path)

    async def levels(self, *, with_policy_statements: bool = False) -> Sequence[budget_pb2.Level]:
        """Returns every level of the account that has a limit, from the root account to the account itself.

        Args:
            with_policy_statements: whether each level lists the policy statements of its window's charges.
        """
        request = budget_pb2.GetBudgetRequest(
            account=self._account, with_policy_statements=with_policy_statements
        )
        return (await self._budget(request)).levels

    async def remaining(self, blocks: Sequence[str] = ()) -> tuple[Level, ...]:
        """Returns what the account has left for what these blocks pay, none: all."""
        return levels_of(
            await self._budget(budget_pb2.GetBudgetRequest(account=self._account, blocks=blocks))
        )

    async def is_closed(self) -> bool:
        """Returns whether the account, or a level above it, is closed; known for at most a minute.

        Raises:
            GrisError: the ledger does not answer, and has not within the last minute.
        """

        async def ask() -> bool:
            asked = budget_pb2.GetBudgetRequest(account=self._account, without_levels=True)
            return bool((await self._budget(asked)).closed_level)

        return await self._known.is_closed(self.account, ask)

    async def require_not_closed(self) -> None:
        """Refuses a closed account as the ledger does, known for at most a minute.

        Raises:
            ServiceRefused: the account, or a level above it, is closed.
            GrisError: the ledger does not answer, and has not within the last minute.
        """
        if await self.is_closed():
            raise ServiceRefused(Service.BUDGET, "refused the request (ACCOUNT_CLOSED)", "ACCOUNT_CLOSED")

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    async def _budget(self, request: budget_pb2.GetBudgetRequest) -> budget_pb2.GetBudgetResponse:
        return await self._guarded(self._stub.GetBudget, request)

    async def _in_full(self, refusal: BudgetExhausted, cost: cost_pb2.Cost) -> BudgetExhausted:
        """Returns the refusal with every shortfall; by itself it names only the first."""
        request = budget_pb2.CheckBudgetRequest(account=self._account, cost=cost)
        try:
            check: budget_pb2.CheckBudgetResponse = await self._guarded(self._stub.CheckBudget, request)
            # Something may have become free in between, or be held only; the refusal stands all the same.
            missing = () if check.held else tuple(map(shortfall_of, check.shortfalls))
            return BudgetExhausted(missing or refusal.shortfalls)
        except GrisError:
            return refusal

    async def _guarded(self, call: Callable[..., Awaitable[_Response]], request: _Request) -> _Response:
        """Sends a request whose lost answer does no harm; it fails quickly if the service or its store is dead."""
        return await self._circuit.guarded(lambda: self._once(call, request, self._timeouts.budget_attempt))

    async def _retried(
        self, call: Callable[..., Awaitable[_Response]], request: _Request, seconds: float
    ) -> _Response:
        """Sends one request, with one request_id, until it is answered or its time is over.

        If any attempt may have had an effect, so may the whole: a later "no effect" is only about the later attempt.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        pause = FIRST_PAUSE_SECONDS
        unknown: OutcomeUnknown | ServiceFailed | None = None
        while True:
            try:
                return await self._once(call, request, deadline - clock())
            except (OutcomeUnknown, ServiceFailed) as error:
                # A service that failed may have done so after the effect.
                unknown = error
                last: OutcomeUnknown | ServiceFailed | ServiceUnavailable = error
            except ServiceUnavailable as error:
                last = unknown or error
            if clock() + pause >= deadline:
                raise last
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _once(
        self, call: Callable[..., Awaitable[_Response]], request: _Request, seconds_left: float
    ) -> _Response:
        try:
            with telemetry.remote_call(request) as metadata:
                timeout = min(self._timeouts.budget_attempt, seconds_left)
                response = await call(request, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            translated = error_of_rpc(Service.BUDGET, error, self._address)
            is_silent = isinstance(translated, OutcomeUnknown | ServiceUnavailable)
            # A region without its home answers, and goes on granting what it holds.
            if not is_silent or isinstance(translated, HomeUnavailable):
                self._circuit.heard()
            raise translated from None
        self._circuit.heard()
        return response

    async def _is_alive(self, seconds: float) -> bool:
        try:
            answer = await self._health.Check(_STORE, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            return error.code() not in _DEAD
        return bool(answer.status != health_pb2.HealthCheckResponse.NOT_SERVING)


def new_request_id() -> str:
    """Returns a name for a change: keep it for retries of the same one."""
    return uuid.uuid4().hex
