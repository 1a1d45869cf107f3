"""Budgets as values: costs, levels, and what is missing."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2

from pinot_connector.errors import IntegrityError, InvalidQuestion, Shortfall
from pinot_connector.views import view

INFORMATION = "information"


@dataclass(frozen=True)
class Cost:
    """What a question costs: information units and calls of the currency `unit_id`.

    `blocks` are the ids of the blocks of members that pay; none: all do.
    """

    information: int
    calls: int
    unit_id: str
    blocks: tuple[str, ...] = ()


class Mode(Enum):
    """How a limit is applied: `ENFORCE` refuses what does not fit, `TRACK` records and never refuses."""

    ENFORCE = "enforce"
    TRACK = "track"


@dataclass(frozen=True)
class Level:
    """One level of an account that has a limit.

    `remaining` is what may still be reserved, never below 0. On a level above the account, `reserved` is 0 and
    `remaining` does not count what others hold now. `window_end` is None where the budget is never refreshed.
    `over_limit`: what was spent and what is reserved are together more than the limit. `remaining_of_blocks`: what is
    left for questions about one block of members alone; the last one is of each block that is not named.
    """

    path: tuple[str, ...]
    limit: Cost
    spent: Cost
    reserved: Cost
    remaining: Cost
    mode: Mode
    window_start: datetime.datetime | None
    window_end: datetime.datetime | None
    over_limit: bool = False
    remaining_of_blocks: tuple[Cost, ...] = ()

    @property
    def name(self) -> str:
        """Its path in one text."""
        return "/".join(self.path)

    def left_of_each(self, every: Collection[str]) -> tuple[Cost, ...]:
        """Returns what is left for questions about one block of `every`; the last one names none if it is of others."""
        named = {id_ for each in self.remaining_of_blocks for id_ in each.blocks}
        return self.remaining_of_blocks[:-1] if named >= set(every) else self.remaining_of_blocks

    def left_for(self, blocks: Collection[str]) -> Cost:
        """Returns what is left for questions that these blocks pay for, none: all."""
        if not blocks or not self.remaining_of_blocks:
            return self.remaining
        own = {id_: each for each in self.remaining_of_blocks for id_ in each.blocks}
        found = [own.get(id_, self.remaining_of_blocks[-1]) for id_ in blocks]
        information, calls = min(each.information for each in found), min(each.calls for each in found)
        return Cost(information, calls, self.limit.unit_id)


@dataclass(frozen=True)
class Charge:
    """What was charged this time, and what is left on every level."""

    charged: Cost
    remaining: tuple[Level, ...]


def require_within(max_cost: int | None, worst_case: Cost) -> None:
    """Raises InvalidQuestion if a question may cost more information units than its caller is willing to pay."""
    if max_cost is not None and worst_case.information > max_cost:
        calls = f" and {worst_case.calls} call{'s' * (worst_case.calls != 1)}" if worst_case.calls else ""
        raise InvalidQuestion(
            "max_cost",
            f"the question may cost {worst_case.information} information units{calls}, and at most {max_cost} are "
            "allowed; nothing was asked or charged",
        )


def questions_left(levels: Iterable[Level], price: Cost) -> int | None:
    """Returns how many more questions the budget pays for, on the level that is used up first.

    With the worst-case cost of one question as the price, so many can certainly be asked.

    Args:
        levels: the levels of an account.
        price: what a question costs, in information units and calls.

    Returns:
        A number of questions; None if no level enforces a limit, or the price is 0.
    """
    prices = ((level.left_for(price.blocks), level.mode) for level in levels)
    lasting = [
        left // unit
        for remaining, mode in prices
        if mode is Mode.ENFORCE
        for left, unit in ((remaining.information, price.information), (remaining.calls, price.calls))
        if unit > 0
    ]
    return min(lasting, default=None)


@dataclass(frozen=True)
class Balance:
    """Which of a limit's two units runs out first if questions go on as they were asked so far.

    `first` is empty where both end together. `calls`, rounded up, would end together with the information; if each adds
    `of_delta` times what a call adds now, that budget is worth the same: the product of calls and delta stays. Both
    are 0 if what was spent lacks one of the units.
    """

    first: str
    calls: int = 0
    of_delta: Fraction = Fraction(0)


def balance_of(spent: Cost, limit: Cost) -> Balance | None:
    """Returns which unit of a limit runs out first at the rate of what was spent; None if nothing was spent.

    The unit whose larger share of its limit is spent runs out first. A limit of 0 has run out of that unit, and has
    nothing to balance: None as well.
    """
    if not (limit.information and limit.calls and (spent.information or spent.calls)):
        return None
    information, calls = spent.information * limit.calls, spent.calls * limit.information
    first = "" if information == calls else INFORMATION if information > calls else "calls"
    if not (information and calls):
        return Balance(first)
    balanced = -(-calls // spent.information)
    return Balance(first, balanced, Fraction(limit.calls, balanced))


@dataclass(frozen=True)
class Share:
    """How much of one level's budget a question takes at most, in one unit ("information" or "calls").

    `of_limit` is the part of the whole limit, None where the limit is 0; `remaining` is what may still be reserved.
    """

    path: tuple[str, ...]
    unit: str
    cost: int
    limit: int
    remaining: int
    of_limit: Fraction | None = field(init=False)
    mode: Mode

    @property
    def name(self) -> str:
        """The path of the level in one text."""
        return "/".join(self.path)

    def __post_init__(self) -> None:
        """Finds the part of the limit."""
        object.__setattr__(self, "of_limit", Fraction(self.cost, self.limit) if self.limit else None)


def shares_of(levels: Iterable[Level], price: Cost) -> tuple[Share, ...]:
    """Returns the share of every level, from the root account on, that a price takes in each of its units."""
    return tuple(
        Share(level.path, unit, cost, limit, remaining, level.mode)
        for level in levels
        for left in (level.left_for(price.blocks),)
        for unit, cost, limit, remaining in (
            (INFORMATION, price.information, level.limit.information, left.information),
            ("calls", price.calls, level.limit.calls, left.calls),
        )
        if cost > 0
    )


def share_of(message: app_pb2.BudgetShare) -> Share:
    """Returns the share that a message holds.

    Raises:
        IntegrityError: the message has no mode, or takes nothing.
    """
    if message.cost < 1:
        raise IntegrityError("the gateway sent a share of a budget without a cost")
    return view(Share, message)


def narrowest(shares: Iterable[Share]) -> Share | None:
    """Returns the share of the limit that is used up first by such questions; None if no limit is enforced."""
    enforced = (share for share in shares if share.mode is Mode.ENFORCE)
    return min(enforced, key=lambda share: Fraction(share.remaining, share.cost), default=None)


def cost_of(message: cost_pb2.Cost) -> Cost:
    """Returns the cost that a message holds."""
    return view(Cost, message)


def level_of(message: budget_pb2.Level) -> Level:
    """Returns the level that a message holds.

    Raises:
        IntegrityError: the message has no mode, or a timestamp outside the years 1 to 9999.
    """
    return view(Level, message)


def levels_of(found: budget_pb2.GetBudgetResponse) -> tuple[Level, ...]:
    """Returns every level of a budget, from the widest to the account.

    Raises:
        IntegrityError: as for `level_of`.
    """
    return tuple(map(level_of, found.levels))


def charge_of(message: budget_pb2.UpdateBudgetResponse) -> Charge:
    """Returns the charge that a message holds.

    Raises:
        IntegrityError: as for `level_of`.
    """
    return Charge(cost_of(message.charged), tuple(map(level_of, message.levels)))


def shortfall_of(message: budget_pb2.Shortfall) -> Shortfall:
    """Returns the shortfall that a message holds.

    Raises:
        IntegrityError: it has a timestamp outside the years 1 to 9999.
    """
    return view(Shortfall, message)


def largest_k(shortfalls: Sequence[Shortfall], k: int, information_per_element: int) -> int | None:
    """Returns the largest k with which a refused question would fit; None where there is none.

    Args:
        shortfalls: all that is missing, on every level.
        k: the question's.
        information_per_element: what one element more adds to the worst case; 0: its price does not depend on k.
    """
    if not information_per_element or not shortfalls or any(each.unit != INFORMATION for each in shortfalls):
        return None
    missing = max(each.requested - each.remaining for each in shortfalls)
    smaller = k + -missing // information_per_element
    return smaller if 1 <= smaller < k else None
