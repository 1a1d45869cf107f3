"""The largest sums that any block of a level has of its own: one row a level, so that no charge reads all blocks.

A question about everybody has to fit for the block that has spent most. No block has more than its level's row says:
every act that changes a block writes the row in the same transaction. Sums also fall, by refunds, by reservations that
end, and as time passes. The row knows some blocks by name and follows their sums exactly; `rest` bounds all others, and
never falls. So the row may say too much. Before anything is refused for that, the blocks are read anew, page by page
(`BlocksNeededError`), and so they are as soon as something of a block has stopped counting, or where another window or
currency counts. Meanwhile the row goes on: what is known so far of the pages is kept beside it, and follows every
change of a block that has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.balances import Balance
from budget_service.ledger.currency import END_OF_TIME
from budget_service.ledger.values import NOTHING, Account, Cost, capped_sum
from budget_service.ledger.windows import Microseconds, Window, WindowRule

# What the balance of a block was, if there was or was known to be one, and what it is now.
BlockChange: TypeAlias = tuple[Balance | None, Balance]
# Of more, so many are left: as many as one request may name, and those that have most. What these hold and give back
# is followed without reading a page.
MOST_NAMED = 32
LEAST_NAMED = 20


class BlocksNeededError(Exception):
    """To decide, the rules need a page of the blocks of a level, those behind `after`."""

    def __init__(self, level: Account, after: str) -> None:
        super().__init__()
        self.level = level
        self.after = after


class BlockPage(Struct, frozen=True, gc=False):
    """A page of the blocks of a level: those behind `after`, in order."""

    level: Account
    after: str
    blocks: tuple[Account, ...]
    is_last: bool


class Sums(Struct, frozen=True, gc=False, array_like=True):
    """What a block, or the one that has most, has spent, and has `taken`: spent and reserved."""

    spent: Cost = NOTHING
    taken: Cost = NOTHING

    @staticmethod
    def of(balance: Balance) -> Sums:
        """Return the sums of a balance."""
        return Sums(balance.spent, capped_sum((balance.spent, balance.reserved)))

    @staticmethod
    def most(each: Iterable[Sums]) -> Sums:
        """Return the largest of each sum; they may be those of several blocks."""
        found = [*each] or [NO_SUMS]
        return Sums(_most([one.spent for one in found]), _most([one.taken for one in found]))

    def within(self, bound: Sums) -> bool:
        """Return whether no sum is larger than that of `bound`."""
        return self.spent.within(bound.spent) and self.taken.within(bound.taken)


NO_SUMS = Sums()
_AMOUNTS: tuple[Callable[[Sums], int], ...] = (
    lambda each: each.spent.information,
    lambda each: each.spent.calls,
    lambda each: each.taken.information,
    lambda each: each.taken.calls,
)


class NamedSums(Struct, frozen=True, gc=False, array_like=True):
    """What a block has, and the window in which that counts."""

    sums: Sums
    window: Window


class Paying(Struct, frozen=True, gc=False, kw_only=True):
    """What those who pay have beside everybody: the largest `sums`, and those of some blocks.

    `start` is where their first charge may count, and `old` in which window something of an older currency counts.
    """

    sums: Sums = NO_SUMS
    named: Sequence[NamedSums] = ()
    start: Microseconds = END_OF_TIME
    old: Window | None = None

    @staticmethod
    def of(balances: Sequence[Balance], since: Microseconds) -> Paying:
        """Return what blocks with these balances have, in the currency since a time."""
        named = [NamedSums(Sums.of(each), each.counted_window()) for each in balances]
        old = None
        for each in balances:
            if each.reserved_since < since:
                old = Window.around_both(old, each.counted_window(as_one=True))
        start = min([each.window.start for each in named], default=END_OF_TIME)
        return Paying(sums=Sums.most([each.sums for each in named]), named=named, start=start, old=old)

    def beside(self, other: Paying) -> Paying:
        """Return what these blocks and others have."""
        return Paying(
            sums=Sums.most([self.sums, other.sums]),
            named=[*self.named, *other.named],
            start=min(self.start, other.start),
            old=Window.around_both(self.old, other.old),
        )


NONE_PAYING = Paying()


class LargestSums(Struct, frozen=True, gc=False, kw_only=True):
    """What is known of some blocks of a level, by a rule and in the currency since a time: see the module.

    `count` of them have something charged or held. `start` is where the first charge of any may count, and before
    `until` nothing stops counting. `old` is in which window something of an older currency counts.
    """

    rule: WindowRule | None = None
    since: Microseconds = 0
    named: Mapping[str, NamedSums] = {}
    rest: Sums = NO_SUMS
    count: int = 0
    start: Microseconds = END_OF_TIME
    until: Microseconds = END_OF_TIME
    old: Window | None = None

    @property
    def paying(self) -> Paying:
        """What no block has more than."""
        named = [*self.named.values()]
        sums = Sums.most([self.rest, *[each.sums for each in named]])
        return Paying(sums=sums, named=named, start=self.start, old=self.old)

    @property
    def is_reached(self) -> bool:
        """Whether a block has as much as this of each sum, so that it is the largest."""
        return self.rest.within(Sums.most([each.sums for each in self.named.values()]))

    def holds(self, rule: WindowRule | None, since: Microseconds, now: Microseconds) -> bool:
        """Return whether it is known by this rule, in this currency, and nothing has stopped counting."""
        return self.rule == rule and self.since == since and now < self.until

    def noted(self, changes: Mapping[str, BlockChange]) -> LargestSums:
        """Return what is known once blocks have other balances."""
        named, rest, count = {**self.named}, self.rest, self.count
        rule, start, until, old = self.rule, self.start, self.until, self.old
        for block, (before, after) in changes.items():
            named.pop(block, None)
            if after.rule != rule:
                # Of blocks by several rules nothing is known.
                rule = None
            if not after.is_unused:
                count += 1
                window = after.counted_window()
                named[block] = NamedSums(Sums.of(after), window)
                start, until = min(start, window.start), min(until, _counts_until(after, window))
                if after.reserved_since < self.since:
                    old = Window.around_both(old, after.counted_window(as_one=True))
            if before is not None and not before.is_unused:
                count -= 1
                if old is not None and before.reserved_since < self.since:
                    # Maybe it was the last one in the older currency.
                    until = 0
        if len(named) > MOST_NAMED:
            rest = Sums.most([rest, *[named.pop(each).sums for each in _dispensable(named)]])
        return LargestSums(
            rule=rule,
            since=self.since,
            named=named,
            rest=rest,
            count=count,
            start=start,
            until=until,
            old=old,
        )


class BlocksRow(Struct, frozen=True, gc=False, kw_only=True):
    """What is `known` of all blocks of a level, and what was `found` of those up to `after` which were read anew."""

    known: LargestSums
    found: LargestSums | None = None
    after: str = ""

    def noted(self, changes: Mapping[str, BlockChange]) -> BlocksRow:
        """Return the row once blocks have other balances."""
        found = self.found
        if found is not None:
            found = found.noted({block: each for block, each in changes.items() if block <= self.after})
        return BlocksRow(known=self.known.noted(changes), found=found, after=self.after)

    def next_page(self, rule: WindowRule | None, since: Microseconds, now: Microseconds) -> str:
        """Return behind which block to go on reading."""
        found = self.found
        return self.after if found is not None and found.holds(rule, since, now) else ""

    def read(
        self,
        page: BlockPage,
        balances: Sequence[tuple[str, Balance]],
        rule: WindowRule | None,
        since: Microseconds,
    ) -> BlocksRow:
        """Return the row after a page, whose blocks have these balances; the last page makes it known."""
        found = self.found if page.after else LargestSums(rule=rule, since=since)
        if found is None or (page.after and page.after != self.after):
            # Somebody else has read on.
            return self
        found = found.noted({block: (None, balance) for block, balance in balances})
        if page.is_last:
            return BlocksRow(known=found)
        return replace(self, found=found, after=balances[-1][0])


def _most(costs: Sequence[Cost]) -> Cost:
    return Cost(max([each.information for each in costs]), max([each.calls for each in costs]))


def _counts_until(balance: Balance, window: Window) -> Microseconds:
    """Return until when all of a balance counts: at least until the end of its day, whatever the zone of its window."""
    end = balance.day.end if balance.rule is None else window.end
    return END_OF_TIME if end is None else max(end, balance.day.end)


def _dispensable(named: Mapping[str, NamedSums]) -> list[str]:
    """Return those that were noted longest ago, but for those which have the most of something."""
    leading = {max(named, key=lambda block: amount(named[block].sums)) for amount in _AMOUNTS}
    others = [block for block in named if block not in leading]
    return others[: len(named) - LEAST_NAMED]
