"""Readings of a whole ledger share the event loop with charges: after each page, others have as long as it took.

A thread of its own would not help: for each statement of a charge the event loop would wait until that thread lets go
of the interpreter, which it does every five milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import thread_time
from typing import Any, TypeVar, cast

from budget_service.stores.interface import Store

LONGEST_PAUSE_SECONDS = 0.02
# Between two pauses so many parts of what is in memory already are gone through.
AT_ONCE = 250
PAGES = ("journal", "latest", "grouped_entries", "matching", "balances")

Item = TypeVar("Item")


class PacedStore:
    """A store of which one page is read at a time, for all who read, with a pause after it; see `Store`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = asyncio.Lock()

    @property
    def store(self) -> Store:
        """Return this as a store."""
        return cast(Store, self)

    def __getattr__(self, name: str) -> Any:
        """Return a method of the store by its name, so that none can be forgotten here."""
        method = getattr(self._store, name)
        if name not in PAGES:
            return method

        async def paced(*arguments: Any) -> Any:
            async with self._turn:
                began = thread_time()
                page = await method(*arguments)
                await _pause(began)
                return page

        return paced


async def in_turns(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Give items, with a pause after every few."""
    began = thread_time()
    for number, item in enumerate(items, 1):
        yield item
        if number % AT_ONCE == 0:
            await _pause(began)
            began = thread_time()


async def _pause(began: float) -> None:
    # A timer rounds up to a millisecond. The work itself is counted, not how long others kept the processor.
    await asyncio.sleep(min(thread_time() - began, LONGEST_PAUSE_SECONDS))
