"""Requests by ids, and states and entries by names: who is named in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import structs

from budget_service.ledger.account_states import AccountState
from budget_service.ledger.pseudonyms import ASKED_BY, NameRow, ids_in, with_persons
from budget_service.ledger.requests import MoveAccount, Request, RequestLimit, SetLimits
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account

Levels: TypeAlias = Mapping[Account, Account]


def accounts_of(request: Request) -> list[Account]:
    """Return all accounts that a request names."""
    named = [request.account]
    if isinstance(request, MoveAccount):
        named.append(request.target)
    if isinstance(request, SetLimits):
        named += [level for level, _ in request.changes]
    if isinstance(request, RequestLimit):
        named += request.expired
    return named


def request_by_ids(request: Request, levels: Levels) -> Request:
    """Return a request about the same accounts, by their ids."""
    account = levels[request.account]
    if isinstance(request, MoveAccount):
        return structs.replace(request, account=account, target=levels[request.target])
    if isinstance(request, SetLimits):
        changes = tuple([(levels[level], limit) for level, limit in request.changes])
        return structs.replace(request, account=account, changes=changes)
    if isinstance(request, RequestLimit):
        return structs.replace(
            request, account=account, expired=tuple([levels[each] for each in request.expired])
        )
    return structs.replace(request, account=account)


def levels_in(entry: JournalEntry) -> tuple[Account, ...]:
    """Return the accounts that an entry names."""
    return (
        (entry.account, Account.of_text(entry.change)) if entry.kind is EntryKind.MOVE else (entry.account,)
    )


def persons_in(entry: JournalEntry) -> list[str]:
    """Return the ids of persons in an entry: of who has asked for the limit that it is about."""
    if not (entry.kind.is_of_limit and entry.query_id):
        return []
    return ids_in(f"{entry.actor} {_parts(entry)[1]}")


def _parts(entry: JournalEntry) -> tuple[str, str]:
    """Return what a person wrote in an entry's reason, and what the ledger wrote after it, with ids."""
    if entry.kind is not EntryKind.LIMIT:
        return entry.reason, ""
    head, between, tail = entry.reason.rpartition(ASKED_BY)
    return f"{head}{between}", tail


def state_with_names(
    state: AccountState, level: Account, names: Levels, persons: Mapping[str, NameRow]
) -> AccountState:
    """Return the state of a level with the names of who asks, and with those that it had before."""
    former = tuple([names[each].path[-1] for each in state.former(level)])
    asked = [structs.replace(each, asked_by=with_persons(each.asked_by, persons)) for each in state.requests]
    return structs.replace(state, former_names=former, requests=tuple(asked))


def entry_with_names(entry: JournalEntry, names: Levels, persons: Mapping[str, NameRow]) -> JournalEntry:
    """Return an entry with the names of accounts, and of persons where there are rows of them."""
    account = names[entry.account]
    if entry.kind is EntryKind.MOVE:
        return structs.replace(entry, account=account, change=names[Account.of_text(entry.change)].text)
    if not persons_in(entry):
        return structs.replace(entry, account=account)
    written, asked_by = _parts(entry)
    said = {"actor": with_persons(entry.actor, persons), "reason": written + with_persons(asked_by, persons)}
    return structs.replace(entry, account=account, **said)
