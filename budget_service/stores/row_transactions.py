"""Transactions on the rows of a store: what a batch of requests wants is read from them, what it changes written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Generic, TypeVar

from budget_service.ledger.balances import PastDay
from budget_service.ledger.block_sums import BlockPage
from budget_service.ledger.currency import END_OF_TIME
from budget_service.ledger.state import PaidQuery, Reservation, RootRecord
from budget_service.ledger.values import ANY, Account, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import StoreUnavailableError
from budget_service.stores.row_map import (
    Appended,
    OvertakenError,
    Put,
    Range,
    RowKey,
    RowMap,
    RowReading,
    RowTransaction,
    Writes,
)
from budget_service.stores.rows import (
    AFTER_STAR,
    ROOTS,
    Decoders,
    Known,
    all_of,
    of_day,
    of_end,
    of_id,
    of_level,
    of_payer,
    of_payment,
    read_row,
    text_of,
    value_of,
)
from budget_service.stores.transactions import Changes, Loaded, PaymentKey, RootKey, Wanted
from budget_service.stores.wanted import held_levels

PURGED_PER_REQUEST = 6
MAX_ATTEMPTS = 16
MOST_QUESTIONS = 10_000
# Deciding on so many takes the event loop some 20 ms; with the history, each may have 400 days.
BLOCKS_AT_ONCE = 500
BLOCKS_WITH_DAYS = 16

Begun = TypeVar("Begun", bound=RowReading)


class RowTransactions:
    """Transactions on the rows of a store; see `Transactions`.

    Args:
        rows: The store.
        most_due: How many lapsed reservations are loaded at most.
        most_known: How much is remembered from one batch to the next, of a store that nobody else writes into.
    """

    def __init__(self, rows: RowMap, most_due: int, most_known: int = 0) -> None:
        self._rows = rows
        self._most_due = most_due
        self._most_known = most_known
        self._questions: dict[RootKey, str] = {}
        self.known = Known()

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what is wanted as it is now; see `Transactions`."""
        async with self._rows.reading() as begun:
            return (await self._loaded(begun, wanted)).loaded

    @asynccontextmanager
    async def transaction(self, wanted: Wanted) -> AsyncIterator[LoadedRows[RowTransaction]]:
        """Begin a transaction and load what is wanted; see `Transactions`."""
        try:
            async with self._rows.begin(wanted.roots) as begun:
                yield await self._loaded(begun, wanted)
        except BaseException:
            self.known = Known()
            raise

    async def _loaded(self, begun: Begun, wanted: Wanted) -> LoadedRows[Begun]:
        for _ in range(MAX_ATTEMPTS):
            if self.known.size >= self._most_known:
                self.known = Known()
            found = LoadedRows(begun, self.known, self._questions, wanted)
            try:
                await found.load(self._most_due)
            except OvertakenError:
                continue
            return found
        raise StoreUnavailableError("others were quicker each time")


class LoadedRows(Generic[Begun]):
    """A transaction that has begun and loaded; see `Transaction`."""

    def __init__(self, begun: Begun, known: Known, questions: dict[RootKey, str], wanted: Wanted) -> None:
        self._begun = begun
        self._known = known
        # Those of reservations that this process has made lately: their payments need no round trip of their own.
        self._questions = questions
        self._wanted = wanted
        # Reservations as they were loaded.
        self._held: dict[RootKey, Reservation] = {}
        # When the next reservation of a root lapses behind those that are due.
        self._next: dict[str, Microseconds] = {}
        self.loaded = Loaded(0, known.roots, known.balances, rows=known.rows)

    async def load(self, most_due: int) -> None:
        """Load, mostly in one round trip. Raises OvertakenError, StoreUnavailableError or StoreDamagedError."""
        wanted, loaded, known = self._wanted, self.loaded, self._known
        found = await self._begun.read(list(self._keys()), list(self._ranges()))
        loaded.clock = found.clock
        self._take(found.rows)
        for root in wanted.roots:
            known.lapses_from.setdefault(root, END_OF_TIME)
            known.stored.setdefault(root, 0)
            if loaded.roots.get(root, RootRecord()).now(found.clock) >= known.lapses_from[root]:
                await self._load_due(root, most_due)
        loaded.stored_limits = known.stored
        await self._load_held()
        if wanted.page is not None:
            await self._load_page(*wanted.page)

    def _keys(self) -> Iterator[RowKey]:
        wanted, known = self._wanted, self._known
        yield from ((root, ROOTS) for root in wanted.roots if root not in known.lapses_from)
        yield from self._unknown(wanted.levels)
        yield from (of_id("outcomes", each) for each in wanted.outcomes)
        yield from map(of_payment, [*wanted.payments, *self._guessed()])
        yield from (of_id("reservations", key) for key, _ in wanted.reservations)
        yield from (of_level("limits", level) for level in wanted.limits)
        yield from (of_level("closed", level) for level in wanted.closed)

    def _guessed(self) -> Iterator[PaymentKey]:
        for key, payer in self._wanted.reservations:
            if query_id := self._questions.get(key):
                yield payer, "query", query_id

    def _ranges(self) -> Iterator[Range]:
        wanted = self._wanted
        for level in dict.fromkeys(wanted.blocks):
            yield _blocks_of("balances", level)
        if wanted.history:
            for level in dict.fromkeys([*wanted.levels, *wanted.blocks]):
                yield all_of(level.root, f"days\t{level.text}")
            for level in dict.fromkeys(wanted.blocks):
                yield _blocks_of("days", level)
            for root in wanted.roots:
                yield all_of(root, "reservations")

    def _unknown(self, levels: Sequence[Account]) -> Iterator[RowKey]:
        """Return the keys of balances, and of what is known of the blocks of their levels."""
        known = self._known
        yield from (
            of_level("balances", each) for each in dict.fromkeys(levels) if each not in known.balances
        )
        above = dict.fromkeys([each.of_block("") for each in levels])
        yield from (of_level("blocks", each) for each in above if each not in known.rows)

    def _take(self, rows: Mapping[RowKey, str]) -> None:
        wanted, loaded, known = self._wanted, self.loaded, self._known
        new: dict[Account, list[Account]] = {level: [] for level in wanted.blocks}
        for key, text in rows.items():
            block = known.take(key, text)
            if block is not None and block.of_block("") in new:
                new[block.of_block("")].append(block)
        self._take_missing(wanted.levels)
        if wanted.history:
            self._take_history(rows)
        loaded.blocks = {level: frozenset(blocks) for level, blocks in new.items()}
        for id_ in wanted.outcomes:
            if outcome := value_of(Decoders.outcome, of_id("outcomes", id_), rows):
                loaded.outcomes[id_] = outcome
        self._take_payments([*wanted.payments, *self._guessed()], rows)
        for id_, _ in wanted.reservations:
            if reservation := value_of(Decoders.reservation, of_id("reservations", id_), rows):
                self._held[id_] = reservation
            loaded.reservations[id_] = reservation
        for level in wanted.limits:
            if limit := value_of(Decoders.limit, of_level("limits", level), rows):
                loaded.limits[level] = limit
        loaded.closed = {level for level in wanted.closed if of_level("closed", level) in rows}

    def _take_missing(self, levels: Sequence[Account]) -> None:
        """Note of levels whose rows of blocks were read that there is none."""
        for level in levels:
            self._known.rows.setdefault(level.of_block(""), None)

    def _take_history(self, rows: Mapping[RowKey, str]) -> None:
        open_: dict[str, list[Reservation]] = {root: [] for root in self._wanted.roots}
        for key, text in rows.items():
            root, name = key
            if name.startswith("reservations\t"):
                each = read_row(Decoders.reservation, key, text)
                self._held[root, each.reservation_id] = each
                open_[root].append(each)
        self.loaded.past = _days_in(rows)
        self.loaded.open = {root: tuple(found) for root, found in open_.items()}

    def _take_payments(self, keys: Iterable[PaymentKey], rows: Mapping[RowKey, str]) -> None:
        self.loaded.payments.update(
            (each, value_of(Decoders.payment, of_payment(each), rows)) for each in keys
        )

    async def _load_due(self, root: str, most: int) -> None:
        """Load the reservations that have lapsed, and when the next one does."""
        now = self.loaded.roots.get(root, RootRecord()).now(self.loaded.clock)
        ends = (await self._begun.read((), (all_of(root, "ends", most + 1),))).rows
        times = sorted(
            (int(key[1].split("\t", 2)[1]), read_row(Decoders.end, key, text)) for key, text in ends.items()
        )
        ids = [id_ for time, id_ in times[:most] if time <= now]
        keys = [of_id("reservations", (root, id_)) for id_ in ids]
        found = (await self._begun.read(keys)).rows if keys else {}
        due = tuple([read_row(Decoders.reservation, key, found.get(key, "")) for key in keys])
        self._held.update({(root, each.reservation_id): each for each in due})
        self.loaded.due[root] = due
        if len(ids) == most:
            self.loaded.due_further.add(root)
        self._next[root] = next((time for time, _ in times[len(ids) :]), END_OF_TIME)

    async def _load_held(self) -> None:
        """Load what reservations that are named or due hold, and what was paid for their questions."""
        wanted, loaded = self._wanted, self.loaded
        named = [(payer, found) for key, payer in wanted.reservations if (found := loaded.reservations[key])]
        paid = [
            key
            for payer, each in named
            if each.query_id and (key := (payer, "query", each.query_id)) not in loaded.payments
        ]
        held = held_levels([*(each for _, each in named), *chain.from_iterable(loaded.due.values())])
        keys = [*self._unknown(held), *map(of_payment, paid)]
        if keys:
            rows = (await self._begun.read(keys)).rows
            for name, text in rows.items():
                self._known.take(name, text)
            self._take_missing(held)
            self._take_payments(paid, rows)

    async def _load_page(self, level: Account, after: str) -> None:
        """Load the next blocks of a level, with the history also their past days."""
        most = BLOCKS_AT_ONCE if self.loaded.past is None else BLOCKS_WITH_DAYS
        rows = (await self._begun.read((), [_blocks_of("balances", level, after, most)])).rows
        found = [self._known.take(key, text) for key, text in rows.items()]
        blocks = tuple(sorted(each for each in found if each is not None))
        if self.loaded.past is not None and blocks:
            days = (
                await self._begun.read((), [all_of(level.root, f"days\t{each.text}") for each in blocks])
            ).rows
            self.loaded.past |= _days_in(days)
        self.loaded.page = BlockPage(level, after, blocks, is_last=len(blocks) < most)

    async def commit(
        self: LoadedRows[RowTransaction], changes: Changes, committed: Callable[[], None]
    ) -> bool:
        """Write all changes or none; see `Transaction`."""
        if not changes:
            return await self._begun.commit(None, committed)
        days: Mapping[RowKey, str] = {}
        if changes.days:
            # Seldom more than one a day for each level.
            try:
                days = (await self._begun.read([of_day(*each) for each in changes.days])).rows
            except OvertakenError:
                return False
        return await self._begun.commit(self._writes(changes, days), committed)

    def _writes(self, changes: Changes, days: Mapping[RowKey, str]) -> Writes:
        known = self._known
        times = {root: record.last_time for root, record in changes.roots.items()}
        # In a region, who pays is of another root than what is charged; it has no time of its own there.
        of_payers = dict.fromkeys((of_payer(each) for each in changes.payers), min(times.values()))
        writes = Writes(of_payers | times, purged=PURGED_PER_REQUEST * len(changes.outcomes))
        puts, deletes = writes.puts, writes.deletes
        for level, balance in changes.balances.items():
            if balance is None:
                deletes.append(of_level("balances", level))
            else:
                puts.append(Put(of_level("balances", level), text_of(balance)))
        puts.extend(Put(of_level("blocks", level), text_of(row)) for level, row in changes.rows.items())
        for (level, start), each in changes.days.items():
            key = of_day(level, start)
            puts.append(Put(key, text_of(each.applied(value_of(Decoders.day, key, days)))))
        for id_, outcome in changes.outcomes.items():
            puts.append(Put(of_id("outcomes", id_), text_of(outcome), outcome.keep_until))
        for paid_for, paid in changes.payments.items():
            if paid is None:
                deletes.append(of_payment(paid_for))
            else:
                text = text_of(PaidQuery(paid.release_id, paid.window_start))
                puts.append(Put(of_payment(paid_for), text, paid.keep_until))
        self._write_reservations(changes, writes)
        self._write_limits(changes, writes)
        # Behind all that changes what is known of a root.
        puts.extend(known.row_of(root, record) for root, record in changes.roots.items())
        numbers = {root: record.entries for root, record in changes.roots.items()}
        for entry in reversed(changes.journal):
            root = entry.account.root
            writes.appends.append(Appended(root, numbers[root], text_of(entry)))
            numbers[root] -= 1
        writes.appends.reverse()
        return writes

    def _write_reservations(self, changes: Changes, writes: Writes) -> None:
        ended = {key for key, each in changes.reservations.items() if each is None}
        for root, later in self._next.items():
            left = [each for each in self.loaded.due[root] if (root, each.reservation_id) not in ended]
            self._known.lapses_from[root] = min([later, *(each.expires_at for each in left)])
        for key, each in changes.reservations.items():
            root = key[0]
            if each is not None:
                self._known.lapses_from[root] = min(self._known.lapses_from[root], each.expires_at)
                writes.puts.append(Put(of_id("reservations", key), text_of(each), is_new=True))
                writes.puts.append(Put(of_end(root, each), text_of(each.reservation_id)))
                self._questions[key] = each.query_id
            elif held := self._held.get(key):
                # One that was opened by the same batch has no row yet.
                writes.deletes += (of_id("reservations", key), of_end(root, held))
                self._questions.pop(key, None)
        while len(self._questions) > MOST_QUESTIONS:
            del self._questions[next(iter(self._questions))]

    def _write_limits(self, changes: Changes, writes: Writes) -> None:
        for level, limit in changes.limits.items():
            self._write_stored(
                of_level("limits", level), limit, was_there=level in self.loaded.limits, writes=writes
            )
        for level, is_closed in changes.closed.items():
            was_closed = level in self.loaded.closed
            self._write_stored(
                of_level("closed", level), is_closed or None, was_there=was_closed, writes=writes
            )

    def _write_stored(
        self, key: RowKey, value: Limit | bool | None, *, was_there: bool, writes: Writes
    ) -> None:
        self._known.stored[key[0]] += (value is not None) - was_there
        if value is None:
            writes.deletes.append(key)
        else:
            writes.puts.append(Put(key, text_of(value)))


def _days_in(rows: Mapping[RowKey, str]) -> dict[Account, dict[Microseconds, PastDay]]:
    """Return the past days of each level."""
    past: dict[Account, dict[Microseconds, PastDay]] = {}
    for key, text in rows.items():
        kind, _, rest = key[1].partition("\t")
        if kind == "days":
            day = read_row(Decoders.day, key, text)
            past.setdefault(Account.of_text(rest.partition("\t")[0]), {})[day.start] = day
    return past


def _blocks_of(kind: str, level: Account, after: str = "", at_most: int | None = None) -> Range:
    """Return the rows of the blocks of a level, behind one of them."""
    name = f"{kind}\t{level.text}"
    return Range(level.root, name + ANY + after, name + AFTER_STAR, at_most)
