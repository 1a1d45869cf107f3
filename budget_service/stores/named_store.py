"""The ledger by the names of accounts: over a store in which pseudonyms stand for them; see `ledger.pseudonyms`.

Who asks by names gets names, and asks of an account that was forgotten in vain. What goes over the whole journal, to
verify, archive or export it, reads the store below, which knows ids alone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias, cast

from msgspec import structs

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.account_states import UNTOUCHED
from budget_service.ledger.limit_requests import UNAUTHENTICATED
from budget_service.ledger.limits import (
    NO_LIMITS,
    AppliedLimits,
    LimitsChangedError,
    StoredLimits,
    WouldChangeError,
)
from budget_service.ledger.outcomes import Answer, Reason, Refused, Reserved
from budget_service.ledger.pseudonyms import PERSON, NameRow, ids_in, with_persons
from budget_service.ledger.requests import (
    ApproveLimit,
    CancelReservation,
    Refund,
    RefuseLimit,
    ReopenAccount,
    Request,
    RequestLimit,
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
    StoreError,
    StoreUnavailableError,
)
from budget_service.stores.names import Names, pages
from budget_service.stores.renaming import (
    Levels,
    accounts_of,
    entry_with_names,
    levels_in,
    persons_in,
    request_by_ids,
    state_with_names,
)

KNOWN_ACCOUNTS = 50_000
MAX_ATTEMPTS = 5
# Other processes ask at the same time.
MOST_ASKING = 16
# What is about something that nobody can have of whom the ledger has not heard, and the answer then.
_ENDING: Mapping[type[Request], Reason] = {
    CancelReservation: Reason.RESERVATION_OVER,
    ReturnLease: Reason.RESERVATION_OVER,
    Refund: Reason.NOT_PAID,
    ReopenAccount: Reason.ACCOUNT_NOT_CLOSED,
    ApproveLimit: Reason.NO_SUCH_REQUEST,
    RefuseLimit: Reason.NO_SUCH_REQUEST,
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
        # Each request for a limit is as of a version of its root's limits, and makes another one.
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

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
        if isinstance(renamed, RequestLimit):
            async with self._asking[request.account.root]:
                return await self._ask(renamed)
        if isinstance(renamed, ApproveLimit):
            (_, waiting), own = await self._waiting(renamed.account), {*renamed.actor.split()}
            others = [each for each, names in waiting.items() if not ids_in(names)]
            cleared = [each for each in others if own.isdisjoint(waiting[each].split())]
            renamed = structs.replace(renamed, cleared=tuple(cleared))
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

    async def _ask(self, request: RequestLimit) -> Answer:
        """Ask for another limit as a person who has not asked for one of this level under another account.

        The level is by ids, and who asks by names.
        """
        is_kept = is_granted = False
        was_known = request.asking.depth > 1 and bool(await self.rows_of((request.asking,)))
        try:
            for _ in range(MOST_ASKING):
                version, waiting = await self._waiting(request.account)
                same = tuple([each for each, names in waiting.items() if names == request.actor])
                asking = (await self.levels_of((request.asking,)))[request.asking]
                asked = structs.replace(request, asking=asking, known_as=same, as_of=version)
                try:
                    answer = await self._dry_run(asked, NO_LIMITS)
                    if answer is None:
                        is_kept = True
                        actor = await self._asker(request.actor, request.asking)
                        answer = await self.ledger.apply(structs.replace(asked, actor=actor), NO_LIMITS)
                except LimitsChangedError:
                    continue
                is_granted = not isinstance(answer.outcome, Refused)
                return answer
        finally:
            if was_known and is_kept and not is_granted:
                # The caller may leave, and the account be forgotten, at any moment.
                await asyncio.shield(self._drop_forgotten(request.asking))
        raise StoreUnavailableError("the limits of this root are being changed without pause")

    async def _drop_forgotten(self, asking: Account) -> None:
        """Remove persons who came into the ledger while the account that they ask for was forgotten."""
        with suppress(StoreError):
            if not await self.rows_of((asking,)):
                states = (await self.ledger.all_limits(asking.root)).states.values()
                asked = (each.asked_by for state in states for each in state.requests)
                await self.drop_persons(asking, but={id_ for each in asked for id_ in ids_in(each)})

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

    async def _asker(self, actor: str, asking: Account) -> str:
        """Return the ids of who asks for another limit, which are kept."""
        if actor == UNAUTHENTICATED:
            return actor
        names = [f"{asking.text}{PERSON}{each}" for each in actor.split()]
        ids = await self.ids_of(asking.root, names, adds=True)
        return " ".join(ids[each] for each in names)

    async def _waiting(self, by_ids: Account) -> tuple[int, dict[str, str]]:
        """Return who asks for another limit of a level, by ids, with their names, as of a version of the limits.

        An id that has no name stands for itself.
        """
        stored = await self.ledger.limits(by_ids)
        askers = [each.asked_by for each in stored.states.get(by_ids, UNTOUCHED).requests]
        ids = [id_ for each in askers for id_ in ids_in(each)]
        persons = {each.id: each for each in await self.rows_for(by_ids.root, ids)}
        return stored.version, {each: with_persons(each, persons) for each in askers}

    async def _stored(self, found: StoredLimits, names: Levels) -> StoredLimits:
        states = found.states
        former = [each for level, state in states.items() for each in state.former(level)]
        askers = [
            id_ for state in states.values() for each in state.requests for id_ in ids_in(each.asked_by)
        ]
        root = next(iter(names)).root if names else ""
        earlier = await self.names_for(root, former)
        persons = {each.id: each for each in await self.rows_for(root, askers)}
        return structs.replace(
            found,
            limits={names[level]: limit for level, limit in found.limits.items()},
            states={
                names[level]: state_with_names(state, level, earlier, persons)
                for level, state in states.items()
            },
        )

    async def _entries(self, root: str, entries: Sequence[_Entry]) -> list[_Entry]:
        names = await self.names_for(root, [level for _, each in entries for level in levels_in(each)])
        ids = [id_ for _, each in entries for id_ in persons_in(each)]
        persons = {each.id: each for each in await self.rows_for(root, ids)}
        return [(position, entry_with_names(each, names, persons)) for position, each in entries]
