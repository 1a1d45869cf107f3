"""The outcomes of requests. Each is kept under its request id, refusals for an hour."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from budget_service.ledger.values import Cost, Mode, Unit
from budget_service.ledger.windows import Microseconds, Window


class Reason(Enum):
    """Why a request is refused, apart from an exhausted budget."""

    RESERVATION_OVER = "RESERVATION_OVER"
    UNIT_MISMATCH = "UNIT_MISMATCH"
    RELEASE_MISMATCH = "RELEASE_MISMATCH"
    QUERY_MISMATCH = "QUERY_MISMATCH"
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
    ACCOUNT_MOVED = "ACCOUNT_MOVED"
    TARGET_USED = "TARGET_USED"
    HAS_ACCOUNTS_BELOW = "HAS_ACCOUNTS_BELOW"
    NOTHING_TO_MOVE = "NOTHING_TO_MOVE"
    MOVED_TOO_OFTEN = "MOVED_TOO_OFTEN"


class LevelStatus(Struct, frozen=True, gc=False):
    """The state of a limited level at one time; `depth` is the number of segments of its path."""

    depth: int
    maximum: Cost
    mode: Mode
    window: Window
    spent: Cost
    reserved: Cost

    @property
    def used(self) -> Cost:
        """What counts against the limit."""
        return self.spent + self.reserved

    @property
    def remaining(self) -> Cost:
        """What may still be reserved, never below 0."""
        maximum, spent, reserved = self.maximum, self.spent, self.reserved
        return Cost(
            max(0, maximum.information - spent.information - reserved.information),
            max(0, maximum.calls - spent.calls - reserved.calls),
        )

    def shortfalls(self, cost: Cost) -> tuple[Shortfall, ...]:
        """Return the units of this level that cannot pay `cost`; none if the level only tracks."""
        if self.mode is Mode.TRACK:
            return ()
        left = self.remaining
        return tuple(
            Shortfall(self.depth, unit, cost.of(unit), left.of(unit), self.window.end)
            for unit in Unit
            if cost.of(unit) > left.of(unit)
        )


class Shortfall(Struct, frozen=True, gc=False):
    """A unit of a level that cannot pay; `refreshes_at` is None if it never can again."""

    depth: int
    unit: Unit
    requested: int
    remaining: int
    refreshes_at: Microseconds | None


class Reserved(Struct, frozen=True, gc=False):
    """A new reservation; it holds nothing if the question is `already_paid` for."""

    reservation_id: str
    held: Cost
    expires_at: Microseconds
    already_paid: bool


class Charged(Struct, frozen=True, gc=False):
    """A charge, and what is left after it; nothing is charged if the release is `already_paid` for."""

    charged: Cost
    already_paid: bool
    levels: tuple[LevelStatus, ...]


class Cancelled(Struct, frozen=True, gc=False):
    """A cancelled reservation, or a refunded charge."""

    returned: Cost
    unit_id: str


class Exhausted(Struct, frozen=True, gc=False):
    """A refusal: the cost does not fit. `decided_at` is the ledger's time."""

    decided_at: Microseconds
    shortfalls: tuple[Shortfall, ...]


class Refused(Struct, frozen=True, gc=False):
    """A refusal for any other reason."""

    reason: Reason


class LimitsSet(Struct, frozen=True, gc=False):
    """Limits were changed, or an account was closed, opened or moved; `version` counts these changes of the root."""

    version: int


class CurrencyChanged(Struct, frozen=True, gc=False):
    """Another currency is planned from `begins_at` on, or none any more if `unit_id` is empty."""

    unit_id: str
    begins_at: Microseconds


class ClockResumed(Struct, frozen=True, gc=False):
    """The time of a root continues, `ahead` of its store's clock."""

    ahead: Microseconds


RootOutcome: TypeAlias = LimitsSet | CurrencyChanged | ClockResumed
Outcome: TypeAlias = Reserved | Charged | Cancelled | RootOutcome | Exhausted | Refused


class Answer(Struct, frozen=True, gc=False):
    """An outcome, and whether it is the replay of an earlier request with the same id and content."""

    outcome: Outcome
    replayed: bool
