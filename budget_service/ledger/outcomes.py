"""The outcomes of requests. Each but `Held` is kept under its request id, refusals for an hour.

A store keeps them as JSON arrays: a tag, which keeps its name, and the fields in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.values import NOTHING, Account, Cost, Hold, Mode, Unit, part_taken
from budget_service.ledger.windows import Microseconds, Window


class Reason(Enum):
    """Why a request is refused, apart from an exhausted budget."""

    RESERVATION_OVER = "RESERVATION_OVER"
    UNIT_MISMATCH = "UNIT_MISMATCH"
    RELEASE_MISMATCH = "RELEASE_MISMATCH"
    QUERY_MISMATCH = "QUERY_MISMATCH"
    BLOCKS_MISMATCH = "BLOCKS_MISMATCH"
    TOO_MANY_BLOCKS = "TOO_MANY_BLOCKS"
    COST_ABOVE_RESERVATION = "COST_ABOVE_RESERVATION"
    SUM_OVERFLOW = "SUM_OVERFLOW"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    TOO_MANY_LIMITS = "TOO_MANY_LIMITS"
    UNIT_UNCHANGED = "UNIT_UNCHANGED"
    CURRENCY_PLANNED = "CURRENCY_PLANNED"
    NO_CURRENCY_PLANNED = "NO_CURRENCY_PLANNED"
    WINDOW_NEVER_ENDS = "WINDOW_NEVER_ENDS"
    CLOCKS_DISAGREE = "CLOCKS_DISAGREE"
    CLOCK_NOT_BEHIND = "CLOCK_NOT_BEHIND"
    NOT_PAID = "NOT_PAID"
    ACCOUNT_CLOSED = "ACCOUNT_CLOSED"
    ACCOUNT_NOT_CLOSED = "ACCOUNT_NOT_CLOSED"
    LEASE_SPENT = "LEASE_SPENT"
    LEASE_NOT_YOURS = "LEASE_NOT_YOURS"


class LevelStatus(Struct, frozen=True, gc=False, array_like=True):
    """The state of a limited level at one time for those who pay; `depth` is the number of segments of its path.

    `spent` is the most that counts for any member of the blocks that pay, and `reserved` what reservations add to that.
    """

    depth: int
    maximum: Cost
    mode: Mode
    window: Window
    spent: Cost
    reserved: Cost

    @property
    def remaining(self) -> Cost:
        """What may still be reserved, never below 0."""
        return self.unspent.less(self.reserved)

    @property
    def unspent(self) -> Cost:
        """What the limit leaves of what is spent, as if nothing were reserved; never below 0."""
        return self.maximum.less(self.spent)

    @property
    def is_over_limit(self) -> bool:
        """Whether what is spent and reserved is more than the limit."""
        # The sum itself may be more than a cost can hold.
        maximum, spent, reserved = self.maximum, self.spent, self.reserved
        return (
            spent.information + reserved.information > maximum.information
            or spent.calls + reserved.calls > maximum.calls
        )

    def seen_from(self, depth: int) -> LevelStatus:
        """Return what an account of that depth may see: what others hold on a level above it is their affair."""
        is_own = self.depth >= depth
        return self if is_own or self.reserved == NOTHING else replace(self, reserved=NOTHING)

    def shortfalls(self, cost: Cost, *, left: Cost, depth: int) -> tuple[Shortfall, ...]:
        """Return the units of this level of which `left` cannot pay `cost`; none if the level only tracks.

        They say what remains as an account of that depth may see it.
        """
        if self.mode is Mode.TRACK:
            return ()
        seen = self.seen_from(depth).remaining
        return tuple(
            Shortfall(self.depth, unit, cost.of(unit), seen.of(unit), self.window.end)
            for unit in Unit
            if cost.of(unit) > left.of(unit)
        )


def most_spent(levels: Sequence[LevelStatus]) -> LevelStatus:
    """Return the state of one level for all blocks together, from what it is for each of them.

    Of several blocks that are as short, its window ends with the last one's.
    """
    spent = [max(each.spent.of(unit) for each in levels) for unit in Unit]
    all_of_it = [max(each.spent.of(unit) + each.reserved.of(unit) for each in levels) for unit in Unit]
    first = max(
        levels, key=lambda each: (part_taken(each.maximum, each.spent, each.reserved), each.window.until)
    )
    start = min(each.window.start for each in levels)
    reserved = Cost(*(both - amount for both, amount in zip(all_of_it, spent, strict=True)))
    return replace(first, window=Window(start, first.window.end), spent=Cost(*spent), reserved=reserved)


class Shortfall(Struct, frozen=True, gc=False, array_like=True):
    """A unit of a level that cannot pay; `refreshes_at` is when charges stop counting, None if never."""

    depth: int
    unit: Unit
    requested: int
    remaining: int
    refreshes_at: Microseconds | None


class Lent(Struct, frozen=True, gc=False, array_like=True):
    """To whom a lease was lent, and what has to be as it was for the rest to be given back once it has lapsed.

    What lapses is given back on the days on which it was spent, those of `holds`. The version of the root's limits
    changes when what was left is written off.
    """

    account: Account
    region: str
    limits_version: int
    holds: tuple[Hold, ...]


class Reserved(Struct, frozen=True, gc=False, array_like=True, tag="reserved"):
    """A new reservation; it holds nothing if the question is `already_paid` for. A lease is `lent`."""

    reservation_id: str
    held: Cost
    expires_at: Microseconds
    already_paid: bool
    lent: Lent | None = None


class Charged(Struct, frozen=True, gc=False, array_like=True, tag="charged"):
    """A charge, and what is left after it; nothing is charged if the release is `already_paid` for.

    Of a region's charge it has all that was `reported` of its lease until then, of several charges at once what `each`
    has taken.
    """

    charged: Cost
    already_paid: bool
    levels: tuple[LevelStatus, ...]
    reported: Cost = NOTHING
    each: tuple[Cost, ...] = ()


class Cancelled(Struct, frozen=True, gc=False, array_like=True, tag="released"):
    """A cancelled reservation, or a refunded charge."""

    returned: Cost
    unit_id: str


class Exhausted(Struct, frozen=True, gc=False, array_like=True, tag="exhausted"):
    """A refusal: the cost does not fit into what is not spent.

    `decided_at` is the ledger's time, which `stands_still` for so long (`RootRecord.stands_still_for`).
    """

    decided_at: Microseconds
    shortfalls: tuple[Shortfall, ...]
    stands_still: Microseconds = 0


class Held(Struct, frozen=True, gc=False, array_like=True, tag="held"):
    """A refusal for now: the cost would fit if no reservation were open. It is never remembered; see `Exhausted`."""

    decided_at: Microseconds
    shortfalls: tuple[Shortfall, ...]
    stands_still: Microseconds = 0


class Refused(Struct, frozen=True, gc=False, array_like=True, tag="refused"):
    """A refusal for any other reason; of what differs from a reservation, what was `expected`, and what was `got`."""

    reason: Reason
    expected: tuple[str, ...] = ()
    got: tuple[str, ...] = ()


class LimitsSet(Struct, frozen=True, gc=False, array_like=True, tag="limits"):
    """Limits were changed, or an account was closed or opened.

    `version` is that of the root's limits and closed accounts from now on; no others ever have it.
    """

    version: int


class CurrencyChanged(Struct, frozen=True, gc=False, array_like=True, tag="currency"):
    """Another currency is planned from `begins_at` on, or none any more if `unit_id` is empty."""

    unit_id: str
    begins_at: Microseconds


class ClockResumed(Struct, frozen=True, gc=False, array_like=True, tag="clock"):
    """The time of a root continues, `ahead` of its store's clock."""

    ahead: Microseconds


RootOutcome: TypeAlias = LimitsSet | CurrencyChanged | ClockResumed
Outcome: TypeAlias = Reserved | Charged | Cancelled | RootOutcome | Exhausted | Held | Refused


class Answer(Struct, frozen=True, gc=False):
    """An outcome, and whether it is the replay of an earlier request with the same id and content."""

    outcome: Outcome
    replayed: bool
