"""The gRPC service: translates messages, calls the store and maps errors. It decides nothing itself."""
# ruff: noqa: N802 - the names of the RPCs are the proto's

from __future__ import annotations

import asyncio
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc
from msgspec import structs

from budget_service.configuration.budget_file import Expired
from budget_service.ledger.account_statement import AccountStatement, check
from budget_service.ledger.act import Act
from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    ClockResumed,
    CurrencyChanged,
    Exhausted,
    Held,
    LimitsSet,
    Reason,
    Refused,
    Reserved,
)
from budget_service.ledger.values import Account, Mode, parse_blocks
from budget_service.server import messages, responses, rpc_errors
from budget_service.server.limit_cache import LimitCache
from budget_service.server.policy_statements import (
    TooManyStatementsError,
    policy_statements_of,
)
from budget_service.server.region_shares import add_region_shares
from budget_service.server.request_runner import Context, RequestRunner
from budget_service.server.settings import LiveSettings
from budget_service.server.tickets import Release, TicketVerifier
from budget_service.stores.interface import Store
from budget_service.tuning import Tuning

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["BudgetService"].full_name
MAX_REQUEST_BYTES = 64 * 1024
"""The largest request: ten times the largest one that is not refused for another reason."""
MAX_RESPONSE_BYTES = 16 * 1024 * 1024

Success = TypeVar("Success", Reserved, Charged, Cancelled, LimitsSet, CurrencyChanged, ClockResumed)

log = logging.getLogger(__name__)


class SpendingService(budget_pb2_grpc.BudgetServiceServicer, ABC):
    """The RPCs of `gris.budget.v1.BudgetService`, whoever answers; what they promise is written in the proto."""

    def __init__(self, settings: LiveSettings, calls: RequestRunner) -> None:
        self._settings = settings
        self._runner = calls
        self._charge_response_builders = responses.ChargeResponseBuilders()

    def forget_limits(self) -> None:
        """Drop cached limits; to be called when the store may have been replaced or set back."""

    async def CheckBudget(self, request: pb.CheckBudgetRequest, context: Context) -> pb.CheckBudgetResponse:
        """Return whether a cost would be allowed now."""
        return await self._runner.answer(self._check(request), context, request)

    async def ReserveBudget(
        self, request: pb.ReserveBudgetRequest, context: Context
    ) -> pb.ReserveBudgetResponse:
        """Reserve the worst-case cost of a question."""
        return await self._runner.answer(self._reserve(request), context, request)

    async def UpdateBudget(
        self, request: pb.UpdateBudgetRequest, context: Context
    ) -> pb.UpdateBudgetResponse:
        """Charge the cost of a release."""
        return await self._runner.answer(self._update(request), context, request)

    async def ReleaseReservation(
        self, request: pb.ReleaseReservationRequest, context: Context
    ) -> pb.ReleaseReservationResponse:
        """Cancel a reservation."""
        return await self._runner.answer(self._cancel(request), context, request)

    async def GetBudget(self, request: pb.GetBudgetRequest, context: Context) -> pb.GetBudgetResponse:
        """Return the state of a budget."""
        return await self._runner.answer(self._get(request), context, request)

    @abstractmethod
    async def _check(self, request: pb.CheckBudgetRequest) -> pb.CheckBudgetResponse: ...

    @abstractmethod
    async def _get(self, request: pb.GetBudgetRequest) -> pb.GetBudgetResponse: ...

    @abstractmethod
    async def _reserved(
        self, message: pb.ReserveBudgetRequest, reserve: Reserve
    ) -> pb.ReserveBudgetResponse: ...

    @abstractmethod
    async def _charged(self, message: pb.UpdateBudgetRequest, charge: Charge) -> pb.UpdateBudgetResponse: ...

    @abstractmethod
    async def _cancelled(
        self, message: pb.ReleaseReservationRequest, cancel: CancelReservation
    ) -> pb.ReleaseReservationResponse: ...

    @abstractmethod
    async def _earlier_answer(self, charge: Charge) -> Answer | None: ...

    @abstractmethod
    async def _query_id_of(self, account: Account, reservation_id: str) -> str | None: ...

    async def _reserve(self, message: pb.ReserveBudgetRequest) -> pb.ReserveBudgetResponse:
        # Reservation ids cannot be guessed: only a caller that received one can settle or cancel the reservation.
        forfeits = self._settings.current.configuration.expired is Expired.FORFEIT
        account = messages.parse_account(message.account)
        reserve = messages.parse_reserve(message, account, secrets.token_hex(16), forfeits=forfeits)
        return await self._reserved(message, reserve)

    async def _update(self, message: pb.UpdateBudgetRequest) -> pb.UpdateBudgetResponse:
        account = messages.parse_account(message.account)
        worst = self._settings.current.configuration.counts_worst_cases
        charge = messages.parse_charge(message, account, worst_case_above=worst)
        if (tickets := self._settings.current.tickets) is not None:
            try:
                for each in (charge, *charge.further):
                    await self._require_ticket(tickets, each)
            except rpc_errors.RefusalError:
                # The key may have been removed since this same charge, with its ticket, was answered.
                if (answer := await self._earlier_answer(charge)) is not None:
                    return self._shown_charge(answer, charge)
                raise
            # The ledger may have been asked about the ticket meanwhile, and the configuration been reloaded: how levels
            # above count has to be of the same configuration as their limits.
            worst = self._settings.current.configuration.counts_worst_cases
            charge = structs.replace(charge, worst_case_above=worst)
        return await self._charged(message, charge)

    async def _cancel(self, message: pb.ReleaseReservationRequest) -> pb.ReleaseReservationResponse:
        account = messages.parse_account(message.account)
        return await self._cancelled(message, messages.parse_cancel(message, account))

    async def _require_ticket(self, tickets: TicketVerifier, charge: Charge) -> None:
        query_id: str | None = charge.query_id
        if charge.reservation_id and not query_id:
            query_id = await self._query_id_of(charge.account, charge.reservation_id)
        if query_id is None:
            # The reservation is not open, and no later one will have its id: the ledger can only replay an earlier
            # answer to this same request, with its ticket, or refuse it.
            return
        about = (charge.cost, charge.unit_id, charge.policy_statement, charge.blocks)
        release = Release(charge.release_id, query_id, *about)
        if not tickets.is_authentic(charge.charge_ticket, release):
            raise rpc_errors.RefusalError(rpc_errors.ticket_not_authentic())

    @staticmethod
    def _shown_reservation(answer: Answer, reserve: Reserve) -> pb.ReserveBudgetResponse:
        outcome = success(answer, Reserved, reserve)
        return pb.ReserveBudgetResponse(
            reservation_id=outcome.reservation_id,
            held=responses.cost_message(outcome.held, reserve.unit_id, reserve.blocks),
            expires_at=responses.timestamp(outcome.expires_at),
            already_paid=outcome.already_paid,
            replayed=answer.replayed,
        )

    def _shown_charge(self, answer: Answer, charge: Charge) -> pb.UpdateBudgetResponse:
        outcome = success(answer, Charged, charge)
        return self._charge_response_builders.filled(outcome, charge, replayed=answer.replayed)

    @staticmethod
    def _shown_end(answer: Answer, cancel: CancelReservation) -> pb.ReleaseReservationResponse:
        outcome = success(answer, Cancelled, cancel)
        returned = responses.cost_message(outcome.returned, outcome.unit_id)
        return pb.ReleaseReservationResponse(returned=returned, replayed=answer.replayed)


class BudgetService(SpendingService):
    """The RPCs, answered by a ledger."""

    def __init__(
        self,
        store: Store,
        settings: LiveSettings,
        calls: RequestRunner,
        tuning: Tuning,
        limits: LimitCache,
    ) -> None:
        super().__init__(settings, calls)
        self._store = store
        self._limits = limits
        self._tuning = tuning
        self._reads = asyncio.Semaphore(tuning.statement_readers)

    def forget_limits(self) -> None:
        """Drop cached limits."""
        self._limits.forget()

    async def _check(self, request: pb.CheckBudgetRequest) -> pb.CheckBudgetResponse:
        account = messages.parse_account(request.account)
        cost = messages.parse_cost(request.cost, "cost")
        unit_id = messages.parse_unit_id(request.cost.unit_id, "cost.unit_id")
        blocks = parse_blocks(request.cost.blocks, "cost.blocks")
        found = await self._limits.read(account)
        refusal = check(found, cost, unit_id, account, blocks)
        if isinstance(refusal, Refused):
            raise rpc_errors.RefusalError(rpc_errors.refused(refusal))
        missing = () if refusal is None else refusal.shortfalls
        return pb.CheckBudgetResponse(
            allowed=not missing and found.closed is None,
            shortfalls=[responses.shortfall_message(each, account) for each in missing],
            closed_level=() if found.closed is None else found.closed.path,
            held=isinstance(refusal, Held) and found.closed is None,
        )

    async def _reserved(self, message: pb.ReserveBudgetRequest, reserve: Reserve) -> pb.ReserveBudgetResponse:
        return self._shown_reservation(await self._limits.apply(reserve), reserve)

    async def _charged(self, message: pb.UpdateBudgetRequest, charge: Charge) -> pb.UpdateBudgetResponse:
        return self._shown_charge(await self._limits.apply(charge), charge)

    async def _cancelled(
        self, message: pb.ReleaseReservationRequest, cancel: CancelReservation
    ) -> pb.ReleaseReservationResponse:
        return self._shown_end(await self._limits.apply(cancel), cancel)

    async def _earlier_answer(self, charge: Charge) -> Answer | None:
        return await self._limits.earlier_answer(charge)

    async def _get(self, request: pb.GetBudgetRequest) -> pb.GetBudgetResponse:
        account = messages.parse_account(request.account)
        blocks = parse_blocks(request.blocks, "blocks")
        found = await self._limits.read(account)
        message = responses.budget_message(found.seen_by(blocks), account)
        if request.without_levels:
            return pb.GetBudgetResponse(closed_level=message.closed_level)
        if request.with_policy_statements:
            await self._add_statements(message, account, found)
        if request.with_region_shares:
            async with self._reader_slot():
                await add_region_shares(message, self._store, account, found)
        return message

    async def _add_statements(
        self, message: pb.GetBudgetResponse, account: Account, found: AccountStatement
    ) -> None:
        # Before the journal: a limit that is replaced in between is then in one of the two.
        stored = (await self._store.limits(account)).limits
        try:
            async with self._reader_slot():
                found_statements = await policy_statements_of(
                    self._store, account, found.levels, self._tuning
                )
        except TooManyStatementsError:
            raise rpc_errors.RefusalError(
                rpc_errors.too_many_statements(self._tuning.max_statements)
            ) from None
        configuration = self._settings.current.configuration
        counts_worst = configuration.counts_worst_cases
        for level, status in zip(message.levels, found.levels, strict=True):
            depth = len(level.path)
            present = stored.get(account.level(depth)) or configuration.limit_of(account.level(depth))
            if status.mode is not Mode.TRACK and present is not None:
                largest = found_statements[depth].largest_limit(present, configuration.limit_of)
                if largest is not None:
                    level.largest_limit.CopyFrom(responses.cost_message(largest, level.limit.unit_id))
            level.policy_statements.extend(found_statements[depth].statements)
            # The configuration applies to future charges, the journal holds the present ones.
            level.worst_case = (
                counts_worst and depth < account.depth and found_statements[depth].has_worst_cases
            )

    @asynccontextmanager
    async def _reader_slot(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._tuning.read_wait_seconds):
                await self._reads.acquire()
        except TimeoutError:
            raise rpc_errors.RefusalError(rpc_errors.overloaded()) from None
        try:
            yield
        finally:
            self._reads.release()

    async def _query_id_of(self, account: Account, reservation_id: str) -> str | None:
        return await self._store.query_id_of(account, reservation_id)


def success(answer: Answer, kind: type[Success], request: Act) -> Success:
    """Return the outcome if it is of this kind, else raise RefusalError."""
    match answer.outcome:
        case kind() as outcome:
            return outcome
        case Exhausted() as refusal:
            raise rpc_errors.RefusalError(rpc_errors.exhausted(refusal, request.account))
        case Held() as refusal:
            raise rpc_errors.RefusalError(rpc_errors.held(refusal, request.account))
        case Refused() as refusal:
            if refusal.reason is Reason.RELEASE_MISMATCH:
                log.error(
                    "Integrity alarm: a question that was paid for came back with another release.",
                    extra={"event": "release.mismatched"},
                )
            raise rpc_errors.RefusalError(rpc_errors.refused(refusal))
    raise TypeError("the store answered another request")
