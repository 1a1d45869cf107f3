"""The budget service of a region: grants from what the region holds, and passes everything else on to the home."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from google.protobuf.message import Message
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.values import Account, Cost
from budget_service.regions.lease_maintenance import LeaseMaintenance
from budget_service.regions.messages import HomeRefusedError, HomeUnavailableError
from budget_service.regions.region import Region
from budget_service.server import messages, rpc_errors
from budget_service.server.home_client import Caller, HomeStatusError
from budget_service.server.request_runner import RequestRunner
from budget_service.server.service import BudgetService
from budget_service.server.settings import LiveSettings
from budget_service.tuning import Tuning

Answered = TypeVar("Answered", bound=Message)
Request: TypeAlias = Reserve | Charge | CancelReservation

_OTHER = "a region has answered another request"


class RegionalLimits:
    """Stands in the place of `LimitCache`: in a region the home has the limits, and is asked by its RPCs."""

    def __init__(self, region: Region) -> None:
        self._region = region

    def forget(self) -> None:
        """Do nothing: no limits are kept here."""

    async def apply(self, request: Request) -> Answer:
        """Apply a request if the region can.

        Raises:
            AskHomeError: Only the home can answer.
        """
        answer = await self._region.apply(request)
        if answer is None:
            raise AskHomeError(request)
        return answer

    async def read(self, account: Account) -> AccountStatement:
        """Never: the home states balances."""
        raise TypeError("a region states no balances")

    async def earlier_answer(self, request: Request) -> Answer | None:
        """Return an earlier answer to the same request, if there is one."""
        answer = await self._region.earlier_answer(request)
        return answer if answer is not None and answer.replayed else None


class AskHomeError(Exception):
    """Only the home can answer a request."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request = request


class _HomeIsAwayError(rpc_errors.RefusalError):
    def __init__(self) -> None:
        super().__init__(rpc_errors.no_balances())


class RegionalBudgetService(BudgetService):
    """The same RPCs as a single service's. What is asked of the home goes there as it came."""

    def __init__(
        self,
        maintenance: LeaseMaintenance,
        home: Caller,
        settings: LiveSettings,
        calls: RequestRunner,
        tuning: Tuning,
    ) -> None:
        region = maintenance.region
        super().__init__(region.store, settings, calls, tuning, RegionalLimits(region))
        self._region = region
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

    async def _reserve(self, message: pb.ReserveBudgetRequest) -> pb.ReserveBudgetResponse:
        try:
            return await super()._reserve(message)
        except AskHomeError as ask:
            asked = ask.request
        found = await self._passed_on("ReserveBudget", message, pb.ReserveBudgetResponse, asked)
        if isinstance(found, Answer) and isinstance(asked, Reserve):
            return self._reserved(found, asked)
        if isinstance(found, Answer):
            raise TypeError(_OTHER)
        await self._region.note_forwarded(asked, None)
        return found

    async def _update(self, message: pb.UpdateBudgetRequest) -> pb.UpdateBudgetResponse:
        try:
            return await super()._update(message)
        except AskHomeError as ask:
            asked = ask.request
        found = await self._passed_on("UpdateBudget", message, pb.UpdateBudgetResponse, asked)
        if isinstance(found, Answer) and isinstance(asked, Charge):
            return self._updated(found, asked)
        if isinstance(found, Answer):
            raise TypeError(_OTHER)
        charged = None if found.already_paid else Cost(found.charged.information, found.charged.calls)
        await self._region.note_forwarded(asked, charged)
        return found

    async def _cancel(self, message: pb.ReleaseReservationRequest) -> pb.ReleaseReservationResponse:
        try:
            return await super()._cancel(message)
        except AskHomeError as ask:
            asked = ask.request
        found = await self._passed_on("ReleaseReservation", message, pb.ReleaseReservationResponse, asked)
        if isinstance(found, Answer):
            raise TypeError("a region does not cancel what is reserved at the home")
        return found

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

    async def _passed_on(
        self, method: str, message: Message, answer: type[Answered], request: Request
    ) -> Answered | Answer:
        """Return the home's answer, or that of this region if the home does not answer and it can."""
        try:
            return await self._home.call(method, message, answer)
        except HomeUnavailableError:
            status = rpc_errors.home_unavailable()
        except HomeStatusError as error:
            status = error.status
            if rpc_errors.is_retried_by_clients(status):
                # What this region holds and does not use may be what is missing.
                self._region.retire(request.account)
            if not error.is_transient or rpc_errors.is_retried_by_clients(status):
                raise rpc_errors.RefusalError(status) from None
        held = await self._region.spend_held(request)
        if held is None:
            raise rpc_errors.RefusalError(status)
        return held
