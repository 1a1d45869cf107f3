"""The ledger as its only writer sees it: the file, a cache of what was read, and what is not written yet.

A batch of requests is decided on the view, one after the other, and then written at once. No request may be answered
before the commit. If that fails, `forget` resets the view to the state of the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from budget_service.ledger.balances import Balance
from budget_service.ledger.limits import AppliedLimits, StoredLimits, limit_text, parse_limit
from budget_service.ledger.requests import (
    BudgetRequest,
    CancelReservation,
    Charge,
    Refund,
    Request,
    Reserve,
    RootRequest,
    SetLimits,
)
from budget_service.ledger.state import (
    Change,
    JournalEntry,
    PaidQuery,
    Payment,
    Remembered,
    Reservation,
    RootRecord,
    Snapshot,
)
from budget_service.ledger.values import Account, LevelLimit, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.stores.codec import decode_outcome, encode_outcome
from budget_service.stores.sqlite import rows
from budget_service.tuning import Tuning

NO_END: Microseconds = 2**63 - 1

# So many rows are asked for, or written, by one statement: much of what a statement costs is the call.
TOGETHER = 8

Key: TypeAlias = tuple[str, ...]
KeyT = TypeVar("KeyT")

OUTCOME = "SELECT fingerprint, outcome, keep_until FROM outcomes WHERE root = ? AND request_id = ?"
UNPAID = "DELETE FROM payments WHERE account = ? AND kind = ? AND id = ?"
PAYMENT = "SELECT release_id, window_start FROM payments WHERE account = ? AND kind = ? AND id = ?"
# A cross join is made in the order in which it is written: each key is looked up in the table's own index.
KNOWN_OUTCOMES = (
    f"SELECT root, request_id FROM (VALUES {', '.join(['(?, ?)'] * TOGETHER)}) "  # noqa: S608 - constants
    "CROSS JOIN outcomes ON root = column1 AND request_id = column2"
)
BALANCES = f"SELECT * FROM balances WHERE level IN ({', '.join('?' * TOGETHER)})"  # noqa: S608 - a constant
KNOWN_PAYMENTS = (
    f"SELECT account, kind, id FROM (VALUES {', '.join(['(?, ?, ?)'] * TOGETHER)}) "  # noqa: S608 - constants
    "CROSS JOIN payments ON account = column1 AND kind = column2 AND id = column3"
)
DUE = (
    f"SELECT {rows.RESERVATION} FROM reservations WHERE root = ? AND expires_at <= ? "  # noqa: S608 - a constant
    "ORDER BY expires_at, reservation_id LIMIT ?"
)
# SQLite keeps the last number that it gave away, if there was one.
LEAVE_OUT_A_NUMBER = (
    "INSERT OR REPLACE INTO sqlite_sequence (rowid, name, seq) VALUES ("
    "(SELECT rowid FROM sqlite_sequence WHERE name = 'journal'), 'journal', "
    "1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'journal'), 0))"
)
NAMED = f"SELECT {rows.RESERVATION} FROM reservations WHERE root = ? AND reservation_id = ?"  # noqa: S608 - a constant


class View:
    """See the module; only one thread at a time may use it."""

    def __init__(self, connection: sqlite3.Connection, tuning: Tuning) -> None:
        self._tuning = tuning
        self._connection = connection
        self.forget()

    def forget(self) -> None:
        """Drop all that is not in the file, and all that was read of it."""
        self._roots: dict[str, RootRecord] = {}
        self._balances: dict[Account, Balance] = {}
        # When the first open reservation of a root lapses, or somewhat before.
        self._ends: dict[str, Microseconds] = {}
        self._begin()

    def _begin(self) -> None:
        self._new_roots: set[str] = set()
        self._new_balances: set[Account] = set()
        self._outcomes: dict[tuple[str, str], Remembered] = {}
        self._payments: dict[tuple[str, str, str], Payment | None] = {}
        self._reservations: dict[tuple[str, str], Reservation | None] = {}
        self._journal: list[JournalEntry] = []
        self._limits: dict[Account, Limit | None] = {}
        # Keys of which the file has no row.
        self._no_outcomes: set[Key] = set()
        self._no_payments: set[Key] = set()

    def expect(self, asked: Sequence[tuple[Request, AppliedLimits]]) -> None:
        """Look up for all of these requests at once what `snapshot` would look up for each.

        That is which of them were answered or paid for before, which is mostly none, and the balances of their levels.
        A level that was never used is looked up once more when its turn comes.
        """
        outcomes = [(each.account.root, each.request_id) for each, _ in asked]
        self._no_outcomes = self._missing(KNOWN_OUTCOMES, outcomes)
        payments = [key for each in asked for key in _payments_of(*each)]
        self._no_payments = self._missing(KNOWN_PAYMENTS, payments)
        levels = {each.level for _, limits in asked for each in limits.levels}
        self._read_balances([level for level in levels if level not in self._balances])

    def root(self, root: str) -> RootRecord:
        """Return what is kept once for a root account."""
        record = self._roots.get(root)
        if record is None:
            record = self._roots[root] = rows.find_root(self._connection, root)
        return record

    def snapshot(
        self,
        root: RootRecord,
        request: Request,
        limits: AppliedLimits,
        now: Microseconds,
        clock: Microseconds,
    ) -> Snapshot:
        """Return all that the rules need to decide a request."""
        remembered = self._remembered(request)
        if remembered is not None and now < remembered.keep_until:
            return Snapshot(root=root, remembered=remembered)
        if isinstance(request, SetLimits):
            return Snapshot(root=root, stored_limits=self._count_limits(request.account.root))
        if isinstance(request, RootRequest):
            return Snapshot(root=root, clock=clock)
        reservation = None
        if isinstance(request, Charge | CancelReservation) and request.reservation_id:
            reservation = self.reservation(request.account, request.reservation_id)
        due = self._due(request.account.root, now)
        named = due if reservation is None else (*due, reservation)
        levels = [each.level for each in limits.levels] + _held_levels(named)
        if isinstance(request, Refund):
            levels += [request.account.level(hold.depth) for hold in request.holds]
        return Snapshot(
            root=root,
            balances=self._load(levels),
            due=due,
            reservation=reservation,
            query_paid=self._query_paid(request, limits, reservation),
            release_paid_in=self._release_paid(request, limits),
        )

    def reading(
        self, root: RootRecord, account: Account, levels: tuple[LevelLimit, ...], now: Microseconds
    ) -> Snapshot:
        """Return all that the rules need to state the balances of an account."""
        balances = self._load(each.level for each in levels)
        return Snapshot(root=root, due=self._due(account.root, now), balances=balances)

    def reservation(self, account: Account, reservation_id: str) -> Reservation | None:
        """Return a reservation of this account that has not been ended, lapsed or not."""
        key = (account.root, reservation_id)
        if key in self._reservations:
            found = self._reservations[key]
        else:
            row = self._connection.execute(NAMED, key).fetchone()
            found = rows.read_reservation(*row) if row else None
        return found if found is not None and found.account == account else None

    def limits(self, account: Account) -> StoredLimits:
        """Return the limits that are set on the levels of an account."""
        version = self.root(account.root).limits_version
        if not version:
            return StoredLimits()
        query = "SELECT limit_text FROM limits WHERE root = ? AND level = ?"
        levels = (account.level(depth) for depth in range(1, account.depth + 1))
        found = (
            (level, self._connection.execute(query, (account.root, level.text)).fetchone())
            for level in levels
        )
        return StoredLimits(version, {level: parse_limit(row[0]) for level, row in found if row})

    def all_limits(self, root: str) -> StoredLimits:
        """Return every limit that is set in a root."""
        found = self._connection.execute("SELECT level, limit_text FROM limits WHERE root = ?", (root,))
        limits = {Account(tuple(level.split("/"))): parse_limit(text) for level, text in found}
        return StoredLimits(self.root(root).limits_version, limits)

    def note(self, request: Request, limits: AppliedLimits, change: Change) -> None:
        """Take a change into the view, to be written by `flush`."""
        root = request.account.root
        self._roots[root] = change.root
        self._new_roots.add(root)
        self._balances.update(change.balances)
        self._new_balances.update(change.balances)
        self._outcomes[root, request.request_id] = change.remembered
        self._journal.extend(change.journal)
        for ended in change.ended:
            self._reservations[root, ended] = None
        if change.opened is not None:
            self._open(root, change.opened)
        if change.payment is not None:
            self._pay(limits.payer(request.account), change.payment)
        if change.unpaid:
            payer = limits.payer(request.account)
            self._payments |= dict.fromkeys((payer, *each) for each in change.unpaid)
        self._limits.update(change.limits)

    def flush(self) -> None:
        """Write all that was noted, in the transaction that is open."""
        root_rows = [rows.root_row(each, self._roots[each]) for each in self._new_roots]
        self._insert("INSERT OR REPLACE INTO roots", root_rows)
        balances = [rows.balance_row(each, self._balances[each]) for each in self._new_balances]
        self._insert("INSERT OR REPLACE INTO balances", balances)
        entries = [rows.journal_row(each) for each in self._journal]
        self._insert(f"INSERT INTO journal ({rows.JOURNAL})", entries)
        outcomes = [
            (*key, each.fingerprint, encode_outcome(each.outcome), each.keep_until)
            for key, each in self._outcomes.items()
        ]
        self._insert("INSERT OR REPLACE INTO outcomes", outcomes)
        payments = [
            (*key, each.release_id, each.window_start, each.keep_until)
            for key, each in self._payments.items()
            if each is not None
        ]
        self._insert("INSERT OR REPLACE INTO payments", payments)
        unpaid = [key for key, each in self._payments.items() if each is None]
        self._connection.executemany(UNPAID, unpaid)
        self._flush_reservations()
        self._flush_limits()
        self._begin()
        self.trim()

    def trim(self) -> None:
        """Drop what was read if it has become too much; all that was noted must be written."""
        if max(len(self._balances), len(self._roots), len(self._ends)) > self._tuning.kept_balances:
            self.forget()

    def _remembered(self, request: Request) -> Remembered | None:
        key = (request.account.root, request.request_id)
        noted = self._outcomes.get(key)
        if noted is not None or key in self._no_outcomes:
            return noted
        row = self._connection.execute(OUTCOME, key).fetchone()
        return Remembered(row[0], decode_outcome(row[1]), row[2]) if row else None

    def _due(self, root: str, now: Microseconds) -> tuple[Reservation, ...]:
        if root not in self._ends:
            self._flush_reservations()
            query = "SELECT min(expires_at) FROM reservations WHERE root = ?"
            (first,) = self._connection.execute(query, (root,)).fetchone()
            self._ends[root] = NO_END if first is None else first
        if now < self._ends[root]:
            return ()
        self._flush_reservations()
        del self._ends[root]
        found = self._connection.execute(DUE, (root, now, self._tuning.expired_at_once))
        return tuple(rows.read_reservation(*row) for row in found)

    def _load(self, levels: Iterable[Account]) -> dict[Account, Balance]:
        found = {}
        for level in levels:
            balance = self._balances.get(level)
            if balance is None:
                query = "SELECT * FROM balances WHERE level = ?"
                row = self._connection.execute(query, (level.text,)).fetchone()
                if row is None:
                    continue
                balance = self._balances[level] = rows.read_balance(*row)
            found[level] = balance
        return found

    def _read_balances(self, levels: list[Account]) -> None:
        """Take balances into the view."""
        named = {level.text: level for level in levels}
        for texts in _groups(list(named)):
            for row in self._connection.execute(BALANCES, texts):
                self._balances[named[row[0]]] = rows.read_balance(*row)

    def _query_paid(
        self, request: BudgetRequest, limits: AppliedLimits, reservation: Reservation | None
    ) -> PaidQuery | None:
        if isinstance(request, Reserve | Charge | Refund):
            query_id = request.query_id if reservation is None else reservation.query_id
            paid = self._payment(limits.payer(request.account), "query", query_id) if query_id else None
            return PaidQuery(*paid) if paid else None
        return None

    def _release_paid(self, request: BudgetRequest, limits: AppliedLimits) -> Microseconds | None:
        if isinstance(request, Charge | Refund) and request.release_id:
            paid = self._payment(limits.payer(request.account), "release", request.release_id)
            return paid[1] if paid else None
        return None

    def _payment(self, payer: str, kind: str, id_: str) -> tuple[str, Microseconds] | None:
        key = (payer, kind, id_)
        if key in self._payments:
            noted = self._payments[key]
            return None if noted is None else (noted.release_id, noted.window_start)
        if key in self._no_payments:
            return None
        row: tuple[str, int] | None = self._connection.execute(PAYMENT, key).fetchone()
        return row

    def _missing(self, known: str, keys: Sequence[Key]) -> set[Key]:
        """Return those keys of which the file has no row, by a statement that asks for TOGETHER of them."""
        missing = set(keys)
        for asked in _groups(keys):
            missing.difference_update(self._connection.execute(known, tuple(chain.from_iterable(asked))))
        return missing

    def _count_limits(self, root: str) -> int:
        self._flush_limits()
        query = "SELECT count(*) FROM limits WHERE root = ?"
        row: tuple[int] = self._connection.execute(query, (root,)).fetchone()
        return row[0]

    def _open(self, root: str, opened: Reservation) -> None:
        self._reservations[root, opened.reservation_id] = opened
        if root in self._ends:
            self._ends[root] = min(self._ends[root], opened.expires_at)

    def _pay(self, payer: str, payment: Payment) -> None:
        self._payments[payer, "release", payment.release_id] = payment
        if payment.query_id:
            self._payments[payer, "query", payment.query_id] = payment

    def _flush_reservations(self) -> None:
        if not self._reservations:
            return
        ended = [key for key, each in self._reservations.items() if each is None]
        self._delete("DELETE FROM reservations WHERE root = ? AND reservation_id = ?", ended)
        opened = [rows.reservation_row(each) for each in self._reservations.values() if each is not None]
        self._insert("INSERT INTO reservations", opened)
        self._reservations = {}

    def _flush_limits(self) -> None:
        removed = [(level.root, level.text) for level, limit in self._limits.items() if limit is None]
        self._delete("DELETE FROM limits WHERE root = ? AND level = ?", removed)
        kept = [(level.root, level.text, limit_text(each)) for level, each in self._limits.items() if each]
        self._insert("INSERT OR REPLACE INTO limits", kept)
        if self._limits:
            # Not a journal entry, but the high-water mark must notice its loss: it takes the journal's next number.
            self._connection.execute(LEAVE_OUT_A_NUMBER)
        self._limits = {}

    def _insert(self, into: str, many: list[tuple[Any, ...]]) -> None:
        """Write rows; `into` is the statement without its values, and all columns are given."""
        if not many:
            return
        one = f"({', '.join('?' * len(many[0]))})"
        whole = len(many) - len(many) % TOGETHER
        if whole:
            starts = range(0, whole, TOGETHER)
            groups = [tuple(chain.from_iterable(many[start : start + TOGETHER])) for start in starts]
            self._connection.executemany(f"{into} VALUES {', '.join([one] * TOGETHER)}", groups)
        if whole < len(many):
            self._connection.executemany(f"{into} VALUES {one}", many[whole:])

    def _delete(self, statement: str, many: list[tuple[str, str]]) -> None:
        if many:
            self._connection.executemany(statement, many)


def _groups(keys: Sequence[KeyT]) -> Iterator[list[KeyT]]:
    """Give TOGETHER keys at a time, the last one again until they are so many.

    To ask for it again costs less than another statement for every number of keys.
    """
    for start in range(0, len(keys), TOGETHER):
        group = list(keys[start : start + TOGETHER])
        yield group + group[-1:] * (TOGETHER - len(group))


def _payments_of(request: Request, limits: AppliedLimits) -> Iterator[Key]:
    """Give the keys under which it would be known that a request is paid for, as far as it says them itself."""
    if isinstance(request, Charge) and request.release_id:
        yield limits.payer(request.account), "release", request.release_id
    if isinstance(request, Charge | Reserve) and request.query_id:
        yield limits.payer(request.account), "query", request.query_id


def _held_levels(reservations: Iterable[Reservation]) -> list[Account]:
    return [each.account.level(hold.depth) for each in reservations for hold in each.holds]
