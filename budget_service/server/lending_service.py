"""The gRPC service of a home ledger for its regions: translates messages; `regions.lending` has what they mean."""
# ruff: noqa: N802 - the names of the RPCs are the proto's

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from gris_api.budget.v1 import regions_pb2 as pb
from gris_api.budget.v1 import regions_pb2_grpc

from budget_service.ledger.acts.give_back import ReturnLease
from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.values import NOTHING, InvalidFieldError
from budget_service.ledger.windows import SECOND
from budget_service.regions.lease import Lease, LendingTerms, NotLent, RegionTotal
from budget_service.regions.lending import Lending
from budget_service.regions.messages import Granted, LeaseRefusedError
from budget_service.regions.records import MAX_BEFORE
from budget_service.server import messages, responses, rpc_errors
from budget_service.server.limit_cache import LimitCache
from budget_service.server.request_runner import Context, RequestRunner
from budget_service.server.settings import LiveSettings
from gris_serving.tokens import TokenError

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["RegionService"].full_name
MAX_REPORTED = 500
# A region with the name of another one is refused for so long after that one was heard of.
TAKEN_SECONDS = 30.0
LOGGED_SECONDS = 60.0
REASONS = {
    NotLent.TOO_LARGE: pb.NOT_LENT_TOO_LARGE,
    NotLent.NOT_SUPPORTED: pb.NOT_LENT_NOT_SUPPORTED,
    NotLent.REFUSED: pb.NOT_LENT_REFUSED,
    NotLent.SET_BACK: pb.NOT_LENT_SET_BACK,
    NotLent.COPIED: pb.NOT_LENT_COPIED,
}
# Of so many regions it is known which start is the last one, and which ones were before it.
KEPT_REGIONS = 1000
KEPT_STARTS = 100

log = logging.getLogger(__name__)

_NAME = re.compile(r"[a-z0-9-]{1,32}")
_DRAWN = re.compile(r"[0-9a-f]{32}")


class Standing(Enum):
    """What a start of a region's ledger is: the region, another one of its name, or a copy beside the region."""

    SOLE = auto()
    SECOND = auto()
    COPY = auto()


@dataclass
class Starts:
    """The starts of one region's ledger, each after the one before it; the last one is the region."""

    known: list[str]
    heard_at: float

    def standing(self, instance: str, before: Sequence[str], now: float) -> Standing:
        """Hear of a start, and of those before it.

        A start follows the last one, so a copy of a ledger that is started beside it takes its place once. After that
        whatever began from an earlier start is a copy, and so is that start if it goes on. A start that is no relation
        waits until the region was not heard of for a while.
        """
        *earlier, last = self.known
        if last in before:
            self.known = [*self.known, instance][-KEPT_STARTS:]
        elif last != instance:
            if not {instance, *before}.isdisjoint(earlier):
                return Standing.COPY
            if now - self.heard_at < TAKEN_SECONDS:
                return Standing.SECOND
            self.known = [*before, instance]
        self.heard_at = now
        return Standing.SOLE


class RegionService(regions_pb2_grpc.RegionServiceServicer):
    """The RPCs of `gris.budget.v1.RegionService`; what they promise is written in the proto.

    Args:
        limits: The home ledger by the limits in force.
        settings: The configuration in force.
        calls: Runs the calls.
        regions_of: Returns the names of the regions for which a caller may speak; None: for all. It may raise a
            `TokenError`.
        counts: Where to count what is lent.
        elapsed: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        limits: LimitCache,
        settings: LiveSettings,
        calls: RequestRunner,
        *,
        regions_of: Callable[[Context], frozenset[str] | None],
        counts: Counter[str] | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lending = Lending(limits)
        self._settings = settings
        self._runner = calls
        self._regions_of = regions_of
        self._elapsed = elapsed
        self._starts: dict[str, Starts] = {}
        self._logged: dict[str, float] = {}
        self.counts: Counter[str] = Counter() if counts is None else counts

    async def BorrowBudget(
        self, request: pb.BorrowBudgetRequest, context: Context
    ) -> pb.BorrowBudgetResponse:
        """Lend a share of a budget."""
        return await self._runner.finish_and_answer(self._borrow(request, context), context)

    async def ReportCharges(
        self, request: pb.ReportChargesRequest, context: Context
    ) -> pb.ReportChargesResponse:
        """Record charges of a region."""
        return await self._runner.finish_and_answer(self._report(request, context), context)

    async def ReturnBudget(
        self, request: pb.ReturnBudgetRequest, context: Context
    ) -> pb.ReturnBudgetResponse:
        """Take back what is left of a lease."""
        return await self._runner.finish_and_answer(self._return(request, context), context)

    async def _borrow(self, request: pb.BorrowBudgetRequest, context: Context) -> pb.BorrowBudgetResponse:
        region, terms = self._admitted(request.region, context)
        standing = self._standing(region, request.instance, request.before)
        if standing is Standing.SECOND:
            raise rpc_errors.RefusalError(rpc_errors.region_taken(region))
        if standing is Standing.COPY:
            return pb.BorrowBudgetResponse(not_lent=pb.NOT_LENT_COPIED)
        lease = Lease(
            lease_id=_drawn(request.lease_id, "lease_id"),
            account=messages.parse_account(request.account),
            unit_id=messages.parse_unit_id(request.wanted.unit_id, "wanted.unit_id"),
        )
        wanted = messages.parse_cost(request.wanted, "wanted")
        own = RegionTotal(
            window_start=messages.microseconds(request.own_window_start),
            total=messages.parse_cost(request.own, "own"),
        )
        if self._settings.current.configuration.counts_worst_cases:
            # Levels above an account count more than a charge there, so a share says nothing of what they may count.
            return pb.BorrowBudgetResponse(not_lent=pb.NOT_LENT_NOT_SUPPORTED)
        last = _drawn(request.last_lease_id, "last_lease_id") if request.last_lease_id else ""
        found = await self._lending.lend(lease, region, wanted, own, terms, last=last)
        self.counts["lent" if isinstance(found, Granted) else found.value.lower()] += 1
        if found is NotLent.SET_BACK and self._is_to_be_logged("lease.unknown"):
            log.error(
                "A region knows a lease that this ledger does not: it was set back, as by restoring a backup.",
                extra={"event": "lease.unknown"},
            )
        if isinstance(found, NotLent):
            return pb.BorrowBudgetResponse(not_lent=REASONS[found])
        return _granted(found, lease)

    async def _report(self, request: pb.ReportChargesRequest, context: Context) -> pb.ReportChargesResponse:
        region, _ = self._admitted(request.region, context)
        standing = self._standing(region, request.instance, request.before)
        if not 1 <= len(request.charges) <= MAX_REPORTED:
            raise InvalidFieldError("charges", f"must have 1 to {MAX_REPORTED} charges")
        charges = [_charge(each, region, f"charges[{index}]") for index, each in enumerate(request.charges)]
        try:
            found = await self._lending.record(charges)
        except LeaseRefusedError as error:
            raise rpc_errors.RefusalError(rpc_errors.refused(error.refusal)) from None
        self.counts["reported"] += len(found)
        self.counts["unknown"] += sum(not each.is_known for each in found)
        return pb.ReportChargesResponse(
            charges=[
                pb.RecordedCharge(
                    charged=responses.cost_message(each.charged, charge.unit_id), is_known=each.is_known
                )
                for each, charge in zip(found, charges, strict=True)
            ],
            is_copied=standing is Standing.COPY,
        )

    async def _return(self, request: pb.ReturnBudgetRequest, context: Context) -> pb.ReturnBudgetResponse:
        region, _ = self._admitted(request.region, context)
        asked = _returned(request, region)
        if self._standing(region, request.instance, request.before) is Standing.COPY:
            # The other ledger may grant from the same lease.
            return pb.ReturnBudgetResponse()
        try:
            returned = await self._lending.take_back(asked, was_granted=request.was_granted)
        except LeaseRefusedError as error:
            raise rpc_errors.RefusalError(rpc_errors.refused(error.refusal)) from None
        self.counts["over" if returned is None else "returned"] += 1
        return pb.ReturnBudgetResponse(
            was_held=returned is not None, returned=responses.cost_message(returned or NOTHING, "")
        )

    def _admitted(self, name: str, context: Context) -> tuple[str, LendingTerms]:
        """Return the name of a region for which the caller may speak, and by what terms this ledger lends to it.

        A ledger that lends nothing takes no reports either: they count whatever the limit.
        """
        if not _NAME.fullmatch(name):
            raise InvalidFieldError("region", "must have 1 to 32 lower-case letters, digits and hyphens")
        try:
            allowed = self._regions_of(context)
        except TokenError as error:
            raise rpc_errors.RefusalError(rpc_errors.token_refused(str(error))) from None
        if allowed is not None and name not in allowed:
            raise rpc_errors.RefusalError(rpc_errors.not_of_region(name))
        leases = self._settings.current.configuration.leases
        if leases is None:
            raise rpc_errors.RefusalError(rpc_errors.not_lending())
        terms = LendingTerms(
            share_percent=leases.share_percent,
            outstanding_percent=leases.outstanding_percent,
            length=leases.seconds * SECOND,
        )
        return name, terms

    def _standing(self, name: str, instance: str, before: Sequence[str]) -> Standing:
        """Return what the start of a region's ledger is that asks, and log it unless it is the region."""
        _drawn(instance, "instance")
        if len(before) > MAX_BEFORE:
            raise InvalidFieldError("before", f"must have at most {MAX_BEFORE} starts")
        for index, each in enumerate(before):
            _drawn(each, f"before[{index}]")
        now = self._elapsed()
        if len(self._starts) > KEPT_REGIONS:
            self._starts = {
                each: found for each, found in self._starts.items() if now - found.heard_at < TAKEN_SECONDS
            }
        starts = self._starts.setdefault(name, Starts([*before, instance], now))
        standing = starts.standing(instance, before, now)
        if standing is not Standing.SOLE:
            self._note(standing, name)
        return standing

    def _note(self, standing: Standing, region: str) -> None:
        """Count and log that a start of a region's ledger is not the only one."""
        is_copy = standing is Standing.COPY
        self.counts["copied" if is_copy else "taken"] += 1
        if not self._is_to_be_logged(standing.name):
            return
        if is_copy:
            text = "Two copies of a region's ledger run. One of them is lent nothing."
            log.error(text, extra={"event": "region.copied", "fields": {"region": region}})
        else:
            text = "Two regions have one name. The second one is lent nothing."
            log.error(text, extra={"event": "region.taken", "fields": {"region": region}})

    def _is_to_be_logged(self, event: str) -> bool:
        """Return whether an event was not logged in the last minute."""
        now = self._elapsed()
        last = self._logged.get(event)
        is_due = last is None or now - last >= LOGGED_SECONDS
        if is_due:
            self._logged[event] = now
        return is_due


def _granted(found: Granted, lease: Lease) -> pb.BorrowBudgetResponse:
    message = pb.BorrowBudgetResponse(
        share=responses.cost_message(found.share, lease.unit_id),
        granted_at=responses.timestamp(found.granted_at),
        ends_at=responses.timestamp(found.ends_at),
        window_start=responses.timestamp(found.window_start),
        is_sole=found.is_sole,
    )
    if found.window_end is not None:
        message.window_end.CopyFrom(responses.timestamp(found.window_end))
    for each in found.levels:
        responses.LevelMessageBuilder(message.levels.add()).fill(each, lease.account, lease.unit_id)
    return message


def _charge(message: pb.ReportedCharge, region: str, field: str) -> ReportCharge:
    if message.number < 1:
        raise InvalidFieldError(f"{field}.number", "must be at least 1")
    return ReportCharge(
        account=messages.parse_account(message.account),
        lease_id=_drawn(message.lease_id, f"{field}.lease_id"),
        number=message.number,
        cost=messages.parse_cost(message.cost, f"{field}.cost"),
        unit_id=messages.parse_unit_id(message.cost.unit_id, f"{field}.cost.unit_id"),
        release_id=messages.parse_optional_id(message.release_id, f"{field}.release_id"),
        query_id=messages.parse_optional_id(message.query_id, f"{field}.query_id"),
        policy_statement=messages.parse_statement(message.policy_statement, f"{field}.policy_statement"),
        region=region,
        made_as=messages.parse_optional_id(message.request_id, f"{field}.request_id"),
    )


def _returned(message: pb.ReturnBudgetRequest, region: str) -> ReturnLease:
    if message.reported < 0:
        raise InvalidFieldError("reported", "must not be negative")
    is_known = message.HasField("charged")
    return ReturnLease(
        account=messages.parse_account(message.account),
        lease_id=_drawn(message.lease_id, "lease_id"),
        number=message.reported,
        region=region,
        unit_id=messages.parse_unit_id(message.charged.unit_id, "charged.unit_id") if is_known else "",
        charged=messages.parse_cost(message.charged, "charged") if is_known else None,
    )


def _drawn(text: str, field: str) -> str:
    if not _DRAWN.fullmatch(text):
        raise InvalidFieldError(field, "must be 32 lower-case hexadecimal characters")
    return text
