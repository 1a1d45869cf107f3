"""The ledger by the names of accounts: over a store in which pseudonyms stand for them; see `ledger.pseudonyms`.

Who asks by names gets names, and asks of an account that was forgotten in vain. What goes over the whole journal, to
verify, archive or export it, reads the store below, which knows ids alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias, cast

from msgspec import structs

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.limits import (
    AppliedLimits,
    StoredLimits,
    WouldChangeError,
)
from budget_service.ledger.outcomes import Answer, Reason, Refused, Reserved
from budget_service.ledger.pseudonyms import NameRow
from budget_service.ledger.requests import (
    CancelReservation,
    Refund,
    ReopenAccount,
    Request,
    ReturnLease,
)
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.verification import Checkpoint
from budget_service.stores.interface import (
    BalancePage,
    GroupedEntries,
    MatchingEntries,
    OutcomeUnknownError,
    Store,
    StoreUnavailableError,
)
from budget_service.stores.names import Names, pages
from budget_service.stores.renaming import (
    Levels,
    accounts_of,
    entry_with_names,
    levels_in,
    request_by_ids,
    state_with_names,
)

KNOWN_ACCOUNTS = 50_000
MAX_ATTEMPTS = 5
# What is about something that nobody can have of whom the ledger has not heard, and the answer then.
_ENDING: Mapping[type[Request], Reason] = {
    CancelReservation: Reason.RESERVATION_OVER,
    ReturnLease: Reason.RESERVATION_OVER,
    Refund: Reason.NOT_PAID,
    ReopenAccount: Reason.ACCOUNT_NOT_CLOSED,
}

_Entry: TypeAlias = tuple[str, JournalEntry]


@dataclass(frozen=True, slots=True)
class _Known:
    """An account by ids, and the limits that requests of it came with last, by names and by ids."""

    levels: Levels
    limits: AppliedLimits
    by_ids: AppliedLimits


class NamedStore(Names):
    """A Store by names; see `Store`. What is not about single accounts is the store's own.

    Attributes:
        ledger: The store by ids.
    """

    def __init__(self, ledger: Store) -> None:
        super().__init__(ledger)
        self._known: OrderedDict[Account, _Known] = OrderedDict()

    @property
    def store(self) -> Store:
        """Return this as a store."""
        return cast(Store, self)

    def __getattr__(self, name: str) -> Any:
        """Return a method of the store by its name."""
        return getattr(self.ledger, name)

    def forget(self) -> None:
        """Drop what is remembered: a ledger that was set back may have other ids."""
        self._known.clear()

    async def apply(self, request: Request, limits: AppliedLimits) -> Answer:
        """Decide a request and write the change; see `Store`.

        What is remembered of an account is as old as its limits: those of an account that was forgotten since are
        refused, and looked up again.
        """
        if (reason := _ENDING.get(type(request))) and not await self._has_row(request.account):
            return Answer(Refused(reason), replayed=False)
        found = await self._granted_or_known(request, limits)
        if isinstance(found, Answer):
            return found
        levels, by_ids = found
        renamed = request_by_ids(request, levels)
        answer = await self.ledger.apply(renamed, by_ids)
        outcome = answer.outcome
        if outcome == Refused(Reason.REQUEST_ID_REUSED):
            # An answer that is remembered is given by any limits: the name may have another id by now.
            self._known.pop(request.account, None)
            if (await self._of_request(request, limits, adds=False))[0] != levels:
                return await self.apply(request, limits)
        if not isinstance(outcome, Reserved) or outcome.lent is None:
            return answer
        lent = structs.replace(outcome.lent, account=request.account)
        return Answer(structs.replace(outcome, lent=lent), replayed=answer.replayed)

    async def _granted_or_known(
        self, request: Request, limits: AppliedLimits
    ) -> tuple[Levels, AppliedLimits] | Answer:
        """Return the levels that a request names and its limits by ids, all of which the ledger knows.

        A name comes into the ledger with what is granted: who is refused may have invented it, and gets the answer.
        """
        known = self._known.get(request.account)
        if known is not None and known.limits is limits:
            self._known.move_to_end(request.account)
            return known.levels, known.by_ids
        answer: Answer | None = None
        for _ in range(MAX_ATTEMPTS):
            levels, by_ids = await self._of_request(request, limits, adds=False)
            if self.are_known(levels):
                return levels, by_ids
            # If it was unknown before and after, nobody else has asked the same for it meanwhile.
            if answer is not None:
                return answer
            answer = await self._dry_run(request_by_ids(request, levels), by_ids)
            if answer is None:
                return await self._of_request(request, limits, adds=True)
        raise StoreUnavailableError("names of this account come and go without pause")

    async def _dry_run(self, request: Request, limits: AppliedLimits) -> Answer | None:
        """Return the answer that a request gets if it changes nothing, None if it might."""
        try:
            return await self.ledger.apply(request, structs.replace(limits, dry_run=True))
        except WouldChangeError:
            return None
        except OutcomeUnknownError as error:
            # Whatever became of it, nothing of the request was done.
            raise StoreUnavailableError(str(error)) from None

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now; see `Store`."""
        known = self._known.get(account)
        if known is not None:
            statement = await self._read(account, levels, known.levels)
            # What was remembered after the account was forgotten is older than the limits.
            if statement.limits_version == known.limits.version:
                return statement
        return await self._read(account, levels, await self.levels_of((account,)))

    async def _read(
        self, account: Account, levels: tuple[LevelLimit, ...], found: Levels
    ) -> AccountStatement:
        by_ids = tuple([LevelLimit(found[each.level], each.limit) for each in levels])
        return await self.ledger.read(found[account], by_ids)

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account, and look up its ids anew; see `Store`."""
        self._known.pop(account, None)
        levels = await self.levels_of((account,))
        for _ in range(MAX_ATTEMPTS):
            found = await self.ledger.limits(levels[account])
            before, levels = levels, await self.levels_of((account,))
            # A name that has got its id meanwhile has a limit, or is closed, in this version of the limits.
            if levels == before:
                return await self._stored(found, {by_ids: name for name, by_ids in levels.items()})
        raise StoreUnavailableError("names of this account come and go without pause")

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root; see `Store`."""
        found = await self.ledger.all_limits(root)
        return await self._stored(found, await self.names_for(root, (*found.limits, *found.states)))

    async def matching(self, levels: Sequence[Account], after: str, most: int) -> MatchingEntries:
        """Return the oldest entries of these levels after a position; see `Store`."""
        found = await self.levels_of(levels)
        page = await self.ledger.matching([found[each] for each in levels], after, most)
        return replace(page, entries=await self._entries(levels[0].root, page.entries))

    async def journal(self, root: str, after: str, until: str, most: int) -> list[_Entry]:
        """Return the oldest entries of a root; see `Store`."""
        return await self._entries(root, await self.ledger.journal(root, after, until, most))

    async def latest(self, root: str, before: str, most: int) -> list[_Entry]:
        """Return the newest entries of a root before a position; see `Store`."""
        return await self._entries(root, await self.ledger.latest(root, before, most))

    async def grouped_entries(
        self, account: Account, before: str, checkpointed: str, most: int
    ) -> GroupedEntries:
        """Return the newest entries of an account's root, grouped; see `Store`."""
        levels = await self.levels_of((account,))
        page = await self.ledger.grouped_entries(levels[account], before, checkpointed, most)
        entries = await self._entries(account.root, [("", each) for each in page.entries])
        return replace(page, entries=tuple(entry for _, entry in entries))

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return about `most` balances of a root; see `Store`."""
        page = await self.ledger.balances(root, after, most)
        held = [each.account for each in page.reservations]
        names = await self.names_for(root, (*(level for level, _ in page.balances), *page.past, *held))
        return replace(
            page,
            balances=tuple((names[level], balance) for level, balance in page.balances),
            past={names[level]: days for level, days in page.past.items()},
            reservations=tuple(
                [structs.replace(each, account=names[each.account]) for each in page.reservations]
            ),
        )

    async def checkpoint(self, root: str, levels: Sequence[Account] | None = None) -> Checkpoint:
        """Return the checkpoint of a root's journal by names, without the states of accounts; see `Store`."""
        found = None if levels is None else await self.levels_of(levels)
        asked = None if levels is None or found is None else [found[each] for each in levels]
        checkpoint = await self.ledger.checkpoint(root, asked)
        names = await self.names_for(root, checkpoint.spent)
        spent = {names[level]: spans for level, spans in checkpoint.spent.items()}
        return replace(checkpoint, spent=spent, states={})

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        # Not what is remembered: no version of limits says that it is old, and a charge ticket depends on this.
        levels = await self.levels_of((account,))
        return await self.ledger.query_id_of(levels[account], reservation_id)

    async def id_of(self, account: Account) -> str:
        """Return what an account stands under in the ledger until it is forgotten; empty: it does not stand there."""
        if account.depth == 1:
            return account.root
        return next((each.id for each in await self.rows_of((account,))), "")

    def remembered_id(self, account: Account) -> str:
        """Return what `id_of` does of an account that was just charged; empty: it is not remembered."""
        known = self._known.get(account)
        return account.root if account.depth == 1 else known.levels[account].path[-1] if known else ""

    async def _has_row(self, account: Account) -> bool:
        return account.depth == 1 or account in self._known or bool(await self.rows_of((account,)))

    async def drop(self, rows: Sequence[NameRow]) -> None:
        """Remove rows of accounts of one root, of persons who asked for them, and of names that were never used."""
        root, below = rows[0].level.root, list[NameRow]()
        for each in rows:
            names = await self.ledger.names_below(root, each.name)
            found = list(chain.from_iterable([await self.ledger.named(root, some) for some in pages(names)]))
            # As long as the name has its id, what was below it was not somebody's who came anew.
            if each in await self.ledger.named(root, (each.name,)):
                below += found
        await self.ledger.drop_names(root, [*rows, *below])
        for each in rows:
            self._known.pop(each.level, None)

    async def _of_request(
        self, request: Request, limits: AppliedLimits, *, adds: bool
    ) -> tuple[Levels, AppliedLimits]:
        """Return the levels that a request names and its limits by ids; with `adds`, names that are new get one."""
        if not limits.levels:
            return await self.levels_of(accounts_of(request), adds=adds), limits
        paid_as = () if not limits.paid_as else (Account.of_text(limits.paid_as),)
        levels = await self.levels_of((request.account, *paid_as), adds=adds)
        by_ids = structs.replace(
            limits,
            levels=tuple([LevelLimit(levels[each.level], each.limit) for each in limits.levels]),
            closed=None if limits.closed is None else levels[limits.closed],
            paid_as="".join(levels[each].text for each in paid_as),
        )
        if limits.closed is None and limits.version >= 0 and self.are_known(levels):
            self._known[request.account] = _Known(levels, limits, by_ids)
            if len(self._known) > KNOWN_ACCOUNTS:
                self._known.popitem(last=False)
        return levels, by_ids

    async def _stored(self, found: StoredLimits, names: Levels) -> StoredLimits:
        states = found.states
        former = [each for level, state in states.items() for each in state.former(level)]
        root = next(iter(names)).root if names else ""
        earlier = await self.names_for(root, former)
        return structs.replace(
            found,
            limits={names[level]: limit for level, limit in found.limits.items()},
            states={names[level]: state_with_names(state, level, earlier) for level, state in states.items()},
        )

    async def _entries(self, root: str, entries: Sequence[_Entry]) -> list[_Entry]:
        names = await self.names_for(root, [level for _, each in entries for level in levels_in(each)])
        return [(position, entry_with_names(each, names)) for position, each in entries]
