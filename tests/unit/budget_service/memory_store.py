"""The pure rules over dictionaries: the reference that the real stores are compared with."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from budget_service.ledger.account_statement import AccountStatement, account_statement
from budget_service.ledger.act import Act, Needs
from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.base import Base
from budget_service.ledger.block_sums import BlockPage, BlocksNeededError, BlocksRow
from budget_service.ledger.chain import chained
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.rules import decide
from budget_service.ledger.state import (
    MAX_EXPIRED_AT_ONCE,
    Change,
    DayChange,
    HistoryNeededError,
    JournalEntry,
    PaidQuery,
    Reservation,
    RootRecord,
    Snapshot,
    StoredOutcome,
)
from budget_service.ledger.values import Account, LevelLimit, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import (
    BackupFailedError,
    BalancePage,
    Clock,
)
from budget_service.stores.wanted import held_levels
from tests.unit.budget_service.memory_transactions import page_of

_Paid = TypeVar("_Paid")


@dataclass
class MemoryStore:
    """A Store that forgets; one request after another."""

    clock: Clock
    expired_at_once: int = MAX_EXPIRED_AT_ONCE
    entries: list[JournalEntry] = field(default_factory=list)
    records: dict[str, RootRecord] = field(default_factory=dict)
    kept: dict[Account, Balance] = field(default_factory=dict)
    past: dict[Account, dict[Microseconds, PastDay]] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    remembered: dict[tuple[str, str], StoredOutcome] = field(default_factory=dict)
    paid_queries: dict[tuple[str, str], PaidQuery] = field(default_factory=dict)
    paid_releases: dict[tuple[str, str], Microseconds] = field(default_factory=dict)
    bases: dict[str, Base] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    stored: dict[Account, Limit] = field(default_factory=dict)
    closed: set[Account] = field(default_factory=set)
    rows: dict[Account, BlocksRow] = field(default_factory=dict)

    async def apply(self, act: Act, limits: AppliedLimits) -> Answer:
        """Decide, write, answer."""
        page: BlockPage | None = None
        history = False
        while True:
            root = self._root(act.account)
            snapshot = self._snapshot(act, limits, root, page)
            snapshot = self._with_history(act.account, snapshot) if history else snapshot
            try:
                decision = decide(snapshot, act, limits, root.now(self.clock()))
            except HistoryNeededError:
                history = True
                continue
            except BlocksNeededError as needed:
                page = page_of(self.kept, needed.level, needed.after)
                continue
            page = None
            if decision.change is not None:
                self._write(act, limits, decision.change)
            if decision.answer is not None:
                return decision.answer

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """State the balances now."""
        root = self._root(account)
        now = root.now(self.clock())
        due = self._due(account.root, now)
        snapshot = Snapshot(
            root=root,
            balances=self.kept,
            blocks={level: self._blocks(level) for level in account.levels},
            rows=None,
            due=due,
            due_further=len(due) == self.expired_at_once,
            clock=self.clock(),
        )
        return await account_statement(
            self._with_history(account, snapshot), account, levels, now, lambda: asyncio.sleep(0)
        )

    async def limits(self, account: Account) -> StoredLimits:
        """Look up the limits of each level."""
        found = {level: limit for level, limit in self.stored.items() if account.level(level.depth) == level}
        closed = self.closed.intersection(account.levels)
        return StoredLimits(self._root(account).limits_version, found, frozenset(closed))

    async def all_limits(self, root: str) -> StoredLimits:
        """Look up the limits of a root."""
        found = {level: limit for level, limit in self.stored.items() if level.root == root}
        closed = frozenset(level for level in self.closed if level.root == root)
        return StoredLimits(self._root(Account((root,))).limits_version, found, closed)

    async def roots(self) -> list[str]:
        """Return every root."""
        return sorted(self.records)

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Number the entries."""
        numbered = [(str(number), each) for number, each in enumerate(self.entries, 1)]
        first, last = int(after or 0), int(until or len(numbered))
        return [
            (number, each)
            for number, each in numbered[first:last]
            if each.account.root == root and int(number) not in self.dropped
        ][:most]

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Turn the journal round."""
        found = [(position, each) for position, each in await self.journal(root, "", "", len(self.entries))]
        return [each for each in reversed(found) if not before or int(each[0]) < int(before)][:most]

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return all of them."""
        found = tuple((level, each) for level, each in self.kept.items() if level.root == root)
        held = tuple(each for each in self.reservations.values() if each.account.root == root)
        record = self._root(Account((root,)))
        position = str(len(self.entries) or "")
        rows: Mapping[Account, BlocksRow | None] = {**self.rows}
        return BalancePage(position, record, self.clock(), found, self._past(root), rows, held, "")

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Count those that have not lapsed."""
        now = self.clock()
        return sum(
            each.account.root in roots and now < each.expires_at for each in self.reservations.values()
        )

    async def base(self, root: str) -> Base:
        """Return the last one."""
        return self.bases.get(root, Base())

    async def write_base(self, root: str, base: Base) -> None:
        """Keep it if it has more entries."""
        if base.entries > (await self.base(root)).entries:
            self.bases[root] = base

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Forget them, leaving their numbers."""
        last = int((await self.base(root)).position or 0)
        old = {number for number, each in enumerate(self.entries[:last], 1) if each.account.root == root}
        dropped = sorted(old - self.dropped)[:most]
        self.dropped |= set(dropped)
        return len(dropped)

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Look up a reservation."""
        found = self.reservations.get(reservation_id)
        return found.query_id if found is not None and found.account == account else None

    async def back_up(self, _folder: Path) -> Path:
        """Fail: there is no file."""
        raise BackupFailedError("a dictionary has no file")

    async def check(self) -> None:
        """Do nothing: a dictionary is always there."""

    async def ping(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def _root(self, account: Account) -> RootRecord:
        return self.records.get(account.root, RootRecord())

    def _blocks(self, level: Account) -> list[Account]:
        return [each for each in self.kept if each != level and each.of_block("") == level]

    def _paying(self, needs: Needs, page: BlockPage | None) -> Mapping[Account, Collection[Account]]:
        """Find the blocks that an act names, or those of a page."""
        if page is not None:
            return {page.level: page.blocks}
        return {level: [level.of_block(each) for each in needs.blocks] for level in needs.levels}

    def _due(self, root: str, now: Microseconds) -> tuple[Reservation, ...]:
        lapsed = [
            each
            for each in self.reservations.values()
            if each.account.root == root and each.expires_at <= now
        ]
        lapsed.sort(key=lambda each: (each.expires_at, each.reservation_id))
        return tuple(lapsed[: self.expired_at_once])

    def _past(self, root: str) -> dict[Account, list[PastDay]]:
        return {level: list(days.values()) for level, days in self.past.items() if level.root == root}

    def _with_history(self, account: Account, snapshot: Snapshot) -> Snapshot:
        reservations = tuple(each for each in self.reservations.values() if each.account.root == account.root)
        return replace(snapshot, past=self._past(account.root), reservations=reservations)

    def _add(self, each: DayChange) -> None:
        days = self.past.setdefault(each.level, {})
        days[each.start] = each.applied(days.get(each.start))

    def _snapshot(
        self, act: Act, limits: AppliedLimits, root: RootRecord, page: BlockPage | None
    ) -> Snapshot:
        account, needs = act.account, act.needs()
        due = self._due(account.root, root.now(self.clock())) if needs.is_limited else ()
        named = self.reservations.get(needs.reservation_id)
        reservation = named if named is not None and named.account == account else None
        questions = (reservation.query_id,) if reservation and needs.questions else needs.questions
        payer = limits.payer(account) if limits.levels else ""
        named_levels = [*needs.levels, *held_levels([*due, *([reservation] if reservation else [])])]
        return Snapshot(
            root=root,
            balances=self.kept,
            blocks=self._paying(needs, page),
            every_block=needs.every_block,
            page=page,
            rows={level.of_block(""): self.rows.get(level.of_block("")) for level in named_levels},
            due=due,
            due_further=len(due) == self.expired_at_once,
            reservation=reservation,
            remembered=self.remembered.get((account.root, act.request_id)),
            paid_questions=_of_payer(self.paid_queries, payer, questions),
            paid_releases=_of_payer(self.paid_releases, payer, needs.releases),
            stored_limits=sum(level.root == account.root for level in (*self.stored, *self.closed)),
            limits=dict(self.stored),
            closed=set(self.closed),
            clock=self.clock(),
            outcomes={
                id_: found
                for id_ in needs.outcomes
                if (found := self.remembered.get((account.root, id_))) is not None
            },
        )

    def _write(self, act: Act, limits: AppliedLimits, change: Change) -> None:
        account = act.account
        self.records[account.root] = chained(change.root, self._root(account), change.journal)
        if change.remembered is not None:
            self.remembered[account.root, act.request_id] = change.remembered
        for day in change.days:
            self._add(day)
        for level, balance in change.balances.items():
            self.kept.pop(level, None)
            self.kept |= {} if balance is None else {level: balance}
        self.rows.update(change.rows)
        self.entries.extend(change.journal)
        for reservation_id in change.ended:
            del self.reservations[reservation_id]
        if change.opened is not None:
            self.reservations[change.opened.reservation_id] = change.opened
        for level, limit in change.limits:
            self.stored.pop(level, None)
            self.stored |= {} if limit is None else {level: limit}
        for level, is_closed in change.closed.items():
            (self.closed.add if is_closed else self.closed.discard)(level)
        if not act.needs().levels:
            return
        for kind, id_ in change.unpaid:
            paid: dict[tuple[str, str], Any] = self.paid_releases if kind == "release" else self.paid_queries
            del paid[limits.payer(account), id_]
        for payment in change.payments:
            self.paid_releases[limits.payer(account), payment.release_id] = payment.window_start
            if payment.query_id:
                self.paid_queries[limits.payer(account), payment.query_id] = PaidQuery(
                    payment.release_id, payment.window_start
                )


def _of_payer(paid: Mapping[tuple[str, str], _Paid], payer: str, ids: Iterable[str]) -> dict[str, _Paid]:
    found = ((id_, paid.get((payer, id_))) for id_ in ids)
    return {id_: each for id_, each in found if each is not None}
