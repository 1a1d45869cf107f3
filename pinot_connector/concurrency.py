"""Two steps of a question at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_Answer = TypeVar("_Answer")
_Other = TypeVar("_Other")


async def run_both(one: Awaitable[_Answer], other: Awaitable[_Other]) -> tuple[_Answer | None, _Other]:
    """Returns what both return; the first failure, or a cancellation, ends both.

    If the other one returns False meanwhile, the first is run in vain: it ends, and there is None in its place.
    """
    beside = asyncio.ensure_future(other)
    # The first one needs no task of its own: the other one interrupts it.
    interrupted, is_over = asyncio.timeout(None), False

    def interrupt_if_in_vain(ended: asyncio.Future[_Other]) -> None:
        if not is_over and (ended.cancelled() or ended.exception() is not None or ended.result() is False):
            interrupted.reschedule(asyncio.get_running_loop().time())

    beside.add_done_callback(interrupt_if_in_vain)
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
        return None, await beside
    finally:
        if not beside.done():
            beside.cancel()
            await asyncio.wait((beside,))
        if not beside.cancelled():
            # If both failed, nobody else retrieves this error, and asyncio would log that.
            beside.exception()
