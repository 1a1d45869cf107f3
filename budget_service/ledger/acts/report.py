"""Record what a region has charged from a lease."""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.act import Needs, levels_of
from budget_service.ledger.acts.lease_act import LeaseAct, outcome_of, reported
from budget_service.ledger.case import Case
from budget_service.ledger.fingerprints import cost_fields, fingerprint_of
from budget_service.ledger.leases import lease_part, lease_return
from budget_service.ledger.outcomes import Cancelled, Charged, Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind, JournalEntry, Reservation
from budget_service.ledger.values import NOTHING, Account, Cost, Fingerprint, Hold


class ReportCharge(LeaseAct, frozen=True, gc=False, kw_only=True):
    """Record what a region has charged from a lease: charge `number` of it, counted from 1.

    A lease is a reservation of the home ledger, `lease_id.0`. Charge n takes its cost from `lease_id.(n-1)` and leaves
    the rest as `lease_id.n`, so that no charge counts twice, in whatever order reports arrive. `made_as` is the request
    by which the region made the charge: two copies of its ledger make different ones under one number.
    """

    cost: Cost
    release_id: str
    query_id: str
    policy_statement: str = ""
    made_as: str = ""

    @property
    def request_id(self) -> str:
        """The name of this change."""
        return lease_part(self.lease_id, self.number)

    @property
    def reservation_id(self) -> str:
        """What was left of the lease before."""
        return lease_part(self.lease_id, self.number - 1)

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the region sent."""
        ids = (self.release_id, self.query_id, self.policy_statement)
        # Left out where it is empty: what was reported before regions named it is reported again without it.
        made_as = (self.made_as,) if self.made_as else ()
        fields = ("report", *cost_fields(self.cost, self.unit_id), *ids, *made_as)
        return fingerprint_of(self.account, fields)

    def needs(self) -> Needs:
        """Return what every block has paid, the lease, and its history."""
        return Needs(
            levels=levels_of(self.account),
            every_block=True,
            reservation_id=self.reservation_id,
            # It may be recorded for another account than the lease's.
            of_any_account=True,
            outcomes=self.earlier,
            releases=(self.release_id,),
        )

    def decide(self, case: Case) -> Outcome:
        """Count what has happened.

        Its cost comes out of the lease. After the lease has lapsed it costs nothing more, since all that was left of
        the lease was forfeited. After it was given back nothing is forfeited, so that the cost counts. A lease that
        this ledger never granted, or whose earlier reports it does not have, shows that the ledger was set back: then
        the cost counts as charged now, whatever the limit. Such a charge has no `levels`. What cannot be added to a sum
        of 64 bits is left out: nothing more is granted there then anyway.
        """
        if self.is_of_another(case):
            return Refused(Reason.LEASE_NOT_YOURS)
        case.keep()
        lease, is_paid = case.reservation, case.is_paid(self.release_id)
        if lease is not None:
            return self._from_lease(case, lease, is_paid=is_paid)
        if self.lapsed(case) is not None and not self._is_given_back(case):
            if not is_paid:
                self._record(case, NOTHING, self.account, case.holds())
            return Charged(NOTHING, is_paid, case.statuses(), reported(case, self.reservation_id, self.cost))
        cost = _countable(case, self.cost, self.account, case.holds())
        self._record(case, cost, self.account, case.holds())
        return Charged(cost, False, ())

    def _from_lease(self, case: Case, lease: Reservation, *, is_paid: bool) -> Charged:
        cost = NOTHING if is_paid else self.cost
        case.end(lease)
        is_within = cost.within(lease.held)
        if not is_within:
            cost = _countable(case, cost, lease.account, lease.holds)
        if not is_paid:
            # It counts on the days that admitted the lease, even if new ones have begun since.
            self._record(case, cost, lease.account, lease.holds)
        case.reserve(replace(lease, reservation_id=self.request_id, held=lease.held.less(cost)))
        # More than the lease held is counted, and said in the same way as a charge of an unknown lease.
        levels = case.statuses() if is_within else ()
        return Charged(cost, is_paid, levels, reported(case, self.reservation_id, self.cost))

    def _is_given_back(self, case: Case) -> bool:
        """Return whether the lease was given back before this charge, or its region charged more than it held."""
        if isinstance(outcome_of(case, lease_return(self.lease_id, self.number - 1)), Cancelled):
            return True
        before = outcome_of(case, self.reservation_id)
        return isinstance(before, Charged) and not before.levels

    def _record(self, case: Case, cost: Cost, account: Account, holds: tuple[Hold, ...]) -> None:
        entry = JournalEntry(
            kind=EntryKind.SETTLED,
            account=account,
            cost=cost,
            unit_id=self.unit_id,
            request_id=self.request_id,
            release_id=self.release_id,
            query_id=self.query_id,
            time=case.now,
            holds=holds,
            policy_statement=self.policy_statement,
        )
        if not case.spend(entry):
            # It counts already, but the journal has every charge.
            case.journal.append(entry)
        case.pay(self.release_id, self.query_id, case.payment_span(account, holds))


def _countable(case: Case, cost: Cost, account: Account, holds: tuple[Hold, ...]) -> Cost:
    """Return as much of a cost that no lease holds as every sum can take, and still what is held there."""
    most = case.countable_on(account, holds)
    return Cost(min(cost.information, most.information), min(cost.calls, most.calls))
