"""The ledger by the names of accounts: over a store in which pseudonyms stand for them; see `ledger.pseudonyms`.

Who asks by names gets names, and asks of an account that was forgotten in vain. What goes over the whole journal, to
verify, archive or export it, reads the store below, which knows ids alone.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias, cast

from msgspec import structs

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.account_states import UNTOUCHED
from budget_service.ledger.limit_requests import UNAUTHENTICATED
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer, Reason, Refused, Reserved
from budget_service.ledger.pseudonyms import KEY_BYTES, PERSON, NameRow, ids_in, with_persons
from budget_service.ledger.requests import (
    ANY_VERSION,
    ApproveLimit,
    CancelReservation,
    Charge,
    CloseAccount,
    MoveAccount,
    Refund,
    RefuseLimit,
    ReopenAccount,
    ReportCharge,
    Request,
    RequestLimit,
    Reserve,
    ReturnLease,
    SetLimits,
    WriteOff,
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
AT_ONCE = 1000
# What may be the first that the ledger hears of an account.
_BEGINNING = (
    Reserve | Charge | ReportCharge | WriteOff | SetLimits | CloseAccount | MoveAccount | RequestLimit
)
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


class NamedStore:
    """A Store by names; see `Store`. What is not about single accounts is the store's own.

    Attributes:
        ledger: The store by ids.
    """

    def __init__(self, ledger: Store) -> None:
        self.ledger = ledger
        self._known: OrderedDict[Account, _Known] = OrderedDict()
        # Of ids that nothing is kept of: a request has the same fingerprint when it is sent again.
        self._own_key = secrets.token_bytes(KEY_BYTES)

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
        known = self._known.get(request.account)
        if known is not None and known.limits is limits:
            self._known.move_to_end(request.account)
            levels, by_ids = known.levels, known.by_ids
        else:
            levels, by_ids = await self._of_request(request, limits, adds=False)
            if _begins(request, limits) and not self._are_known(levels):
                # A name comes into the ledger with what is granted: who is refused may have invented it.
                answer = await self._dry_run(request_by_ids(request, levels), by_ids)
                if answer.is_without_effect:
                    return answer
                levels, by_ids = await self._of_request(request, limits, adds=True)
        renamed = request_by_ids(request, levels)
        if isinstance(renamed, RequestLimit):
            return await self._ask(renamed, by_ids)
        if isinstance(renamed, ApproveLimit):
            (_, waiting), own = await self._waiting(renamed.account), {*renamed.actor.split()}
            others = [each for each, names in waiting.items() if not ids_in(names)]
            cleared = [each for each in others if own.isdisjoint(waiting[each].split())]
            renamed = structs.replace(renamed, cleared=tuple(cleared))
        answer = await self.ledger.apply(renamed, by_ids)
        outcome = answer.outcome
        if not isinstance(outcome, Reserved) or outcome.lent is None:
            return answer
        lent = structs.replace(outcome.lent, account=request.account)
        return Answer(structs.replace(outcome, lent=lent), replayed=answer.replayed)

    async def _ask(self, request: RequestLimit, limits: AppliedLimits) -> Answer:
        """Ask for another limit as a person who has not asked for one of this level under another account.

        Raises:
            LimitsChangedError: The request is as of another version, or somebody else has asked meanwhile.
        """
        version, waiting = await self._waiting(request.account)
        same = tuple([each for each, names in waiting.items() if names == request.actor])
        as_of = version if request.as_of == ANY_VERSION else request.as_of
        asking = structs.replace(request, known_as=same, as_of=as_of)
        if not same:
            answer = await self._dry_run(asking, limits)
            if answer.is_without_effect:
                return answer
        actor = await self._asker(request.actor, request.asking, adds=not same)
        return await self.ledger.apply(structs.replace(asking, actor=actor), limits)

    async def _dry_run(self, request: Request, limits: AppliedLimits) -> Answer:
        """Return the answer that a request would get, which is given only if it is without effect."""
        try:
            return await self.ledger.apply(request, structs.replace(limits, dry_run=True))
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
        return await self._read(account, levels, await self._levels((account,)))

    async def _read(
        self, account: Account, levels: tuple[LevelLimit, ...], found: Levels
    ) -> AccountStatement:
        by_ids = tuple([LevelLimit(found[each.level], each.limit) for each in levels])
        return await self.ledger.read(found[account], by_ids)

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account, and look up its ids anew; see `Store`."""
        self._known.pop(account, None)
        levels = await self._levels((account,))
        for _ in range(MAX_ATTEMPTS):
            found = await self.ledger.limits(levels[account])
            before, levels = levels, await self._levels((account,))
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
        found = await self._levels(levels)
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
        levels = await self._levels((account,))
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
        found = None if levels is None else await self._levels(levels)
        asked = None if levels is None or found is None else [found[each] for each in levels]
        checkpoint = await self.ledger.checkpoint(root, asked)
        names = await self.names_for(root, checkpoint.spent)
        spent = {names[level]: spans for level, spans in checkpoint.spent.items()}
        return replace(checkpoint, spent=spent, states={})

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        # Not what is remembered: no version of limits says that it is old, and a charge ticket depends on this.
        levels = await self._levels((account,))
        return await self.ledger.query_id_of(levels[account], reservation_id)

    async def _has_row(self, account: Account) -> bool:
        return account.depth == 1 or account in self._known or bool(await self.rows_of((account,)))

    async def rows_of(self, accounts: Sequence[Account]) -> list[NameRow]:
        """Return the rows of accounts of one root that have one."""
        return await self.ledger.named(accounts[0].root, [each.text for each in accounts])

    async def drop(self, rows: Sequence[NameRow]) -> None:
        """Remove rows of accounts of one root, of persons who asked for them, and of names that were never used."""
        root, below = rows[0].level.root, list[NameRow]()
        for each in rows:
            names = await self.ledger.names_below(root, each.name)
            found = list(chain.from_iterable([await self.ledger.named(root, some) for some in _pages(names)]))
            # As long as the name has its id, what was below it was not somebody's who came anew.
            if each in await self.ledger.named(root, (each.name,)):
                below += found
        await self.ledger.drop_names(root, [*rows, *below])
        for each in rows:
            self._known.pop(each.level, None)

    async def drop_persons(self, account: Account) -> None:
        """Remove the rows of persons who asked for an account that has none itself, and of names never used."""
        below = await self.ledger.names_below(account.root, account.text)
        persons = [each for each in below if each.startswith(f"{account.text}{PERSON}")]
        rows = chain.from_iterable([await self.ledger.named(account.root, some) for some in _pages(persons)])
        await self.ledger.drop_names(account.root, [*rows])

    async def rows_for(self, root: str, ids: Iterable[str]) -> list[NameRow]:
        """Return the rows of ids, of those that are not forgotten."""
        pages = [await self.ledger.names_of(root, some) for some in _pages(sorted({*ids}))]
        return list(chain.from_iterable(pages))

    async def names_for(self, root: str, levels: Collection[Account]) -> Levels:
        """Return these levels, and blocks of levels, by names; an id that was forgotten stands for itself."""
        ids = [segment for level in levels for segment in level.path[1:]]
        rows = {each.id: each.level.path[-1] for each in await self.rows_for(root, ids)}
        return {
            level: Account((root, *(rows.get(each, each) for each in level.path[1:])), level.block)
            for level in levels
        }

    async def _of_request(
        self, request: Request, limits: AppliedLimits, *, adds: bool
    ) -> tuple[Levels, AppliedLimits]:
        """Return the levels that a request names and its limits by ids; with `adds`, names that are new get one."""
        if not limits.levels:
            return await self._levels(accounts_of(request), adds=adds), limits
        paid_as = () if not limits.paid_as else (Account.of_text(limits.paid_as),)
        levels = await self._levels((request.account, *paid_as), adds=adds)
        by_ids = structs.replace(
            limits,
            levels=tuple([LevelLimit(levels[each.level], each.limit) for each in limits.levels]),
            closed=None if limits.closed is None else levels[limits.closed],
            paid_as="".join(levels[each].text for each in paid_as),
        )
        if _begins(request, limits) and self._are_known(levels):
            self._known[request.account] = _Known(levels, limits, by_ids)
            if len(self._known) > KNOWN_ACCOUNTS:
                self._known.popitem(last=False)
        return levels, by_ids

    def _are_known(self, levels: Levels) -> bool:
        """Whether each of these has an id in the ledger."""
        return all(
            level.depth == 1 or by_ids.path[-1] != self._unknown(level.text).id
            for level, by_ids in levels.items()
        )

    def _unknown(self, name: str) -> NameRow:
        """Return the row that stands for a name that has none."""
        return NameRow.made(name, self._own_key)

    async def _levels(self, accounts: Iterable[Account], *, adds: bool = False) -> Levels:
        """Return all levels of accounts of one root by ids; with `adds`, those that are new get one.

        Nothing is kept of other new ones.
        """
        every = {level: None for account in accounts for level in account.of_block("").levels}
        texts = [level.text for level in every if level.depth > 1]
        ids = await self._ids(next(iter(every)).root, texts, adds=adds)
        return {level: _by_ids(level, ids) for level in every}

    async def _ids(self, root: str, names: Sequence[str], *, adds: bool) -> Mapping[str, str]:
        rows: dict[str, NameRow] = {}
        for some in _pages(names):
            found = {each.name: each for each in await self.ledger.named(root, some)}
            if adds and len(found) < len(some):
                new = [
                    NameRow.made(each, secrets.token_bytes(KEY_BYTES)) for each in some if each not in found
                ]
                found |= {each.name: each for each in await self.ledger.add_names(root, new)}
            rows |= found
        return {each: (rows.get(each) or self._unknown(each)).id for each in names}

    async def _asker(self, actor: str, asking: Account, *, adds: bool) -> str:
        """Return the ids of who asks for another limit; with `adds` they are kept."""
        if actor == UNAUTHENTICATED:
            return actor
        names = [f"{asking.text}{PERSON}{each}" for each in actor.split()]
        ids = await self._ids(asking.root, names, adds=adds)
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


def _begins(request: Request, limits: AppliedLimits) -> bool:
    """Return whether a request may be the first that the ledger hears of an account."""
    # Nothing begins below a closed level, but what a region has charged has happened.
    is_open = limits.closed is None or isinstance(request, ReportCharge)
    return isinstance(request, _BEGINNING) and is_open and limits.version >= 0


def _pages(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[first : first + AT_ONCE] for first in range(0, len(texts), AT_ONCE)]


def _by_ids(level: Account, ids: Mapping[str, str]) -> Account:
    return Account((level.root, *(ids[each.text] for each in level.levels[1:])))
