"""Loads what a batch of requests names: mostly in one round trip, all of it at one revision.

A second one is needed for balances that a reservation of another account holds, for the question of a reservation that
another service has opened, and where a root's time is ahead of the clock by more than it was when it was last seen. It
reads the same revision again, so that both show the ledger at one time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from budget_service.ledger.state import Reservation
from budget_service.ledger.windows import Microseconds
from budget_service.stores.damaged_rows import read_limit, read_state
from budget_service.stores.etcd import encoding as text
from budget_service.stores.etcd.layout import AFTER_SLASH, Keys, Layout, end_of
from budget_service.stores.etcd.members import Found, Members, Range, range_between, range_of
from budget_service.stores.etcd.pending import RootAccess, Settled
from budget_service.stores.transactions import Loaded, PaymentKey, RootKey, Wanted
from budget_service.stores.view import held_levels


@dataclass(slots=True)
class Snapshot:
    """What was loaded, and what a transaction has to know of it.

    `name` is that of the root; `revision` is that of the whole database, `root_revision` that of the last change of the
    root; `reservations` are all that were found, by id.
    """

    name: str
    loaded: Loaded
    root: text.Root
    revision: int
    root_revision: int
    reservations: dict[str, Reservation] = field(default_factory=dict)


class Rows(NamedTuple):
    """What a range has, and what it was asked for: the kind of its rows, and the name that they have."""

    kind: str
    name: Any
    pairs: list[Any]
    number: int


@dataclass(slots=True)
class Asked:
    """Ranges that are asked for together, and for each what to do with what it has."""

    ranges: list[Range] = field(default_factory=list)
    _kinds: list[tuple[str, Any]] = field(default_factory=list)

    def add(self, kind: str, name: Any, wanted: Range) -> None:
        """Ask for a range; `kind` and `name` say what it is."""
        self.ranges.append(wanted)
        self._kinds.append((kind, name))

    def answered(self, found: Found) -> Iterator[Rows]:
        """Give what each range has."""
        for (kind, name), pairs, count in zip(self._kinds, found.ranges, found.counts, strict=True):
            yield Rows(kind, name, pairs, count)


class Loader:
    """Loads for one root at a time.

    Args:
        members: The cluster.
        layout: The ledger's keys.
        most_due: How many lapsed reservations are loaded at most.
    """

    def __init__(self, members: Members, layout: Layout, most_due: int) -> None:
        self._members = members
        self._layout = layout
        self._most_due = most_due

    async def load(
        self, wanted: Wanted, clock: Microseconds, guess: Microseconds, questions: dict[RootKey, str]
    ) -> Snapshot:
        """Return what is wanted. Raises StoreUnavailableError.

        Args:
            wanted: What a batch names.
            clock: The time of this service.
            guess: What the root's time is taken to be.
            questions: The question of each reservation of which it is known.
        """
        (root,) = wanted.roots
        at = RootAccess(self._members, self._layout, root)
        keys = at.keys
        asked = self._first(at, wanted, guess, questions)
        settled = await at.read(asked.ranges)
        snapshot = self._read(asked, settled, wanted, clock)
        await self._take_all(self._second(keys, snapshot, wanted, guess), snapshot)
        # What those hold that the second one has found to be due.
        await self._take_all(self._held(keys, snapshot), snapshot)
        return snapshot

    async def _take_all(self, asked: Asked, snapshot: Snapshot) -> None:
        """Ask for more, as of the revision of what is loaded."""
        if asked.ranges:
            found = await self._members.read(asked.ranges, revision=snapshot.revision)
            for rows in asked.answered(found):
                self._take(snapshot, rows)

    def _first(
        self, at: RootAccess, wanted: Wanted, guess: Microseconds, questions: dict[RootKey, str]
    ) -> Asked:
        asked, keys = Asked(), at.keys
        self._ask_for_due(asked, keys, guess)
        for level in dict.fromkeys(wanted.levels):
            asked.add("balance", level, range_of(keys.balance(level)))
        for key in dict.fromkeys(wanted.outcomes):
            asked.add("outcome", key, range_of(keys.outcome(key[1])))
        guessed: list[PaymentKey] = [
            (payer, "query", questions[key]) for key, payer in wanted.reservations if key in questions
        ]
        for payment in dict.fromkeys((*wanted.payments, *guessed)):
            asked.add("payment", payment, range_of(keys.payment(payment)))
        for key in dict.fromkeys(key for key, _ in wanted.reservations):
            asked.add("reservation", key, range_of(keys.reservation(key[1])))
        if wanted.counted:
            self._ask_for_administered(asked, keys, wanted)
        if wanted.history:
            for level in dict.fromkeys(wanted.levels):
                asked.add("days", level, range_between(keys.days(level), end_of(keys.days(level))))
            asked.add("open", at.root, range_between(keys.reservations, end_of(keys.reservations)))
        return asked

    def _ask_for_due(self, asked: Asked, keys: Keys, until: Microseconds) -> None:
        first, end = keys.dues, keys.due(until + 1)
        asked.add("due", until, range_between(first, end, limit=self._most_due))

    @staticmethod
    def _ask_for_administered(asked: Asked, keys: Keys, wanted: Wanted) -> None:
        for prefix in (keys.limits, keys.states):
            asked.add("counted", None, range_between(prefix, end_of(prefix), count_only=True))
        for level in dict.fromkeys(wanted.limits):
            asked.add("limit", level, range_of(keys.limit(level)))
        for level in dict.fromkeys(wanted.states):
            asked.add("state", level, range_of(keys.state(level)))
        for level in dict.fromkeys(wanted.below):
            for at in (keys.balance(level), keys.limit(level), keys.state(level)):
                wanted_below = range_between(at + b"/", at + AFTER_SLASH, limit=1, keys_only=True)
                asked.add("below", level, wanted_below)

    def _read(self, asked: Asked, settled: Settled, wanted: Wanted, clock: Microseconds) -> Snapshot:
        (root,) = wanted.roots
        records = {root: settled.root.record} if settled.root_revision else {}
        loaded = Loaded(clock, records, {}, payments=dict.fromkeys(wanted.payments))
        snapshot = Snapshot(root, loaded, settled.root, settled.found.revision, settled.root_revision)
        loaded.stored_limits = dict.fromkeys(wanted.counted, 0)
        loaded.reservations = dict.fromkeys(key for key, _ in wanted.reservations)
        if wanted.history:
            loaded.past = {level: {} for level in wanted.levels}
        for rows in asked.answered(settled.found):
            self._take(snapshot, rows)
        return snapshot

    def _take(self, snapshot: Snapshot, rows: Rows) -> None:
        """Add what a range has to what is loaded."""
        loaded = snapshot.loaded
        match rows.kind:
            case "due":
                self._take_due(snapshot, rows)
            case "counted":
                loaded.stored_limits[snapshot.name] += rows.number
            case "days":
                assert loaded.past is not None, "it was asked for"  # noqa: S101 - for the type checker
                days = [text.read_day(each.key, each.value) for each in rows.pairs]
                loaded.past[rows.name] = {day.start: day for day in days}
            case "open":
                found = [text.read_reservation(each.key, each.value) for each in rows.pairs]
                loaded.open[snapshot.name] = tuple(found)
                snapshot.reservations |= {each.reservation_id: each for each in found}
            case "payment":
                loaded.payments.setdefault(rows.name, None)
                for each in rows.pairs:
                    loaded.payments[rows.name] = text.read_payment(each.key, each.value)
            case _:
                for each in rows.pairs:
                    self._take_row(snapshot, rows, each)

    @staticmethod
    def _take_row(snapshot: Snapshot, rows: Rows, each: Any) -> None:
        loaded, name = snapshot.loaded, rows.name
        match rows.kind:
            case "balance":
                loaded.balances[name] = text.read_balance(each.key, each.value)
            case "outcome":
                loaded.outcomes[name] = text.read_outcome(each.key, each.value)
            case "reservation":
                reservation = text.read_reservation(each.key, each.value)
                loaded.reservations[name] = snapshot.reservations[name[1]] = reservation
            case "limit":
                loaded.limits[name] = read_limit(name.text, each.value.decode())
            case "state":
                loaded.states[name] = read_state(name.text, each.value.decode())
            case "below":
                loaded.occupied |= {name}

    def _take_due(self, snapshot: Snapshot, rows: Rows) -> None:
        loaded, root = snapshot.loaded, snapshot.name
        now = snapshot.root.record.now(loaded.clock)
        found = [text.read_reservation(each.key, each.value) for each in rows.pairs]
        due = [each for each in found if each.expires_at <= now]
        loaded.due[root] = tuple(due)
        # The oldest come first, so that of as many as were asked for all the rest may be due too.
        loaded.due_further = {root} if len(due) == self._most_due else set()
        snapshot.reservations |= {each.reservation_id: each for each in due}

    def _second(self, keys: Keys, snapshot: Snapshot, wanted: Wanted, guess: Microseconds) -> Asked:
        asked, loaded = self._held(keys, snapshot), snapshot.loaded
        now = snapshot.root.record.now(loaded.clock)
        if now > guess:
            self._ask_for_due(asked, keys, now)
        for key, payer in wanted.reservations:
            reservation = loaded.reservations[key]
            if reservation is not None:
                payment: PaymentKey = (payer, "query", reservation.query_id)
                if payment not in loaded.payments:
                    asked.add("payment", payment, range_of(keys.payment(payment)))
                    loaded.payments[payment] = None
        return asked

    @staticmethod
    def _held(keys: Keys, snapshot: Snapshot) -> Asked:
        """Ask for the balances that reservations hold a part of, where they are not loaded."""
        asked, loaded = Asked(), snapshot.loaded
        named = [each for each in loaded.reservations.values() if each is not None]
        held = held_levels([*named, *(each for due in loaded.due.values() for each in due)])
        for level in dict.fromkeys(held):
            if level not in loaded.balances:
                asked.add("balance", level, range_of(keys.balance(level)))
        return asked
