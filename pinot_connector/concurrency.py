"""Two steps of a question at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_Answer = TypeVar("_Answer")
_Other = TypeVar("_Other")


async def run_both(one: Awaitable[_Answer], other: Awaitable[_Other]) -> tuple[_Answer, _Other]:
    """Return what both return; the first failure, or a cancellation, ends both."""
    beside = asyncio.ensure_future(other)
    # The first one needs no task of its own: a failure of the other one interrupts it.
    interrupted, is_over = asyncio.timeout(None), False

    def interrupt_after_failure(ended: asyncio.Future[_Other]) -> None:
        if not is_over and (ended.cancelled() or ended.exception() is not None):
            interrupted.reschedule(asyncio.get_running_loop().time())

    beside.add_done_callback(interrupt_after_failure)
    try:
        async with interrupted:
            try:
                answer = await one
            finally:
                is_over = True
        return answer, await beside
    except TimeoutError:
        if not interrupted.expired():
            raise
        # It has failed.
        await beside
        raise
    finally:
        if not beside.done():
            beside.cancel()
            await asyncio.wait((beside,))
        if not beside.cancelled():
            # If both failed, nobody else retrieves this error, and asyncio would log that.
            beside.exception()
