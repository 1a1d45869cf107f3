"""Verification: the journal is added up again and compared with the balances that the ledger keeps."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum

from msgspec.structs import replace

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.base import Base
from budget_service.ledger.block_sums import NO_SUMS, BlocksRow, Sums
from budget_service.ledger.chain import next_digest
from budget_service.ledger.currency import UNUSED, Currency
from budget_service.ledger.state import EntryKind, JournalEntry, Reservation, RootRecord
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Account, Cost, Hold, Unit, capped_sum
from budget_service.ledger.windows import Microseconds


class Sum(Enum):
    """What is compared."""

    SPENT = "spent"
    RESERVED = "reserved"
    BLOCKS = "blocks"
    CURRENCY = "currency"
    TIME = "time"
    AHEAD = "ahead"
    STATE = "state"
    JOURNAL = "journal"


@dataclass(frozen=True, slots=True)
class Difference:
    """A sum of a level that differs from the journal. `start` is that of its span, None for what is reserved.

    For blocks `kept` is what no block of the level is said to have more of, spent and reserved together, and `rebuilt`
    what one has. Without a `unit` the numbers are of another kind. For a currency they are when it begins. For the time
    of a root they are its last time, and the one nearest to it that is possible. For the state of an account they are 0
    if it is open and 1 if it is closed. For the journal `kept` is how many entries there were ever, and `rebuilt` how
    many are found, or 0 if they are others.
    """

    level: Account
    unit: Unit | None
    sum: Sum
    start: Microseconds | None
    kept: int
    rebuilt: int


@dataclass
class RebuiltStates:
    """The accounts that are closed according to the journal: `add` every entry once, in order."""

    closed: set[Account]

    @staticmethod
    def after(base: Base) -> RebuiltStates:
        """Return the states of a base, to be continued."""
        return RebuiltStates(set(map(Account.of_text, base.closed)))

    def add(self, entry: JournalEntry) -> None:
        """Follow one entry."""
        if entry.kind is EntryKind.CLOSE:
            self.closed.add(entry.account)
        elif entry.kind is EntryKind.REOPEN:
            self.closed.discard(entry.account)

    def differences(self, kept: Set[Account]) -> Iterator[Difference]:
        """Compare the closed accounts of the ledger with the journal up to the same time."""
        for account in sorted(self.closed ^ kept):
            yield from _unlike(account, Sum.STATE, account in kept, account in self.closed)


@dataclass
class Rebuilt:
    """What was spent according to the journal, by level and start of day, and in which currency.

    `add` every entry once, in order. A charge counts on the days of the levels that it names. All days before `until`
    are taken together: see `base`. They may add up to more than a cost can hold, so sums of days are modulo 2^63.
    """

    entries: int = 0
    digest: str = ""
    # Days before it are one, which begins at 0.
    until: Microseconds = 0
    spent: dict[Account, dict[Microseconds, Cost]] = field(default_factory=lambda: defaultdict(dict))
    currency: Currency = UNUSED
    time: Microseconds = 0
    ahead: Microseconds = 0
    # When the latest present day of a compared balance begins, and when one ends.
    day_start: Microseconds = 0
    day_end: Microseconds = 0

    @staticmethod
    def after(base: Base) -> Rebuilt:
        """Return the sums of a base, to be continued. Raises InvalidFieldError."""
        rebuilt = Rebuilt(base.entries, base.chain, base.until, currency=base.currency)
        rebuilt.time, rebuilt.ahead = base.time, base.ahead
        for level, amounts in base.spent.items():
            rebuilt.spent[Account.of_text(level)] = {0: Cost(*amounts)}
        return rebuilt

    def sums(self) -> dict[str, tuple[int, int]]:
        """Return what was spent at each level on all days together, as a base has it."""
        found = {level: _wrapped_sum(*spans.values()) for level, spans in self.spent.items()}
        return {level.text: (cost.information, cost.calls) for level, cost in found.items()}

    def add(self, entry: JournalEntry) -> None:
        """Count one entry on all its levels."""
        self.entries += 1
        self.digest = next_digest(self.digest, entry)
        self.time = max(self.time, entry.time)
        if entry.kind is EntryKind.CLOCK:
            self.ahead = entry.holds[0].window_start
        currency = self.currency.at(entry.time)
        if entry.kind is EntryKind.CURRENCY:
            self.currency = currency.followed_by(entry.unit_id, entry.holds[0].window_start)
            return
        if entry.kind is EntryKind.REFUNDED:
            self._subtract(entry)
        if not entry.kind.is_charge:
            return
        self.currency = currency.charged(entry.unit_id)
        for hold in entry.holds:
            spans, start = self.spent[hold.level_of(entry.account)], self._start(hold)
            spans[start] = _wrapped_sum(spans.get(start, NOTHING), entry.cost_at(hold.depth))

    def _subtract(self, entry: JournalEntry) -> None:
        for hold in entry.holds:
            spans, start = self.spent[hold.level_of(entry.account)], self._start(hold)
            before, cost = spans.get(start, NOTHING), entry.cost_at(hold.depth)
            # After a refund of more than was charged the balance differs.
            spans[start] = _wrapped(before.information - cost.information, before.calls - cost.calls)

    def _start(self, hold: Hold) -> Microseconds:
        return hold.window_start if hold.window_start >= self.until else 0

    def _folded(self, days: Mapping[Microseconds, Cost]) -> dict[Microseconds, Cost]:
        """Return the sums of days with those before `until` as one."""
        found = {start: cost for start, cost in days.items() if start >= self.until}
        if early := [cost for start, cost in days.items() if start < self.until]:
            found[0] = _wrapped_sum(*early)
        return found

    def differences(
        self,
        level: Account,
        balance: Balance,
        past: Iterable[PastDay],
        held: Iterable[tuple[Microseconds, Cost]],
        since: Microseconds,
    ) -> Iterator[Difference]:
        """Compare a balance and its past days with the journal up to its time, and with what was `held` there then.

        `since` is when the present currency began.
        """
        self.day_start = max(self.day_start, balance.day.start)
        self.day_end = max(self.day_end, balance.day.end)
        kept = {day.start: day.spent for day in past} | {balance.day.start: balance.today}
        rebuilt = self._folded(by_day(self.spent.get(level, {}), sorted(kept)))
        compared = self._folded(kept)
        for start in sorted(compared.keys() | rebuilt.keys()):
            spent = compared.get(start, NOTHING)
            yield from _compared(level, Sum.SPENT, start, spent, rebuilt.get(start, NOTHING))
        # The balance says itself what it counts. What counts by its rule is compared whatever it says.
        counts_from = max(balance.rule_counts_from(), since)
        if balance.rule is not None:
            counted = capped_sum(
                spent for start, spent in kept.items() if balance.counts(start) or start >= counts_from
            )
            yield from _compared(level, Sum.SPENT, balance.window.start, balance.spent, counted)
            earlier = ((day.start, day.spent) for day in balance.earlier)
            for start, spent in earlier:
                yield from _compared(level, Sum.SPENT, start, spent, kept.get(start, NOTHING))
        first = min(balance.reserved_since, counts_from)
        reserved = capped_sum(cost for start, cost in held if start >= first)
        yield from _compared(level, Sum.RESERVED, None, balance.reserved, reserved)

    def currency_differences(self, root: Account, kept: Currency) -> Iterator[Difference]:
        """Compare the currency of the root with the journal, as of when all planned changes have come into effect."""
        # The ledger records the beginning of a currency only with the next request.
        found, expected = kept.at_last, self.currency.at_last
        if not expected.unit_id:
            # A share that is lent fixes the currency too, and is not in the journal.
            found = replace(found, unit_id="")
        if found != expected:
            yield Difference(root, None, Sum.CURRENCY, None, found.since, expected.since)

    def journal_differences(self, root: Account, kept: RootRecord) -> Iterator[Difference]:
        """Compare the number and the digest of all entries with those that the root keeps."""
        if self.entries != kept.entries:
            yield Difference(root, None, Sum.JOURNAL, None, kept.entries, self.entries)
        elif self.digest != kept.digest:
            yield Difference(root, None, Sum.JOURNAL, None, kept.entries, 0)

    def time_differences(
        self, root: Account, kept: RootRecord, unexplained: Microseconds
    ) -> Iterator[Difference]:
        """Compare the last time of the root with all that shows it, after all balances.

        It is no earlier than any entry, and than the beginning of any balance's present day. Where the store's clock
        does not reach it, the clock was ahead when something was written last: then an entry has it, or the day of a
        balance contains it, or the version of the limits is as late.

        Args:
            root: The root account.
            kept: What the ledger keeps for it.
            unexplained: Its last time with the first page of balances if the clock had not reached it then, else 0.
        """
        first = max(self.time, self.day_start)
        last = max(first, self.day_end, kept.limits_version)
        if kept.last_time < first:
            yield Difference(root, None, Sum.TIME, None, kept.last_time, first)
        if unexplained > last:
            yield Difference(root, None, Sum.TIME, None, unexplained, last)
        yield from _unlike(root, Sum.AHEAD, kept.ahead, self.ahead)

    def missing(self, level: Account) -> Iterator[Difference]:
        """Return what was last charged at a level that has no balance."""
        start = max(self.spent[level])
        yield from _compared(level, Sum.SPENT, start, NOTHING, self.spent[level][start])


def block_differences(
    level: Account, balance: Balance, rows: Mapping[Account, BlocksRow | None]
) -> Iterator[Difference]:
    """Compare what a block has with what its level says that no block has more of."""
    row = rows.get(level.of_block(""))
    known = None if row is None else row.known
    if not level.block or (known is not None and known.rule != balance.rule):
        # Blocks are read before anything is decided by another window.
        return
    most = NO_SUMS if known is None else known.paying.sums
    own = Sums.of(balance)
    for unit in Unit:
        if own.spent.of(unit) > most.spent.of(unit) or own.taken.of(unit) > most.taken.of(unit):
            yield Difference(level, unit, Sum.BLOCKS, None, most.taken.of(unit), own.taken.of(unit))


def by_day(spans: Mapping[Microseconds, Cost], starts: Sequence[Microseconds]) -> dict[Microseconds, Cost]:
    """Return the sums by day; each day lasts until the next one begins."""
    found: dict[Microseconds, Cost] = {}
    for start, cost in spans.items():
        index = bisect_right(starts, start)
        day = starts[index - 1] if index else start
        found[day] = _wrapped_sum(found.get(day, NOTHING), cost)
    return found


def held_by_level(reservations: Iterable[Reservation]) -> dict[Account, list[tuple[Microseconds, Cost]]]:
    """Return what open reservations hold at each level, with the start of the span that admitted it."""
    held: dict[Account, list[tuple[Microseconds, Cost]]] = defaultdict(list)
    for reservation in reservations:
        for hold in reservation.holds:
            level = hold.level_of(reservation.account)
            held[level].append((hold.window_start, reservation.held))
    return held


def _wrapped_sum(*costs: Cost) -> Cost:
    return _wrapped(sum(each.information for each in costs), sum(each.calls for each in costs))


def _wrapped(information: int, calls: int) -> Cost:
    return Cost(information % (MAX_AMOUNT + 1), calls % (MAX_AMOUNT + 1))


def _unlike(account: Account, which: Sum, kept: int, rebuilt: int) -> Iterator[Difference]:
    if kept != rebuilt:
        yield Difference(account, None, which, None, kept, rebuilt)


def _compared(
    level: Account, which: Sum, start: Microseconds | None, kept: Cost, rebuilt: Cost
) -> Iterator[Difference]:
    for unit in Unit:
        if kept.of(unit) != rebuilt.of(unit):
            yield Difference(level, unit, which, start, kept.of(unit), rebuilt.of(unit))
