"""The pure rules of leases: what the home ledger lends, and what a region does with what it has borrowed.

No clock is read here and nothing is opened: time is an argument.
"""

from __future__ import annotations

import re
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.digests import digest
from budget_service.ledger.limits import AppliedLimits, LeaseBounds
from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Account, Cost, LevelLimit, Limit, Mode, Unit
from budget_service.ledger.windows import SECOND, Microseconds, Period, WindowRule

# As long as a reservation may last: a charge may count on a day that has ended at most so long ago.
MAX_OUTLIVING: Microseconds = 600 * SECOND
# A lease is renewed when less than this part of its share, or of its time, is left.
RENEWED_BELOW = 3
NEVER = WindowRule(Period.NEVER, "UTC")
# In a region's ledger: the account under which questions are answered that were paid for.
REPLAYS = "replays"
SEPARATOR = "~"

_NAME_LENGTH = 32
_HEXADECIMAL = re.compile("[0-9a-f]{32}")


class LendingTerms(Struct, frozen=True, kw_only=True):
    """How much a home lends, in percent of what is not spent, and for how long."""

    share_percent: int = 10
    outstanding_percent: int = 50
    length: Microseconds = 600 * SECOND


class RegionTerms(Struct, frozen=True, kw_only=True):
    """How a region uses what it has borrowed.

    `skew` is how far the region's clock and the home's may differ: a lease is not used in the last `skew` before its
    end. What was not used for `idle` is given back, and charges are reported every `report`.
    """

    skew: Microseconds = 2 * SECOND
    idle: Microseconds = 60 * SECOND
    report: Microseconds = SECOND


class NotLent(Enum):
    """Why a home lends nothing, so that it has to be asked itself."""

    TOO_LARGE = "TOO_LARGE"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    REFUSED = "REFUSED"
    SET_BACK = "SET_BACK"
    COPIED = "COPIED"


class LeaseState(Enum):
    """ASKED: nobody knows whether it was granted. ACTIVE: it is granted from. RETIRING: it is to be given back."""

    ASKED = "asked"
    ACTIVE = "active"
    RETIRING = "retiring"


class Lease(Struct, frozen=True, kw_only=True):
    """A share of an account's budget that a region has asked for, or holds.

    `granted_at` and `ends_at` are by the home's clock. `window_start` and `window_end` are of the account's own limit.
    `levels` are the home's when it was granted. It `is_sole` if nothing of the account's budget is spent or held
    anywhere else: then a question that was not paid for here was not paid for at all. `reported` counts the charges
    that the home has recorded, and `rest` is what it still holds.
    """

    lease_id: str
    account: Account
    unit_id: str
    state: LeaseState = LeaseState.ASKED
    share: Cost = NOTHING
    rest: Cost = NOTHING
    granted_at: Microseconds = 0
    ends_at: Microseconds = 0
    window_start: Microseconds = 0
    window_end: Microseconds | None = None
    is_sole: bool = False
    reported: int = 0
    levels: tuple[LevelStatus, ...] = ()

    @property
    def local(self) -> Account:
        """The lease as an account of the region's ledger."""
        return local_account(self.account, self.unit_id, self.lease_id)

    def is_usable(self, now: Microseconds, terms: RegionTerms) -> bool:
        """Return whether a region may grant from it."""
        return self.state is LeaseState.ACTIVE and now < self.ends_at - terms.skew

    def applied(self, terms: RegionTerms) -> AppliedLimits:
        """Return what requests under the lease are decided by."""
        bounds = LeaseBounds(self.ends_at - terms.skew, self.window_end)
        return applied(self.local, self.share, payer(self.account, self.window_start), bounds)

    def needs_renewal(self, used: Cost, now: Microseconds) -> bool:
        """Return whether little of its share or its time is left."""
        left = any(
            RENEWED_BELOW * (self.share.of(unit) - used.of(unit)) < self.share.of(unit)
            for unit in Unit
            if self.share.of(unit)
        )
        return left or RENEWED_BELOW * (self.ends_at - now) < self.ends_at - self.granted_at

    def after_report(self, charged: Cost, *, is_known: bool) -> Lease:
        """Return the lease after the home has recorded its next charge; one that it does not know is given up."""
        state = self.state if is_known else LeaseState.RETIRING
        return replace(self, reported=self.reported + 1, rest=self.rest.less(charged), state=state)

    def retired(self) -> Lease:
        """Return the lease as nothing more is granted from it."""
        return replace(self, state=LeaseState.RETIRING)

    def shown(self, spent: Cost, reserved: Cost) -> tuple[LevelStatus, ...]:
        """Return the account's levels with what the region has granted since, in the place of the lease."""
        return tuple(_with_lease(each, self.share, spent, reserved) for each in self.levels)


class RegionTotal(Struct, frozen=True):
    """What a region has of an account's budget in a window: all it has charged, and all it holds.

    By this a home finds out whether anything of it was spent elsewhere.
    """

    window_start: Microseconds = 0
    window_end: Microseconds | None = None
    total: Cost = NOTHING

    def moved_to(self, start: Microseconds, end: Microseconds | None) -> RegionTotal:
        """Return the same in a window, where nothing of another one counts."""
        return RegionTotal(start, end, self.total if start == self.window_start else NOTHING)

    def plus(self, cost: Cost) -> RegionTotal:
        """Return it after a charge or a loan; a sum that cannot be counted is that of nobody."""
        amounts = (
            self.total.information + cost.information,
            self.total.calls + cost.calls,
        )
        return replace(self, total=Cost(*(min(each, MAX_AMOUNT) for each in amounts)))

    def minus(self, cost: Cost) -> RegionTotal:
        """Return it after a share was given back."""
        return replace(self, total=self.total.less(cost))


def share_of(
    levels: tuple[LevelStatus, ...], rules: tuple[LevelLimit, ...], wanted: Cost, terms: LendingTerms
) -> Cost | NotLent:
    """Return what the home lends of an account's budget so that `wanted` can be granted from it.

    Every enforced level lends at most a part of what it has not spent, and keeps a part for requests that come to the
    home. An account whose own limit slides by the day, or only tracks, is not lent: what it has paid for ends day by
    day, which only the home knows.
    """
    own = rules[-1].limit
    if own.mode is Mode.TRACK or own.window.period is Period.SLIDING:
        return NotLent.NOT_SUPPORTED
    amounts = [
        min(_lendable(each, unit, terms) for each in levels if each.mode is Mode.ENFORCE) for unit in Unit
    ]
    share = Cost(*amounts)
    if share == NOTHING or not wanted.within(share):
        return NotLent.TOO_LARGE
    return share


def end_of(rules: tuple[LevelLimit, ...], now: Microseconds, terms: LendingTerms) -> Microseconds:
    """Return when a lease ends that is granted now.

    It outlives no day of its levels by more than a reservation may.
    """
    last = min(each.limit.window.around(now).day.end for each in rules)
    return min(now + terms.length, max(last, now + MAX_OUTLIVING))


def clock_difference(sent: Microseconds, received: Microseconds, at_home: Microseconds) -> Microseconds:
    """Return by how much the region's clock is ahead of the home's, at least; less than 0 if it is behind.

    The home's time is from somewhere between `sent` and `received`, so as long as it lies there nothing is known.
    """
    return max(0, sent - at_home) - max(0, at_home - received)


def clocks_agree(difference: Microseconds, terms: RegionTerms) -> bool:
    """Return whether clocks that differ so much may be as far apart as is allowed."""
    return abs(difference) <= terms.skew


def local_account(account: Account, unit_id: str, lease_id: str) -> Account:
    """Return a lease as an account of the region's ledger. Its root keeps the request ids of one root and currency."""
    return Account((f"{account.root}@{unit_id}", lease_id))


def payer(account: Account, window_start: Microseconds) -> str:
    """Return under which name the region's ledger keeps what an account has paid for in a window."""
    return f"{account.text}//{window_start}"


def applied(local: Account, share: Cost, paid_as: str, bounds: LeaseBounds) -> AppliedLimits:
    """Return what a request in the region's ledger is decided by."""
    level = LevelLimit(local, Limit(share, Mode.ENFORCE, NEVER))
    return AppliedLimits((level,), paid_as=paid_as, lease=bounds)


def public_name(lease_id: str) -> str:
    """Return a lease's name as clients may know it: with the id they could report charges, or give it back."""
    if lease_id == REPLAYS:
        return REPLAYS
    return digest((b"gris/lease-name/v1", lease_id.encode()))[:_NAME_LENGTH]


def reservation_name(region: str, unit_id: str, lease_id: str, drawn: str) -> str:
    """Return the id of a reservation of a region's ledger, which tells the region its account there."""
    return SEPARATOR.join((region, unit_id, public_name(lease_id), drawn))


def parse_reservation_name(region: str, reservation_id: str) -> tuple[str, str] | None:
    """Return the currency and the lease's public name of a reservation; None if no such region can have named it."""
    parts = reservation_id.split(SEPARATOR)
    if len(parts) != len(("region", "unit", "lease", "drawn")) or parts[0] != region:
        return None
    _, unit_id, name, _ = parts
    is_well_formed = _HEXADECIMAL.fullmatch(unit_id) and (name == REPLAYS or _HEXADECIMAL.fullmatch(name))
    return (unit_id, name) if is_well_formed else None


def _lendable(level: LevelStatus, unit: Unit, terms: LendingTerms) -> int:
    unspent, reserved = level.unspent.of(unit), level.reserved.of(unit)
    lent_at_most = unspent * terms.outstanding_percent // 100
    return max(0, min(unspent * terms.share_percent // 100, lent_at_most - reserved))


def _with_lease(level: LevelStatus, share: Cost, spent: Cost, reserved: Cost) -> LevelStatus:
    return replace(level, spent=level.spent + spent, reserved=level.reserved.less(share) + reserved)
