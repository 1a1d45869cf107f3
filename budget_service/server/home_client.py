"""How a region asks its home: messages of its own, and calls of its clients that only the home can answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from google.protobuf.message import Message
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from gris_api.budget.v1 import budget_pb2, regions_pb2

from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.values import Cost, Mode
from budget_service.ledger.windows import Microseconds, Window
from budget_service.regions.counters import RegionCounters
from budget_service.regions.lease import Lease, NotLent, RegionTotal
from budget_service.regions.messages import Granted, HomeRefusedError, HomeUnavailableError, Reported
from budget_service.regions.records import RegionRecords
from budget_service.server import messages, responses
from budget_service.server.lending_service import REASONS
from budget_service.server.rpc_errors import is_retried_by_clients

Answered = TypeVar("Answered", bound=Message)

# The methods by which a region borrows; all others are those of its clients.
LENT_BY = ("BorrowBudget", "ReportCharges", "ReturnBudget")
_REGION_REFUSED = ("REGION_TAKEN", "NOT_LENDING")


class HomeStatusError(Exception):
    """The home answered a call with an error."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status

    @property
    def is_transient(self) -> bool:
        """Return whether the home may answer the same call otherwise."""
        return self.status.code in (
            code_pb2.UNAVAILABLE,
            code_pb2.DEADLINE_EXCEEDED,
            code_pb2.CANCELLED,
            code_pb2.UNKNOWN,
            code_pb2.INTERNAL,
        )

    @property
    def concerns_region(self) -> bool:
        """Return whether the home refuses the region, and not what it asks."""
        info = ErrorInfo()
        reasons = [info.reason for each in self.status.details if each.Unpack(info)]
        is_stranger = self.status.code in (code_pb2.PERMISSION_DENIED, code_pb2.UNAUTHENTICATED)
        return is_stranger or any(each in _REGION_REFUSED for each in reasons)


class Caller(Protocol):
    """Calls the home."""

    async def call(self, method: str, request: Message, answer: type[Answered]) -> Answered:
        """Return the answer to a method of BudgetService or RegionService.

        Raises:
            HomeUnavailableError: The home did not answer.
            HomeStatusError: It answered with an error.
        """


class CountedCaller:
    """Calls the home, and counts whether it answers.

    Args:
        caller: Calls the home.
        counters: Where to count.
    """

    def __init__(self, caller: Caller, counters: RegionCounters) -> None:
        self._caller = caller
        self._counters = counters

    async def call(self, method: str, request: Message, answer: type[Answered]) -> Answered:
        """Return the home's answer; see `Caller`."""
        try:
            found = await self._caller.call(method, request, answer)
        except HomeUnavailableError:
            self._counters.unanswered += 1
            raise
        except HomeStatusError as error:
            self._count_error(method, error)
            raise
        self._counters.answered += 1
        return found

    def _count_error(self, method: str, error: HomeStatusError) -> None:
        if error.is_transient and not is_retried_by_clients(error.status):
            # It is there, but its ledger is not.
            self._counters.unanswered += 1
        elif method in LENT_BY or error.concerns_region:
            self._counters.refused += 1
        else:
            # A client asked for what cannot be, or for more than there is.
            self._counters.answered += 1


class HomeClient:
    """The home as `regions.messages.Home`, over its RPCs.

    Args:
        caller: Calls the home.
        region: The region's name.
        records: They name this start of the region's ledger.
    """

    def __init__(self, caller: Caller, region: str, records: RegionRecords) -> None:
        self._caller = caller
        self._region = region
        self._records = records

    async def borrow(self, lease: Lease, wanted: Cost, own: RegionTotal, last: str = "") -> Granted | NotLent:
        """Ask for a lease; see `Home`."""
        message = regions_pb2.BorrowBudgetRequest(
            account=budget_pb2.Account(path=lease.account.path),
            region=self._region,
            instance=self._records.instance,
            before=self._records.before,
            lease_id=lease.lease_id,
            wanted=responses.cost_message(wanted, lease.unit_id),
            own=responses.cost_message(own.total, lease.unit_id),
            own_window_start=responses.timestamp(own.window_start),
            last_lease_id=last,
        )
        answer = await self._call("BorrowBudget", message, regions_pb2.BorrowBudgetResponse)
        if answer.not_lent != regions_pb2.NOT_LENT_COPIED:
            await self._records.acknowledge()
        if answer.not_lent:
            return next(reason for reason, number in REASONS.items() if number == answer.not_lent)
        has_end = answer.HasField("window_end")
        return Granted(
            share=_cost(answer.share),
            granted_at=messages.microseconds(answer.granted_at),
            ends_at=messages.microseconds(answer.ends_at),
            window_start=messages.microseconds(answer.window_start),
            window_end=messages.microseconds(answer.window_end) if has_end else None,
            is_sole=answer.is_sole,
            levels=tuple(_level(each) for each in answer.levels),
        )

    async def report(self, charges: Sequence[ReportCharge]) -> Sequence[Reported]:
        """Have charges recorded; see `Home`."""
        message = regions_pb2.ReportChargesRequest(
            region=self._region, instance=self._records.instance, before=self._records.before
        )
        for each in charges:
            message.charges.add(
                account=budget_pb2.Account(path=each.account.path),
                lease_id=each.lease_id,
                number=each.number,
                cost=responses.cost_message(each.cost, each.unit_id),
                release_id=each.release_id,
                query_id=each.query_id,
                policy_statement=each.policy_statement,
                request_id=each.made_as,
            )
        answer = await self._call("ReportCharges", message, regions_pb2.ReportChargesResponse)
        if not answer.is_copied:
            await self._records.acknowledge()
        return [Reported(_cost(each.charged), each.is_known, answer.is_copied) for each in answer.charges]

    async def give_back(self, lease: Lease, charged: Cost | None) -> Cost | None:
        """Give back what is left of a lease; see `Home`."""
        message = regions_pb2.ReturnBudgetRequest(
            account=budget_pb2.Account(path=lease.account.path),
            region=self._region,
            instance=self._records.instance,
            before=self._records.before,
            lease_id=lease.lease_id,
            reported=lease.reported,
            was_granted=bool(lease.granted_at),
            charged=None if charged is None else responses.cost_message(charged, lease.unit_id),
        )
        answer = await self._call("ReturnBudget", message, regions_pb2.ReturnBudgetResponse)
        return _cost(answer.returned) if answer.was_held else None

    async def _call(self, method: str, request: Message, answer: type[Answered]) -> Answered:
        try:
            return await self._caller.call(method, request, answer)
        except HomeStatusError as error:
            if error.is_transient:
                raise HomeUnavailableError(str(error)) from None
            raise HomeRefusedError(str(error), concerns_region=error.concerns_region) from None


def _cost(message: object) -> Cost:
    return Cost(message.information, message.calls)  # type: ignore[attr-defined]


def _level(message: budget_pb2.Level) -> LevelStatus:
    end: Microseconds | None = None
    if message.HasField("window_end"):
        end = messages.microseconds(message.window_end)
    return LevelStatus(
        depth=len(message.path),
        maximum=_cost(message.limit),
        mode=Mode.TRACK if message.mode == budget_pb2.MODE_TRACK else Mode.ENFORCE,
        window=Window(messages.microseconds(message.window_start), end),
        spent=_cost(message.spent),
        reserved=_cost(message.reserved),
    )
