"""Whose request is decided next: root accounts take turns, and within a root its accounts do.

Requests in the order in which they came would let one caller with a thousand of them keep everybody waiting.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Generic, TypeAlias, TypeVar

from budget_service.ledger.values import Account

Asked = TypeVar("Asked")

_Future: TypeAlias = "asyncio.Future[Any]"


class Turns(Generic[Asked]):
    """Requests that wait; those of one account keep their order."""

    def __init__(self) -> None:
        self._count = 0
        self._roots: OrderedDict[str, OrderedDict[Account, OrderedDict[_Future, Asked]]] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def add(self, account: Account, answer: _Future, asked: Asked) -> None:
        """Let a request wait, under the future of its answer."""
        accounts = self._roots.setdefault(account.root, OrderedDict())
        accounts.setdefault(account, OrderedDict())[answer] = asked
        self._count += 1

    def drop(self, account: Account, answer: _Future) -> None:
        """Let a request wait no more, if it still does."""
        accounts = self._roots.get(account.root)
        waiting = None if accounts is None else accounts.get(account)
        if accounts is None or waiting is None or answer not in waiting:
            return
        self._count -= 1
        del waiting[answer]
        if not waiting:
            del accounts[account]
        if not accounts:
            del self._roots[account.root]

    def take(self, most: int) -> list[tuple[_Future, Asked]]:
        """Return those whose turn it is; they wait no more."""
        return [self._next() for _ in range(min(most, self._count))]

    def _next(self) -> tuple[_Future, Asked]:
        root, accounts = self._roots.popitem(last=False)
        account, waiting = accounts.popitem(last=False)
        taken = waiting.popitem(last=False)
        # Who has more waiting is behind all others now.
        if waiting:
            accounts[account] = waiting
        if accounts:
            self._roots[root] = accounts
        self._count -= 1
        return taken
