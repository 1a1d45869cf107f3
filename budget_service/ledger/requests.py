"""What a client may ask the ledger to change.

A request is complete when it is made, and stays the same when it is sent again. The limits that it is decided by are a
value of their own (`ledger.limits.AppliedLimits`). The `request_id` belongs to the root account: two roots may use the
same one.

An administrator's request has a `reason`, and the `actor` who sent it, as authenticated. Both are part of the
fingerprint: what one administrator has sent is not what another one does, of whom nothing would be recorded.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from budget_service.ledger.fingerprints import (
    act_fields,
    cost_fields,
    fingerprint_of,
    payer_fields,
    reason_fields,
)
from budget_service.ledger.leases import lease_part, lease_return
from budget_service.ledger.limits import limit_text
from budget_service.ledger.values import Account, Cost, Fingerprint, Hold, Limit, blocks_of
from budget_service.ledger.windows import Microseconds


class Reserve(Struct, frozen=True, gc=False, kw_only=True):
    """Reserve a worst-case cost for `ttl`. The service draws `reservation_id`, which is not part of the fingerprint.

    `is_lease`: a region borrows the cost to grant it itself; it is remembered as long as a charge. In a region, where
    charges count under a lease, `asked_by` is the account that the client named. Of members only those of the `blocks`
    pay; without any, all of them do.
    """

    account: Account
    request_id: str
    max_cost: Cost
    unit_id: str
    query_id: str
    ttl: Microseconds
    reservation_id: str
    forfeits: bool
    is_lease: bool = False
    asked_by: str = ""
    blocks: tuple[str, ...] = ()

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client sent."""
        fields = ("reserve", *cost_fields(self.max_cost, self.unit_id), self.query_id, str(self.ttl))
        paid_by = payer_fields(self.blocks)
        return fingerprint_of(self.account, (*fields, *paid_by), self.asked_by)


class Charge(Struct, frozen=True, gc=False, kw_only=True):
    """Settle a reservation, or deduct directly if `reservation_id` is empty; ids that are not known are empty.

    `policy_statement` lists the publications of the release's policy; it is opaque here, and empty for none. With
    `worst_case_above`, which the service sets and which is not part of the fingerprint, the levels above the account
    count the reserved cost. `asked_by` and `blocks` as in `Reserve`.
    """

    account: Account
    request_id: str
    cost: Cost
    unit_id: str
    reservation_id: str
    release_id: str
    query_id: str
    charge_ticket: bytes = b""
    policy_statement: str = ""
    worst_case_above: bool = False
    asked_by: str = ""
    blocks: tuple[str, ...] = ()

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client sent."""
        ids = (self.reservation_id, self.release_id, self.query_id, self.charge_ticket.hex())
        paid_by = payer_fields(self.blocks)
        fields = ("charge", *cost_fields(self.cost, self.unit_id), *ids, self.policy_statement, *paid_by)
        return fingerprint_of(self.account, fields, self.asked_by)


class CancelReservation(Struct, frozen=True, gc=False, kw_only=True):
    """Cancel a reservation. `asked_by` as in `Reserve`."""

    account: Account
    request_id: str
    reservation_id: str
    asked_by: str = ""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client sent."""
        return fingerprint_of(self.account, ("release", self.reservation_id), self.asked_by)


class ReportCharge(Struct, frozen=True, gc=False, kw_only=True):
    """Record what a region has charged from a lease: charge `number` of it, counted from 1.

    A lease is a reservation of the home ledger, `lease_id.0`. Charge n takes its cost from `lease_id.(n-1)` and leaves
    the rest as `lease_id.n`, so that no charge counts twice, in whatever order reports arrive. Only the `region` that
    borrowed a lease reports its charges. It is not part of the fingerprint. `made_as` is the request by which the
    region made the charge: two copies of its ledger make different ones under one number.
    """

    account: Account
    lease_id: str
    number: int
    cost: Cost
    unit_id: str
    release_id: str
    query_id: str
    policy_statement: str = ""
    region: str = ""
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


class ReturnLease(Struct, frozen=True, gc=False, kw_only=True):
    """Give back what is left of a lease after so many charges, `number`; only the `region` that borrowed it does.

    `charged` is all that was charged from it, if its region knows that and charges nothing more: then what has lapsed
    is given back too. With `is_written_off` the lease is kept until its end, and so its region is answered: it may have
    given it back before the ledger was restored. Neither is part of the fingerprint, nor is the region.
    """

    account: Account
    lease_id: str
    number: int
    region: str
    unit_id: str = ""
    charged: Cost | None = None
    is_written_off: bool = False

    @property
    def request_id(self) -> str:
        """The name of this change."""
        return lease_return(self.lease_id, self.number)

    @property
    def reservation_id(self) -> str:
        """What is left of the lease."""
        return lease_part(self.lease_id, self.number)

    def fingerprint(self) -> Fingerprint:
        """Return a digest of what is given back."""
        return fingerprint_of(self.account, ("release", self.reservation_id))


class WriteOff(Struct, frozen=True, gc=False, kw_only=True):
    """Spend what is left of one level, the `account`, because an unknown amount of charges was lost."""

    account: Account
    request_id: str
    actor: str
    reason: str = ""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of the request."""
        return fingerprint_of(self.account, ("write off", *reason_fields(self.reason)))


class Refund(Struct, frozen=True, gc=False, kw_only=True):
    """Give back what an account was charged for a release in its present window; the release is then no longer paid.

    `account`, `release_id`, `actor`, `reason` and `request_id` are the administrator's. The other fields are those of
    the charge in the journal, with empty `holds` if there is none that counts.
    """

    account: Account
    request_id: str
    release_id: str
    actor: str
    reason: str
    query_id: str
    cost: Cost
    shared_cost: Cost | None
    unit_id: str
    holds: tuple[Hold, ...]

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that alone had paid."""
        return blocks_of(self.holds)

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return fingerprint_of(self.account, ("refund", self.release_id, *act_fields(self.actor, self.reason)))


class SetLimits(Struct, frozen=True, gc=False, kw_only=True):
    """Set or remove (None) limits on levels of one root, which is the `account`; those levels need not be used yet."""

    account: Account
    request_id: str
    actor: str
    changes: tuple[tuple[Account, Limit | None], ...]
    reason: str = ""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        changes = ((level.text, "" if limit is None else limit_text(limit)) for level, limit in self.changes)
        fields = (field for change in changes for field in change)
        return fingerprint_of(self.account, ("set limits", *fields, *act_fields(self.actor, self.reason)))


class ChangeCurrency(Struct, frozen=True, gc=False, kw_only=True):
    """Plan the currency that follows in a root, the `account`, or plan none any more if `unit_id` is empty."""

    account: Account
    request_id: str
    actor: str
    unit_id: str
    reason: str = ""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return fingerprint_of(
            self.account, ("change currency", self.unit_id, *act_fields(self.actor, self.reason))
        )


class ResumeClock(Struct, frozen=True, gc=False, kw_only=True):
    """Let the time of a root, the `account`, continue after its store's clock was wrong.

    `true_time` is the present time by the administrator's clock.
    """

    account: Account
    request_id: str
    actor: str
    true_time: Microseconds
    reason: str = ""

    def fingerprint(self) -> Fingerprint:
        """Return a digest without the time: a retry is sent later, with another time."""
        return fingerprint_of(self.account, ("resume clock", *act_fields(self.actor, self.reason)))


class CloseAccount(Struct, frozen=True, gc=False, kw_only=True):
    """Close an account, and with it all accounts below."""

    account: Account
    request_id: str
    actor: str
    reason: str

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return fingerprint_of(self.account, ("close", *act_fields(self.actor, self.reason)))


class ReopenAccount(Struct, frozen=True, gc=False, kw_only=True):
    """Open a closed account again, with what it had spent."""

    account: Account
    request_id: str
    actor: str
    reason: str

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return fingerprint_of(self.account, ("reopen", *act_fields(self.actor, self.reason)))


BudgetRequest: TypeAlias = (
    Reserve | Charge | CancelReservation | WriteOff | Refund | ReportCharge | ReturnLease
)
# Requests of an administrator about a root account or an account of it, which need no limits.
AccountRequest: TypeAlias = CloseAccount | ReopenAccount
RootRequest: TypeAlias = SetLimits | ChangeCurrency | ResumeClock | AccountRequest
Request: TypeAlias = BudgetRequest | RootRequest
