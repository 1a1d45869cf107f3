"""What a region asks about a lease that it has borrowed.

A lease is a reservation of the home ledger that is forfeited when it lapses: what its region has not reported by then
counts as spent. So every report is of something that has happened and that counts already, and none of its own region
is refused.
"""

from __future__ import annotations

from msgspec import Struct

from budget_service.ledger.case import Case
from budget_service.ledger.leases import lease_part, lease_return
from budget_service.ledger.outcomes import Charged, Outcome, Reserved
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Account, Cost


class LeaseAct(Struct, frozen=True, gc=False, kw_only=True):
    """The `lease_id`, a `number` of charges of it, and the `region` that borrowed it: only that one is heard.

    The region is not part of the fingerprint.
    """

    account: Account
    lease_id: str
    number: int
    region: str = ""
    unit_id: str = ""

    @property
    def earlier(self) -> tuple[str, ...]:
        """The ids of what has become of the lease: its grant, the reports around this act, and its end before that."""
        numbers = (0, self.number - 1, self.number, self.number + 1)
        return (
            *[lease_part(self.lease_id, each) for each in numbers],
            lease_return(self.lease_id, self.number - 1),
        )

    def granted(self, case: Case) -> Reserved | None:
        """Return how the lease was granted, if it was here."""
        found = outcome_of(case, lease_part(self.lease_id, 0))
        return found if isinstance(found, Reserved) else None

    def lapsed(self, case: Case) -> Reserved | None:
        """Return how the lease was granted if it is over, None if it is not or was not granted here."""
        granted = self.granted(case)
        return granted if granted is not None and granted.expires_at <= case.now else None

    def is_of_another(self, case: Case) -> bool:
        """Return whether the lease was lent to another region; nothing is known of one that was never granted here."""
        lease, granted = case.snapshot.reservation, self.granted(case)
        if lease is not None:
            return lease.query_id != self.region
        return granted is not None and granted.lent is not None and granted.lent.region != self.region


def outcome_of(case: Case, request_id: str) -> Outcome | None:
    """Return the remembered outcome of a request."""
    found = case.snapshot.outcomes.get(request_id)
    return None if found is None else found.outcome


def reported(case: Case, report: str, cost: Cost = NOTHING) -> Cost:
    """Return all that was reported of a lease up to a report, with the cost of one that comes now."""
    before = outcome_of(case, report)
    earlier = before.reported if isinstance(before, Charged) else NOTHING
    return Cost(
        min(MAX_AMOUNT, earlier.information + cost.information), min(MAX_AMOUNT, earlier.calls + cost.calls)
    )
