"""What a client may ask the ledger to change.

A request is complete when it is made, and stays the same when it is sent again. The limits that it is decided by are a
value of their own (`ledger.limits.AppliedLimits`). The `request_id` belongs to the root account: two roots may use the
same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from budget_service.ledger.digests import digest
from budget_service.ledger.limits import limit_text
from budget_service.ledger.values import Account, Cost, Fingerprint, Hold, Limit
from budget_service.ledger.windows import Microseconds


class Reserve(Struct, frozen=True, gc=False, kw_only=True):
    """Hold a worst case for `ttl`. The service draws `reservation_id`, which is no part of the content."""

    account: Account
    request_id: str
    max_cost: Cost
    unit_id: str
    query_id: str
    ttl: Microseconds
    reservation_id: str
    forfeits: bool

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client said."""
        said = ("reserve", *_cost_parts(self.max_cost, self.unit_id), self.query_id, str(self.ttl))
        return _fingerprint(self.account, said)


class Charge(Struct, frozen=True, gc=False, kw_only=True):
    """Settle a reservation, or deduct directly if `reservation_id` is empty; ids that are not known are empty.

    `policy_statement` is what the release's policy had published, opaque here; empty: nothing. With `worst_case_above`,
    which is the service's and no part of the content, the levels above the account count what was reserved.
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

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client said."""
        ids = (self.reservation_id, self.release_id, self.query_id, self.charge_ticket.hex())
        # An empty one is left out, so that charges of clients that know of none keep their digests.
        stated = (self.policy_statement,) if self.policy_statement else ()
        return _fingerprint(self.account, ("charge", *_cost_parts(self.cost, self.unit_id), *ids, *stated))


class CancelReservation(Struct, frozen=True, gc=False, kw_only=True):
    """Give a reservation back."""

    account: Account
    request_id: str
    reservation_id: str

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client said."""
        return _fingerprint(self.account, ("release", self.reservation_id))


class WriteOff(Struct, frozen=True, gc=False, kw_only=True):
    """Spend what is left of one level, the `account`, because charges were lost and nobody knows them."""

    account: Account
    request_id: str

    def fingerprint(self) -> Fingerprint:
        """Return a digest of what is asked."""
        return _fingerprint(self.account, ("write off",))


class Refund(Struct, frozen=True, gc=False, kw_only=True):
    """Give back what an account was charged for a release in its present window, which it then has not paid for.

    All but the account, the release, the `reason` and the request's id is what the journal says of the charge; no
    `holds`: it has none that counts.
    """

    account: Account
    request_id: str
    release_id: str
    reason: str
    query_id: str
    cost: Cost
    shared_cost: Cost | None
    unit_id: str
    holds: tuple[Hold, ...]

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator said."""
        return _fingerprint(self.account, ("refund", self.release_id, self.reason))


class SetLimits(Struct, frozen=True, gc=False, kw_only=True):
    """Set or remove (None) limits on levels of one root, which is the `account`; those levels need not be used yet."""

    account: Account
    request_id: str
    changes: tuple[tuple[Account, Limit | None], ...]

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator said."""
        said = ((level.text, "" if limit is None else limit_text(limit)) for level, limit in self.changes)
        return _fingerprint(self.account, ("set limits", *(part for pair in said for part in pair)))


class ChangeCurrency(Struct, frozen=True, gc=False, kw_only=True):
    """Plan the currency that follows in a root, the `account`, or plan none any more if `unit_id` is empty."""

    account: Account
    request_id: str
    unit_id: str

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator said."""
        return _fingerprint(self.account, ("change currency", self.unit_id))


class ResumeClock(Struct, frozen=True, gc=False, kw_only=True):
    """Let the time of a root, the `account`, go on after its store's clock was wrong.

    `told_time` is what the time is, by another clock.
    """

    account: Account
    request_id: str
    told_time: Microseconds

    def fingerprint(self) -> Fingerprint:
        """Return a digest of what the administrator wants; a repeat is sent later and says another time."""
        return _fingerprint(self.account, ("resume clock",))


BudgetRequest: TypeAlias = Reserve | Charge | CancelReservation | WriteOff | Refund
# What an administrator asks of a root account.
RootRequest: TypeAlias = SetLimits | ChangeCurrency | ResumeClock
Request: TypeAlias = BudgetRequest | RootRequest


def _cost_parts(cost: Cost, unit_id: str) -> tuple[str, str, str]:
    return str(cost.information), str(cost.calls), unit_id


def _fingerprint(account: Account, said: Iterable[str]) -> Fingerprint:
    # The account comes first as one part: its own slashes keep its segments apart.
    return digest([part.encode() for part in (account.text, *said)])
