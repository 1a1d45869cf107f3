"""Requests by ids, and states and entries by names: who is named in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import structs

from budget_service.ledger.account_states import AccountState
from budget_service.ledger.requests import MoveAccount, Request, SetLimits
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
    return named


def request_by_ids(request: Request, levels: Levels) -> Request:
    """Return a request about the same accounts, by their ids."""
    account = levels[request.account]
    if isinstance(request, MoveAccount):
        return structs.replace(request, account=account, target=levels[request.target])
    if isinstance(request, SetLimits):
        changes = tuple([(levels[level], limit) for level, limit in request.changes])
        return structs.replace(request, account=account, changes=changes)
    return structs.replace(request, account=account)


def levels_in(entry: JournalEntry) -> tuple[Account, ...]:
    """Return the accounts that an entry names."""
    return (
        (entry.account, Account.of_text(entry.change)) if entry.kind is EntryKind.MOVE else (entry.account,)
    )


def state_with_names(state: AccountState, level: Account, names: Levels) -> AccountState:
    """Return the state of a level with the names that it had before."""
    return structs.replace(state, former_names=tuple([names[each].path[-1] for each in state.former(level)]))


def entry_with_names(entry: JournalEntry, names: Levels) -> JournalEntry:
    """Return an entry with the names of accounts."""
    account = names[entry.account]
    if entry.kind is EntryKind.MOVE:
        return structs.replace(entry, account=account, change=names[Account.of_text(entry.change)].text)
    return structs.replace(entry, account=account)
