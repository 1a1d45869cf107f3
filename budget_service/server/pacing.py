"""Readings of a whole ledger share the event loop with charges: after each page, others have as long as it took.

A thread of its own would not help: for each statement of a charge the event loop would wait until that thread lets go
of the interpreter, which it does every five milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import thread_time
from typing import TypeVar

LONGEST_PAUSE_SECONDS = 0.02
# Between two pauses so many parts of what is in memory already are gone through.
AT_ONCE = 250

Item = TypeVar("Item")


async def in_turns(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Give items, with a pause after every few."""
    began = thread_time()
    for number, item in enumerate(items, 1):
        yield item
        if number % AT_ONCE == 0:
            await pause(began)
            began = thread_time()


async def pause(began: float) -> None:
    """Leave the event loop to others for as long as this thread has worked since `thread_time()` was `began`."""
    # A timer rounds up to a millisecond. The work itself is counted, not how long others kept the processor.
    await asyncio.sleep(min(thread_time() - began, LONGEST_PAUSE_SECONDS))
