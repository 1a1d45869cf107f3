"""Give back what is left of a lease, or what was forfeited of it and never granted.

What was forfeited and never granted is given back, once, on the days on which it was spent. No clock decides how much
that is: the region has ended the lease on its disk, nothing is reserved from it or under way, and it says all that it
has charged from it. Only the process that borrowed the lease and has run since says so: what a restored file or a copy
has forgotten is never said to be free.
"""

from __future__ import annotations

from budget_service.ledger.act import Needs, levels_of
from budget_service.ledger.acts.lease_act import LeaseAct, outcome_of, reported
from budget_service.ledger.case import Case
from budget_service.ledger.fingerprints import fingerprint_of
from budget_service.ledger.leases import lease_part, lease_return
from budget_service.ledger.outcomes import Cancelled, Charged, Lent, Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import NOTHING, Cost, Fingerprint


class ReturnLease(LeaseAct, frozen=True, gc=False, kw_only=True):
    """Give back what is left of a lease after so many charges, `number`.

    `charged` is all that was charged from it, if its region knows that and charges nothing more: then what has lapsed
    is given back too. With `is_written_off` the lease is kept until its end, and so its region is answered: it may have
    given it back before the ledger was restored. Neither is part of the fingerprint.
    """

    charged: Cost | None = None
    is_written_off: bool = False

    @property
    def request_id(self) -> str:
        """The name of this change."""
        return lease_return(self.lease_id, self.number)

    @property
    def reservation_id(self) -> str:
        """What is left of the lease, and the name of the last report."""
        return lease_part(self.lease_id, self.number)

    def fingerprint(self) -> Fingerprint:
        """Return a digest of what is given back."""
        return fingerprint_of(self.account, ("release", self.reservation_id))

    def needs(self) -> Needs:
        """Return the lease and its history."""
        levels = levels_of(self.account)
        return Needs(levels=levels, reservation_id=self.reservation_id, outcomes=self.earlier)

    def decide(self, case: Case) -> Outcome:
        """End the lease and return what it holds, or what was forfeited of it and never granted.

        What is returned after the lease has lapsed is a refund in the journal. It is the share without all that was
        charged from it, so that what is forfeited still covers every charge, whether it is reported or not.
        """
        if self.is_of_another(case):
            return Refused(Reason.LEASE_NOT_YOURS)
        lease, granted = case.snapshot.reservation, case.snapshot.outcomes.get(lease_part(self.lease_id, 0))
        if lease is not None and case.now < lease.expires_at:
            if self.is_written_off:
                # Remembered for an hour, and no lease lasts longer.
                return Refused(Reason.RESERVATION_OVER)
            case.end(lease)
            outcome = Cancelled(lease.held, lease.unit_id)
        else:
            if lease is not None and lease.reservation_id not in case.ended:
                # More have lapsed than one step ends.
                case.expire(lease)
            entry = self._refund_of_lapsed(case)
            if entry is None or not case.has_charged(entry):
                return Refused(Reason.RESERVATION_OVER)
            case.refund(entry)
            outcome = Cancelled(entry.cost, entry.unit_id)
        if granted is not None:
            # As long as the grant: what is reported later has to know that nothing is forfeited.
            case.kept_until = granted.keep_until
        return outcome

    def _refund_of_lapsed(self, case: Case) -> JournalEntry | None:
        granted, charged = self.lapsed(case), self.charged
        if granted is None or granted.lent is None or charged is None or not charged.within(granted.held):
            return None
        rest, lent = granted.held - charged, granted.lent
        # No more than was forfeited: what is reported was not.
        if rest == NOTHING or not reported(case, self.reservation_id).within(charged):
            return None
        if not self._is_as_lent(case, lent) or not self._is_last_report(case):
            return None
        return JournalEntry(
            kind=EntryKind.REFUNDED,
            account=self.account,
            cost=rest,
            unit_id=self.unit_id,
            request_id=self.request_id,
            release_id="",
            query_id=self.region,
            time=case.now,
            holds=lent.holds,
            reason="a region has not used this of a share that had lapsed",
        )

    def _is_as_lent(self, case: Case, lent: Lent) -> bool:
        """Return whether the account, its limits and its currency are those by which the lease was lent.

        What was left may have been written off, in the place of charges that were lost: it may be spent already. Then
        the limits have another version.
        """
        is_limited_so = lent.limits_version == case.root.limits_version
        return is_limited_so and self.account == lent.account and case.currency.unit_id == self.unit_id

    def _is_last_report(self, case: Case) -> bool:
        """Return whether the lease had just these reports, and was not given back before one of them.

        Else the ledger of this home, or the region's, was set back or copied. What was given back is remembered as long
        as the grant.
        """
        known = case.snapshot.outcomes
        granted = known.get(lease_part(self.lease_id, 0))
        if granted is None or case.now >= granted.keep_until:
            return False
        before = outcome_of(case, self.reservation_id)
        is_known = isinstance(before, Charged) and bool(before.levels)
        is_last = lease_part(self.lease_id, self.number + 1) not in known
        return is_last and (self.number == 0 or is_known)
