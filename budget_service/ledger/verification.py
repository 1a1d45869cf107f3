"""Verification: the journal is added up again and compared with the balances that the ledger keeps."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum

from msgspec.structs import replace

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.currency import UNUSED, Currency
from budget_service.ledger.digests import digest
from budget_service.ledger.state import EntryKind, JournalEntry, Reservation, RootRecord
from budget_service.ledger.values import NOTHING, Account, Cost, Hold, Unit, capped_sum
from budget_service.ledger.windows import Microseconds


class Sum(Enum):
    """What is compared."""

    SPENT = "spent"
    RESERVED = "reserved"
    CURRENCY = "currency"
    TIME = "time"
    AHEAD = "ahead"
    STATE = "state"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Difference:
    """A sum of a level that differs from the journal. `start` is that of its span, None for what is reserved.

    Without a `unit` the numbers are of another kind. For a currency they are when it begins. For the time of a root
    they are its last time, and the one nearest to it that is possible. For the state of an account they are 0 if it is
    open and 1 if it is closed. For a checkpoint
    `kept` is of how many entries it was made, and `rebuilt` how many there are, or 0 if they are others.
    """

    level: Account
    unit: Unit | None
    sum: Sum
    start: Microseconds | None
    kept: int
    rebuilt: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The verified sums of a root's journal up to `position`, with the number and the digest of its entries.

    `closed` are the accounts that were closed then. `time` is the newest of these entries', and `ahead` how far they
    let the root's time be ahead of the clock.
    """

    position: str = ""
    entries: int = 0
    digest: str = ""
    spent: Mapping[Account, Mapping[Microseconds, Cost]] = field(default_factory=dict)
    currency: Currency = UNUSED
    closed: frozenset[Account] = frozenset()
    time: Microseconds = 0
    ahead: Microseconds = 0


@dataclass
class RebuiltStates:
    """The accounts that are closed according to the journal: `add` every entry once, in order."""

    closed: set[Account]

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

    `add` every entry once, in order. A charge counts on the days of the levels that it names.
    """

    entries: int = 0
    digest: str = ""
    spent: dict[Account, dict[Microseconds, Cost]] = field(default_factory=lambda: defaultdict(dict))
    kept: dict[Account, list[Microseconds]] = field(default_factory=dict)
    # Of which blocks there are sums at a level.
    blocks: dict[tuple[str, ...], set[str]] = field(default_factory=lambda: defaultdict(set))
    currency: Currency = UNUSED
    time: Microseconds = 0
    ahead: Microseconds = 0
    # When the latest present day of a compared balance begins, and when one ends.
    day_start: Microseconds = 0
    day_end: Microseconds = 0

    @staticmethod
    def after(checkpoint: Checkpoint) -> Rebuilt:
        """Return the sums of a checkpoint, to be continued."""
        rebuilt = Rebuilt(checkpoint.entries, checkpoint.digest, currency=checkpoint.currency)
        rebuilt.time, rebuilt.ahead = checkpoint.time, checkpoint.ahead
        for level, spans in checkpoint.spent.items():
            rebuilt.continue_from(level, spans)
        return rebuilt

    def continue_from(self, level: Account, spans: Mapping[Microseconds, Cost]) -> None:
        """Take the sums of a level, or of a block of it, from a checkpoint."""
        self._spans(level).update(spans)

    def _spans(self, level: Account) -> dict[Microseconds, Cost]:
        if level.block:
            self.blocks[level.path].add(level.block)
        return self.spent[level]

    def by_day(self, level: Account) -> dict[Microseconds, Cost]:
        """Return what was spent at a level, with a sum for each day that is kept at a compared balance."""
        return by_day(self.spent[level], self.kept.get(level, ()))

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
            spans, start = self._spans(hold.level_of(entry.account)), hold.window_start
            spans[start] = spans.get(start, NOTHING) + entry.cost_at(hold.depth)

    def _subtract(self, entry: JournalEntry) -> None:
        for hold in entry.holds:
            spans = self._spans(hold.level_of(entry.account))
            before, cost = spans.get(hold.window_start, NOTHING), entry.cost_at(hold.depth)
            # A refund of more than was charged is not subtracted; then the balance differs.
            spans[hold.window_start] = before - cost if cost.within(before) else before

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
        self.kept[level] = sorted(kept)
        rebuilt = by_day(self.spent.get(level, {}), self.kept[level])
        for start in sorted(kept.keys() | rebuilt.keys()):
            spent = kept.get(start, NOTHING)
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


def next_digest(before: str, entry: JournalEntry) -> str:
    """Return the digest of all entries up to one, from that of those before it."""
    return digest((before.encode(), *entry_parts(entry)))


def entry_parts(entry: JournalEntry) -> list[bytes]:
    """Return the fields of an entry as the digest of a checkpoint takes them.

    Fields that few entries have are there only where the entry has them, behind their names, which cannot be confused
    with numbers.
    """
    amounts = (str(entry.cost.information), str(entry.cost.calls), entry.unit_id)
    ids = (entry.request_id, entry.release_id, entry.query_id, str(entry.time))
    holds = (part for hold in entry.holds for part in _hold_parts(hold))
    stated = ("policy_statement", entry.policy_statement) if entry.policy_statement else ()
    fields = (entry.kind.value, entry.account.text, *amounts, *ids, *holds, *stated, *_rarer_fields(entry))
    return [field.encode() for field in fields]


def _hold_parts(hold: Hold) -> tuple[str, ...]:
    counted = (str(hold.depth), str(hold.window_start))
    return (*counted, "block", hold.block) if hold.block else counted


def _rarer_fields(entry: JournalEntry) -> tuple[str, ...]:
    shared = entry.shared_cost
    counted = () if shared is None else ("shared_cost", str(shared.information), str(shared.calls))
    acts = (("reason", entry.reason), ("actor", entry.actor), ("change", entry.change))
    return (*counted, *(part for act in acts if act[1] for part in act))


def by_day(spans: Mapping[Microseconds, Cost], starts: Sequence[Microseconds]) -> dict[Microseconds, Cost]:
    """Return the sums by day; each day lasts until the next one begins."""
    found: dict[Microseconds, Cost] = {}
    for start, cost in spans.items():
        index = bisect_right(starts, start)
        day = starts[index - 1] if index else start
        found[day] = found.get(day, NOTHING) + cost
    return found


def held_by_level(reservations: Iterable[Reservation]) -> dict[Account, list[tuple[Microseconds, Cost]]]:
    """Return what open reservations hold at each level, with the start of the span that admitted it."""
    held: dict[Account, list[tuple[Microseconds, Cost]]] = defaultdict(list)
    for reservation in reservations:
        for hold in reservation.holds:
            level = hold.level_of(reservation.account)
            held[level].append((hold.window_start, reservation.held))
    return held


def _unlike(account: Account, which: Sum, kept: int, rebuilt: int) -> Iterator[Difference]:
    if kept != rebuilt:
        yield Difference(account, None, which, None, kept, rebuilt)


def _compared(
    level: Account, which: Sum, start: Microseconds | None, kept: Cost, rebuilt: Cost
) -> Iterator[Difference]:
    for unit in Unit:
        if kept.of(unit) != rebuilt.of(unit):
            yield Difference(level, unit, which, start, kept.of(unit), rebuilt.of(unit))
