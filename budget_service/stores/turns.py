"""Whose request is decided next: root accounts take turns, and within a root its accounts do.

Requests in the order in which they came would let one caller with a thousand of them keep everybody waiting.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from time import perf_counter
from typing import Any, Generic, TypeAlias, TypeVar

from budget_service.ledger.values import Account

Asked = TypeVar("Asked")

_Future: TypeAlias = "asyncio.Future[Any]"

# How long it counts that several roots ask: who asks again meanwhile does not wait for large commits of another.
LATELY_SECONDS = 10.0


class RecentRoots:
    """Which root accounts ask, for all queues that share a store."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._last_root: str | None = None
        # Until when it counts that a root has asked after another one.
        self._several_until = 0.0

    def note(self, root: str) -> None:
        """Note that a root has asked."""
        if root != self._last_root:
            if self._last_root is not None:
                self._several_until = self._clock() + LATELY_SECONDS
            self._last_root = root

    @property
    def are_several(self) -> bool:
        """Whether more than one root has asked lately."""
        return self._clock() < self._several_until


class Turns(Generic[Asked]):
    """Requests that wait; those of one account keep their order."""

    def __init__(self, recent: RecentRoots | None = None) -> None:
        self._count = 0
        self._roots: OrderedDict[str, OrderedDict[Account, OrderedDict[_Future, Asked]]] = OrderedDict()
        self._recent = RecentRoots() if recent is None else recent

    def __len__(self) -> int:
        return self._count

    @property
    def several_roots(self) -> bool:
        """Whether more than one root has asked lately."""
        return self._recent.are_several

    def add(self, account: Account, answer: _Future, asked: Asked, *, is_next: bool = False) -> None:
        """Let a request wait, under the future of its answer; one that `is_next` before all others of its account."""
        self._recent.note(account.root)
        accounts = self._roots.setdefault(account.root, OrderedDict())
        waiting = accounts.setdefault(account, OrderedDict())
        waiting[answer] = asked
        if is_next:
            waiting.move_to_end(answer, last=False)
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

    def take(self, most: int, share: int | None = None) -> list[tuple[_Future, Asked]]:
        """Return those whose turn it is, at most so many, and at most a `share` of each root; they wait no more."""
        taken: list[tuple[_Future, Asked]] = []
        counts: Counter[str] = Counter()
        while len(taken) < most and self._roots:
            root = next(iter(self._roots))
            if counts[root] == share:
                # All others have had their turns, or their shares too.
                break
            counts[root] += 1
            taken.append(self._next(root))
        return taken

    def _next(self, root: str) -> tuple[_Future, Asked]:
        accounts = self._roots.pop(root)
        account, waiting = accounts.popitem(last=False)
        taken = waiting.popitem(last=False)
        # Who has more waiting is behind all others now.
        if waiting:
            accounts[account] = waiting
        if accounts:
            self._roots[root] = accounts
        self._count -= 1
        return taken
