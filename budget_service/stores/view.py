"""The ledger as a batch of requests sees it: what was loaded, and over it what has been decided and is not written yet.

A batch is decided on the view, one request after the other, and then written at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from budget_service.ledger.act import Act, Needs
from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.block_sums import BlockPage
from budget_service.ledger.chain import chained
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.state import (
    Change,
    DayChange,
    PaidQuery,
    Reservation,
    RootRecord,
    Snapshot,
)
from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.stores.transactions import Changes, Loaded, RootKey
from budget_service.stores.wanted import held_levels

_UNUSED = RootRecord()


class NotLoadedError(Exception):
    """What came before in the batch makes a request need more than was loaded: it begins the next batch."""


class View:
    """What was loaded for a batch, and its `changes` so far."""

    def __init__(self, loaded: Loaded) -> None:
        self.changes = Changes()
        self._loaded = loaded
        self._unread = loaded.page

    def root(self, root: str) -> RootRecord:
        """Return what is kept once for a root account."""
        return self._loaded.roots.get(root, _UNUSED)

    def snapshot(self, act: Act, limits: AppliedLimits, now: Microseconds) -> Snapshot:
        """Return all that the rules need to decide an act. Raises NotLoadedError."""
        loaded, root = self._loaded, act.account.root
        remembered = loaded.outcomes.get((root, act.request_id))
        if remembered is not None and now < remembered.keep_until:
            return Snapshot(root=self.root(root), remembered=remembered)
        needs = act.needs()
        due = self._due(root) if needs.is_limited else ()
        reservation = self._named(act.account, needs)
        named = due if reservation is None else (*due, reservation)
        page = self._page(needs)
        blocks = _blocks(needs) if page is None else {page.level: page.blocks}
        levels = [*needs.levels, *chain.from_iterable(blocks.values())]
        if named:
            levels += held_levels(named)
        outcomes = ((id_, loaded.outcomes.get((root, id_))) for id_ in needs.outcomes)
        return Snapshot(
            root=self.root(root),
            balances=self._balances(levels),
            blocks=blocks,
            every_block=needs.every_block,
            page=page,
            rows={level.of_block(""): loaded.rows[level.of_block("")] for level in levels},
            due=due,
            due_further=bool(due) and root in loaded.due_further,
            past=self._past(),
            reservations=self._reservations(root),
            reservation=reservation,
            paid_questions=self._paid_questions(act.account, needs, limits, reservation),
            paid_releases=self._paid_releases(act.account, needs, limits),
            stored_limits=self._stored_limits(root) if needs.stored else 0,
            limits=loaded.limits,
            closed=loaded.closed,
            clock=loaded.clock,
            outcomes={id_: found for id_, found in outcomes if found is not None},
        )

    def reading(self, account: Account) -> Snapshot:
        """Return all that the rules need to state the balances of an account."""
        due = self._loaded.due.get(account.root, ())
        blocks = {level: self._loaded.blocks[level] for level in account.levels}
        names = [*account.levels, *chain.from_iterable(blocks.values()), *held_levels(due)]
        return Snapshot(
            root=self.root(account.root),
            due=due,
            due_further=account.root in self._loaded.due_further,
            balances=self._balances(names),
            blocks=blocks,
            rows=None,
            past=self._past(),
            reservations=self._reservations(account.root),
            clock=self._loaded.clock,
        )

    def note(self, act: Act, limits: AppliedLimits, change: Change) -> None:
        """Take a change into the view."""
        loaded, changes, root = self._loaded, self.changes, act.account.root
        changes.roots[root] = loaded.roots[root] = chained(change.root, self.root(root), change.journal)
        changes.balances.update(change.balances)
        for level, balance in change.balances.items():
            if balance is None:
                del loaded.balances[level]
            else:
                loaded.balances[level] = balance
        loaded.rows.update(change.rows)
        changes.rows.update(change.rows)
        key = (root, act.request_id)
        if change.remembered is not None:
            changes.outcomes[key] = loaded.outcomes[key] = change.remembered
        for day in change.days:
            self._note_day(day)
        changes.journal.extend(change.journal)
        for ended in change.ended:
            self._note_reservation((root, ended), None)
        if change.opened is not None:
            self._open((root, change.opened.reservation_id), change.opened)
        if limits.levels:
            self._note_payments(limits.payer(act.account), change)
        changes.limits.update(change.limits)
        changes.closed.update(change.closed)

    def _page(self, needs: Needs) -> BlockPage | None:
        """Return the page of blocks that was loaded, once: for the act that needs it."""
        page, self._unread = self._unread, None
        return page if page is not None and page.level in needs.levels else None

    def _named(self, account: Account, needs: Needs) -> Reservation | None:
        """Return the reservation that an act names, if it may; it may have lapsed."""
        found = self._loaded.reservations.get((account.root, needs.reservation_id))
        is_own = found is not None and (needs.of_any_account or found.account == account)
        return found if is_own else None

    def _due(self, root: str) -> tuple[Reservation, ...]:
        due = self._loaded.due.get(root, ())
        if not due or (root, due[0].reservation_id) not in self.changes.reservations:
            return due
        # One request before has ended them all.
        if root in self._loaded.due_further:
            raise NotLoadedError
        return ()

    def _stored_limits(self, root: str) -> int:
        if any(level.root == root for level in (*self.changes.limits, *self.changes.closed)):
            raise NotLoadedError
        return self._loaded.stored_limits[root]

    def _balances(self, levels: Iterable[Account]) -> dict[Account, Balance]:
        known = self._loaded.balances
        # Of a thousand blocks, each is looked up once.
        found = ((level, known.get(level)) for level in levels)
        return {level: balance for level, balance in found if balance is not None}

    def _paid_questions(
        self, account: Account, needs: Needs, limits: AppliedLimits, reservation: Reservation | None
    ) -> dict[str, PaidQuery]:
        if not needs.questions:
            return {}
        questions = needs.questions if reservation is None else (reservation.query_id,)
        payer = limits.payer(account)
        found = {each: self._payment(payer, "query", each) for each in questions if each}
        return {each: paid for each, paid in found.items() if paid is not None}

    def _paid_releases(
        self, account: Account, needs: Needs, limits: AppliedLimits
    ) -> dict[str, Microseconds]:
        if not needs.releases:
            return {}
        payer = limits.payer(account)
        found = {each: self._payment(payer, "release", each) for each in needs.releases if each}
        return {each: paid.window_start for each, paid in found.items() if paid is not None}

    def _payment(self, *key: str) -> PaidQuery | None:
        try:
            return self._loaded.payments[key]  # type: ignore[index]
        except KeyError:
            raise NotLoadedError from None

    def _past(self) -> dict[Account, Iterable[PastDay]] | None:
        past = self._loaded.past
        return None if past is None else {level: days.values() for level, days in past.items()}

    def _reservations(self, root: str) -> tuple[Reservation, ...]:
        """Return all that are open, after what the batch has changed; none without the history."""
        if self._loaded.past is None:
            return ()
        changed = self.changes.reservations
        kept = [each for each in self._loaded.open[root] if (root, each.reservation_id) not in changed]
        opened = [each for (name, _), each in changed.items() if each is not None and name == root]
        return (*kept, *opened)

    def _note_day(self, each: DayChange) -> None:
        key = (each.level, each.start)
        last = self.changes.days.get(key)
        self.changes.days[key] = each if last is None else last.followed_by(each)
        if self._loaded.past is not None:
            days = self._loaded.past.setdefault(each.level, {})
            days[each.start] = each.applied(days.get(each.start))

    def _note_reservation(self, key: RootKey, reservation: Reservation | None) -> None:
        self.changes.reservations[key] = self._loaded.reservations[key] = reservation

    def _open(self, key: RootKey, opened: Reservation) -> None:
        # A store finds the same of what is in it, by its key.
        if self._loaded.reservations.get(key) is not None:
            raise ValueError("the id of a new reservation is taken")
        self._note_reservation(key, opened)

    def _note_payments(self, payer: str, change: Change) -> None:
        self.changes.payers.add(payer)
        for paid in change.payments:
            found = PaidQuery(paid.release_id, paid.window_start)
            for kind, id_ in (("release", paid.release_id), ("query", paid.query_id)):
                if id_:
                    self.changes.payments[payer, kind, id_] = paid
                    self._loaded.payments[payer, kind, id_] = found
        for kind, id_ in change.unpaid:
            self.changes.payments[payer, kind, id_] = self._loaded.payments[payer, kind, id_] = None


def _blocks(needs: Needs) -> Mapping[Account, Collection[Account]]:
    named = needs.blocks
    return {level: [level.of_block(block) for block in named] for level in needs.levels} if named else {}
