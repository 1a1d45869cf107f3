"""Loads what a batch of requests names from a SQLite ledger, and remembers what its only writer has read.

What is remembered is what the file will hold once the open transaction is committed; `forget` drops it if that fails.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.state import PaidQuery, Reservation, RootRecord, StoredOutcome
from budget_service.ledger.values import Account, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.stores.codec import decode_outcome
from budget_service.stores.damaged_rows import read_limit, reading_row
from budget_service.stores.sqlite import audit, rows
from budget_service.stores.transactions import Loaded, PaymentKey, RootKey, Wanted
from budget_service.stores.wanted import held_levels
from budget_service.tuning import Tuning

NO_END: Microseconds = 2**63 - 1

# So many rows are asked for by one statement: much of what a statement costs is the call.
TOGETHER = 8
# Fewer are asked for one by one.
FEW = 3

Key = TypeVar("Key", bound=tuple[str, ...])

OUTCOME = "SELECT fingerprint, outcome, keep_until FROM outcomes WHERE root = ? AND request_id = ?"
PAYMENT = "SELECT release_id, window_start FROM payments WHERE account = ? AND kind = ? AND id = ?"
# A cross join is made in the order in which it is written: each key is looked up in the table's own index.
KNOWN_OUTCOMES = (
    f"SELECT root, request_id FROM (VALUES {', '.join(['(?, ?)'] * TOGETHER)}) "  # noqa: S608 - constants
    "CROSS JOIN outcomes ON root = column1 AND request_id = column2"
)
KNOWN_PAYMENTS = (
    f"SELECT account, kind, id FROM (VALUES {', '.join(['(?, ?, ?)'] * TOGETHER)}) "  # noqa: S608 - constants
    "CROSS JOIN payments ON account = column1 AND kind = column2 AND id = column3"
)
# A level's text, a star and the block; right after the star comes the plus.
OF_BLOCKS = "FROM balances WHERE level > :level || '*' AND level < :level || '+'"
BLOCKS = f"SELECT * {OF_BLOCKS}"
COUNT_BLOCKS = f"SELECT count(*) {OF_BLOCKS}"
BALANCE = "SELECT * FROM balances WHERE level = ?"
BALANCES = f"SELECT * FROM balances WHERE level IN ({', '.join('?' * TOGETHER)})"  # noqa: S608 - a constant
DUE = (
    f"SELECT {rows.RESERVATION} FROM reservations WHERE root = ? AND expires_at <= ? "  # noqa: S608 - a constant
    "ORDER BY expires_at, reservation_id LIMIT ?"
)
NAMED = f"SELECT {rows.RESERVATION} FROM reservations WHERE root = ? AND reservation_id = ?"  # noqa: S608 - a constant


class Loader:
    """See the module; only one thread at a time may use it."""

    def __init__(self, connection: sqlite3.Connection, tuning: Tuning) -> None:
        self._tuning = tuning
        self._connection = connection
        self.forget()

    def forget(self) -> None:
        """Drop all that is remembered."""
        self._roots: dict[str, RootRecord] = {}
        self._balances: dict[Account, Balance] = {}
        # When the first open reservation of a root lapses, or somewhat before.
        self._ends: dict[str, Microseconds] = {}
        # All blocks of a level, and how many a root has.
        self._blocks: dict[Account, frozenset[Account]] = {}
        self._block_counts: dict[str, int] = {}

    def trim(self) -> None:
        """Drop what is remembered if it has become too much."""
        levels, roots = (len(self._balances), len(self._blocks)), (len(self._roots), len(self._ends))
        if max(*levels, *roots, len(self._block_counts)) > self._tuning.kept_balances:
            self.forget()

    def load(self, wanted: Wanted, clock: Microseconds) -> Loaded:
        """Return what is wanted. Roots and balances that the engine adds are remembered too."""
        loaded = Loaded(
            clock, self._roots, self._balances, blocks=self._blocks, block_counts=self._block_counts
        )
        for root in wanted.roots:
            self._load_due(root, loaded)
        named = self._load_named(wanted, loaded)
        held = [*named, *chain.from_iterable(loaded.due.values())]
        self._load_balances([*wanted.levels, *held_levels(held)] if held else wanted.levels)
        self._load_blocks(wanted)
        for key, row in self._rows(OUTCOME, KNOWN_OUTCOMES, wanted.outcomes):
            with reading_row("outcomes", key[1]):
                loaded.outcomes[key] = StoredOutcome(row[0], decode_outcome(row[1]), row[2])
        self._load_payments(wanted.payments, loaded)
        loaded.stored_limits = {root: self._count_limits(root) for root in wanted.counted}
        loaded.limits = {level: limit for each in wanted.limits for level, limit in self._limit(each)}
        loaded.closed = set(filter(self._is_closed, wanted.closed))
        if wanted.history:
            blocks = chain.from_iterable(self._blocks[level] for level in wanted.blocks)
            loaded.past = {level: self._past(level) for level in (*wanted.levels, *blocks)}
            loaded.open = {root: audit.load_reservations(self._connection, root) for root in wanted.roots}
        return loaded

    def opened(self, root: str, expires_at: Microseconds) -> None:
        """Note that a reservation was written."""
        if root in self._ends:
            self._ends[root] = min(self._ends[root], expires_at)

    def root(self, root: str) -> RootRecord:
        """Return what is kept once for a root account."""
        record = self._roots.get(root)
        if record is None:
            record = self._roots[root] = rows.find_root(self._connection, root)
        return record

    def reservation(self, key: RootKey) -> Reservation | None:
        """Return a reservation that has not been ended, lapsed or not."""
        row = self._connection.execute(NAMED, key).fetchone()
        return rows.read_reservation(*row) if row else None

    def limits(self, account: Account) -> StoredLimits:
        """Return the limits that are set on the levels of an account, and which of them are closed."""
        version = self.root(account.root).limits_version
        if not version:
            return StoredLimits()
        limits = {level: limit for each in account.levels for level, limit in self._limit(each)}
        return StoredLimits(version, limits, frozenset(filter(self._is_closed, account.levels)))

    def all_limits(self, root: str) -> StoredLimits:
        """Return every limit that is set in a root, and its closed accounts."""
        found = self._connection.execute("SELECT level, limit_text FROM limits WHERE root = ?", (root,))
        limits = {Account.of_text(level): read_limit(level, text) for level, text in found}
        found = self._connection.execute("SELECT level FROM closed WHERE root = ?", (root,))
        closed = frozenset([Account.of_text(level) for (level,) in found])
        return StoredLimits(self.root(root).limits_version, limits, closed)

    def _load_due(self, root: str, loaded: Loaded) -> None:
        now = self.root(root).now(loaded.clock)
        if root not in self._ends:
            query = "SELECT min(expires_at) FROM reservations WHERE root = ?"
            (first,) = self._connection.execute(query, (root,)).fetchone()
            self._ends[root] = NO_END if first is None else first
        if now < self._ends[root]:
            return
        # It is found out again when these have been ended.
        del self._ends[root]
        most = self._tuning.expired_at_once
        found = self._connection.execute(DUE, (root, now, most)).fetchall()
        loaded.due[root] = tuple([rows.read_reservation(*row) for row in found])
        if len(found) == most:
            loaded.due_further.add(root)

    def _load_named(self, wanted: Wanted, loaded: Loaded) -> list[Reservation]:
        """Load the reservations that are named, and for what question each is."""
        found = []
        for key, payer in wanted.reservations:
            reservation = loaded.reservations[key] = self.reservation(key)
            if reservation is not None:
                found.append(reservation)
                self._load_payments([(payer, "query", reservation.query_id)], loaded)
        return found

    def _load_balances(self, levels: Sequence[Account]) -> None:
        """Remember balances; a level that was never used is looked up each time."""
        missing = {level.text: level for level in levels if level not in self._balances}
        if len(missing) <= FEW:
            found = [self._connection.execute(BALANCE, (each,)).fetchone() for each in missing]
        else:
            found = [
                row for texts in _groups(list(missing)) for row in self._connection.execute(BALANCES, texts)
            ]
        for row in found:
            if row is not None:
                self._balances[missing[row[0]]] = rows.read_balance(*row)

    def _load_blocks(self, wanted: Wanted) -> None:
        """Remember the blocks of levels with their balances, and how many there are of roots."""
        for level in wanted.blocks:
            if level in self._blocks:
                continue
            found = self._connection.execute(BLOCKS, {"level": level.text}).fetchall()
            balances = {Account.of_text(row[0]): rows.read_balance(*row) for row in found}
            self._blocks[level] = frozenset(balances)
            self._balances.update(balances)
        for root in wanted.opening:
            if root not in self._block_counts:
                (self._block_counts[root],) = self._connection.execute(
                    COUNT_BLOCKS, {"level": root}
                ).fetchone()

    def _load_payments(self, keys: Sequence[PaymentKey], loaded: Loaded) -> None:
        loaded.payments.update(dict.fromkeys(keys))
        for key, row in self._rows(PAYMENT, KNOWN_PAYMENTS, keys):
            loaded.payments[key] = PaidQuery(*row)

    def _rows(self, one: str, known: str, keys: Sequence[Key]) -> Iterator[tuple[Key, Any]]:
        """Give those keys that the file has, mostly none, with their rows; `known` asks which of TOGETHER it has."""
        for key in keys if len(keys) <= FEW else self._known(known, keys):
            row = self._connection.execute(one, key).fetchone()
            if row is not None:
                yield key, row

    def _known(self, known: str, keys: Sequence[Key]) -> set[Key]:
        found: set[Key] = set()
        for asked in _groups(keys):
            found.update(self._connection.execute(known, tuple(chain.from_iterable(asked))))
        return found

    def _limit(self, level: Account) -> Iterator[tuple[Account, Limit]]:
        query = "SELECT limit_text FROM limits WHERE root = ? AND level = ?"
        for (text,) in self._connection.execute(query, (level.root, level.text)):
            yield level, read_limit(level.text, text)

    def _is_closed(self, level: Account) -> bool:
        query = "SELECT 1 FROM closed WHERE root = ? AND level = ?"
        return self._connection.execute(query, (level.root, level.text)).fetchone() is not None

    def _past(self, level: Account) -> dict[Microseconds, PastDay]:
        return {day.start: day for day in audit.load_past_days(self._connection, level)}

    def _count_limits(self, root: str) -> int:
        query = "SELECT (SELECT count(*) FROM limits WHERE root = ?) + (SELECT count(*) FROM closed WHERE root = ?)"
        row: tuple[int] = self._connection.execute(query, (root, root)).fetchone()
        return row[0]


def _groups(keys: Sequence[Any]) -> Iterator[list[Any]]:
    """Give TOGETHER keys at a time, the last one again until they are so many.

    To ask for it again costs less than another statement for every number of keys.
    """
    for start in range(0, len(keys), TOGETHER):
        group = list(keys[start : start + TOGETHER])
        yield group + group[-1:] * (TOGETHER - len(group))
