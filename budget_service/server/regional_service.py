"""The budget service of a region: grants from what the region holds, and passes everything else on to the home."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import Message
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.act import Act
from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.values import Account, Cost, InvalidFieldError
from budget_service.regions.lease_maintenance import LeaseMaintenance
from budget_service.regions.messages import HomeRefusedError, HomeUnavailableError
from budget_service.server import messages, rpc_errors
from budget_service.server.home_client import Caller, HomeStatusError
from budget_service.server.request_runner import RequestRunner
from budget_service.server.service import SpendingService
from budget_service.server.settings import LiveSettings

Answered = TypeVar("Answered", bound=Message)


class _HomeIsAwayError(rpc_errors.RefusalError):
    def __init__(self) -> None:
        super().__init__(rpc_errors.no_balances())


class _HomeCannotError(rpc_errors.RefusalError):
    """The home does not answer, or cannot now: what is held here may be spent."""


class RegionalBudgetService(SpendingService):
    """The RPCs, answered by a region. What is asked of the home goes there as it came."""

    def __init__(
        self,
        maintenance: LeaseMaintenance,
        home: Caller,
        settings: LiveSettings,
        calls: RequestRunner,
    ) -> None:
        super().__init__(settings, calls)
        self._region = maintenance.region
        self._maintenance = maintenance
        self._home = home

    async def _check(self, request: pb.CheckBudgetRequest) -> pb.CheckBudgetResponse:
        messages.parse_account(request.account)
        return await self._asked("CheckBudget", request, pb.CheckBudgetResponse)

    async def _get(self, request: pb.GetBudgetRequest) -> pb.GetBudgetResponse:
        account = messages.parse_account(request.account)
        if request.without_levels:
            return await self._asked_who_it_is(request, account)
        try:
            # What this region has charged is to be in the answer.
            await self._maintenance.report()
        except (HomeUnavailableError, HomeRefusedError):
            raise _HomeIsAwayError from None
        return await self._asked("GetBudget", request, pb.GetBudgetResponse)

    async def _asked_who_it_is(self, request: pb.GetBudgetRequest, account: Account) -> pb.GetBudgetResponse:
        try:
            return await self._asked("GetBudget", request, pb.GetBudgetResponse)
        except _HomeIsAwayError:
            # Of whom this region charges, the results are kept and found as ever.
            if not self._region.is_lent(account):
                raise
            return pb.GetBudgetResponse()

    async def _reserved(self, message: pb.ReserveBudgetRequest, reserve: Reserve) -> pb.ReserveBudgetResponse:
        answer = await self._region.grant(reserve)
        if answer is None:
            try:
                found = await self._passed_on("ReserveBudget", message, pb.ReserveBudgetResponse, reserve)
            except _HomeCannotError:
                answer = await self._region.spend_held(reserve)
                if answer is None:
                    raise
            else:
                self._region.counters.forwarded += 1
                return found
        return self._shown_reservation(answer, reserve)

    async def _charged(self, message: pb.UpdateBudgetRequest, charge: Charge) -> pb.UpdateBudgetResponse:
        if charge.further:
            raise InvalidFieldError(
                "further", "must be empty: the ledger of a region takes one charge at a time"
            )
        region, is_settled = self._region, bool(charge.reservation_id)
        answer = await (region.settle(charge) if is_settled else region.grant(charge))
        if answer is None:
            try:
                # If the caller left before the charge is noted, its repeat could be charged once more, from a lease.
                return await self._runner.finished(self._charged_at_home(message, charge))
            except _HomeCannotError:
                answer = None if is_settled else await region.spend_held(charge)
                if answer is None:
                    raise
        return self._shown_charge(answer, charge)

    async def _charged_at_home(
        self, message: pb.UpdateBudgetRequest, charge: Charge
    ) -> pb.UpdateBudgetResponse:
        found = await self._passed_on("UpdateBudget", message, pb.UpdateBudgetResponse, charge)
        charged = Cost(found.charged.information, found.charged.calls)
        await self._region.note_forwarded(charge, None if found.already_paid else charged)
        return found

    async def _cancelled(
        self, message: pb.ReleaseReservationRequest, cancel: CancelReservation
    ) -> pb.ReleaseReservationResponse:
        answer = await self._region.settle(cancel)
        if answer is None:
            return await self._passed_on("ReleaseReservation", message, pb.ReleaseReservationResponse, cancel)
        return self._shown_end(answer, cancel)

    async def _earlier_answer(self, charge: Charge) -> Answer | None:
        answer = await self._region.earlier_answer(charge)
        return answer if answer is not None and answer.replayed else None

    async def _query_id_of(self, account: Account, reservation_id: str) -> str | None:
        # Of a reservation that is the home's, only the home knows the question, and demands the ticket.
        return await self._region.query_id_of(account, reservation_id)

    async def _asked(self, method: str, request: Message, answer: type[Answered]) -> Answered:
        try:
            return await self._home.call(method, request, answer)
        except HomeUnavailableError:
            raise _HomeIsAwayError from None
        except HomeStatusError as error:
            # A home without its store states nothing either.
            if rpc_errors.is_store_unavailable(error.status):
                raise _HomeIsAwayError from None
            raise rpc_errors.RefusalError(error.status) from None

    async def _passed_on(self, method: str, message: Message, answer: type[Answered], act: Act) -> Answered:
        try:
            return await self._home.call(method, message, answer)
        except HomeUnavailableError:
            raise _HomeCannotError(rpc_errors.home_unavailable()) from None
        except HomeStatusError as error:
            is_retried = rpc_errors.is_retried_by_clients(error.status)
            if is_retried:
                # What this region holds and does not use may be what is missing.
                self._region.retire(act.account)
            if not error.is_transient or is_retried:
                raise rpc_errors.RefusalError(error.status) from None
            raise _HomeCannotError(error.status) from None
