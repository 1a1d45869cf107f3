"""The home's part: grants leases, records what regions report, and takes back what they do not need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.acts.give_back import ReturnLease
from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.leases import lease_part
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Answer, Cancelled, Charged, LevelStatus, Reason, Refused, Reserved
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.ledger.windows import SECOND
from budget_service.regions.lease import Lease, LendingTerms, NotLent, RegionTotal, end_of, share_of
from budget_service.regions.messages import Granted, LeaseRefusedError, Reported

NOT_YOURS = Refused(Reason.LEASE_NOT_YOURS)

log = logging.getLogger(__name__)


class Ledger(Protocol):
    """The home ledger by the limits in force, as `LimitCache` has it."""

    async def apply(self, request: Reserve) -> Answer:
        """Apply a request."""

    async def apply_anyway(self, request: Reserve | ReturnLease | ReportCharge) -> Answer:
        """Apply a request that takes no budget, even if the account has no limit any more."""

    async def has_answered(self, request: Reserve) -> bool:
        """Return whether the ledger remembers an answer to the request's id."""

    async def read(self, account: Account) -> AccountStatement:
        """Return the state of an account."""

    async def applied_to(self, account: Account) -> AppliedLimits:
        """Return the limits of an account."""


class Lending:
    """Lends shares of the home ledger's budgets."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def lend(
        self,
        lease: Lease,
        region: str,
        wanted: Cost,
        own: RegionTotal,
        terms: LendingTerms,
        *,
        last: str = "",
    ) -> Granted | NotLent:
        """Grant a lease, or say why not. The same lease is granted once.

        `last` is the lease that this ledger has granted the region last under the same root; a ledger that does not
        remember it was set back to an earlier state, and would lend again what was lent already.
        """
        if last and not await self._ledger.has_answered(_no_loan(lease.account, region, last)):
            return NotLent.SET_BACK
        found = await self._ledger.read(lease.account)
        rules = (await self._ledger.applied_to(lease.account)).levels
        if found.closed is not None or found.currency.unit_id not in ("", lease.unit_id):
            return NotLent.REFUSED
        share = share_of(found.levels, rules, wanted, terms)
        if isinstance(share, NotLent):
            return share
        ends_at = end_of(rules, found.time, terms)
        name = lease_part(lease.lease_id, 0)
        answer = await self._ledger.apply(
            Reserve(
                account=lease.account,
                request_id=name,
                max_cost=share,
                unit_id=lease.unit_id,
                query_id=region,
                ttl=ends_at - found.time,
                reservation_id=name,
                # What its region never reports counts as spent.
                forfeits=True,
                is_lease=True,
            )
        )
        if answer.replayed or not isinstance(answer.outcome, Reserved):
            return NotLent.REFUSED
        if answer.outcome.already_paid or answer.outcome.held != share:
            # A region may grant only what is held here.
            return NotLent.REFUSED
        own_level = found.levels[-1]
        return Granted(
            share=share,
            granted_at=found.time,
            # Not after the end that the ledger has, which may have got a later time.
            ends_at=min(ends_at, answer.outcome.expires_at),
            window_start=own_level.window.start,
            window_end=own_level.window.end,
            is_sole=_is_sole(own_level, own),
            levels=tuple(each.seen_from(lease.account.depth) for each in found.levels),
        )

    async def record(self, charges: Sequence[ReportCharge]) -> list[Reported]:
        """Record charges: those of a lease in their order, and leases side by side.

        Raises:
            LeaseRefusedError: A lease is another region's; charges of other leases may be recorded.
        """
        leases: dict[str, list[ReportCharge]] = {}
        for each in charges:
            leases.setdefault(each.lease_id, []).append(each)
        found = await asyncio.gather(*(self._record_all(each) for each in leases.values()))
        reported = {name: iter(each) for name, each in zip(leases, found, strict=True)}
        return [next(reported[each.lease_id]) for each in charges]

    async def take_back(self, request: ReturnLease, *, was_granted: bool) -> Cost | None:
        """End a lease of a region after so many charges; what is left of it returns to the budget.

        Of a lease that `was_granted` nothing is written but its end: a ledger that does not remember it, for it was set
        back, has to go on not knowing it (`lend`).

        Raises:
            LeaseRefusedError: The lease is another region's.
        """
        if request.number == 0 and not was_granted:
            # A request for the lease that arrives only now, or again, grants nothing.
            await self._ledger.apply_anyway(_no_loan(request.account, request.region, request.lease_id))
        answer = await self._ledger.apply_anyway(request)
        if answer.outcome == NOT_YOURS:
            raise LeaseRefusedError(NOT_YOURS)
        return answer.outcome.returned if isinstance(answer.outcome, Cancelled) else None

    async def _record_all(self, charges: Sequence[ReportCharge]) -> list[Reported]:
        return [await self._record(each) for each in charges]

    async def _record(self, charge: ReportCharge) -> Reported:
        answer = await self._ledger.apply_anyway(charge)
        if answer.outcome == Refused(Reason.REQUEST_ID_REUSED):
            # Another charge was recorded under this number: the region's ledger was set back, or copied. This one has
            # happened too, and no lease is left for it.
            # The name stands in the journal, which has to tell nothing of whose charge it is.
            nameless = replace(charge, account=charge.account.level(1))
            other = f"{charge.lease_id}.{nameless.fingerprint()}"
            answer = await self._ledger.apply_anyway(replace(charge, lease_id=other))
        outcome = answer.outcome
        if outcome == NOT_YOURS:
            raise LeaseRefusedError(NOT_YOURS)
        if not isinstance(outcome, Charged):
            raise TypeError("the ledger refused what has happened")
        if not outcome.levels and not answer.replayed:
            log.error(
                "A region charged what this ledger did not lend, or lends no more: one of both ledgers was set back.",
                extra={"event": "lease.unknown"},
            )
        return Reported(outcome.charged, bool(outcome.levels))


def _no_loan(account: Account, region: str, lease_id: str) -> Reserve:
    """Return a request for a lease of nothing; once it was asked for, no other one is granted under this id."""
    name = lease_part(lease_id, 0)
    return Reserve(
        # The ledger remembers no refusal of an account of which it has never heard.
        account=account.level(1),
        request_id=name,
        max_cost=NOTHING,
        unit_id="",
        query_id=region,
        ttl=SECOND,
        reservation_id=name,
        forfeits=False,
        is_lease=True,
    )


def _is_sole(level: LevelStatus, own: RegionTotal) -> bool:
    """Return whether all that counts of the account's budget was charged, or is held, by the asking region."""
    if own.window_start != level.window.start and own.total != NOTHING:
        own = RegionTotal()
    counted = (level.spent.information + level.reserved.information, level.spent.calls + level.reserved.calls)
    return counted == (own.total.information, own.total.calls)
