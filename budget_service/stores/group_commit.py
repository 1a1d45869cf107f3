"""Group commit: how long requests wait for others, to be committed together.

A commit costs as much as several charges, whatever its size, so under load few large commits answer all callers sooner.
While the event loop is busy, mostly with accepting more requests, waiting for them costs little. An idle loop means
that all callers wait for this commit, so it begins. Few requests do not wait for others at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized
from time import perf_counter, thread_time

# Fewer requests than this do not wait: the next commit is as good as this one.
DENSE = 8
STEP_SECONDS = 0.001
# Looked at after each step, which takes up to three turns of a busy event loop.
MOST_SECONDS = 0.01
BUSY_SHARE = 0.5
# If all callers wait for one commit, nothing else can be done meanwhile. Then fewer are awaited, so that callers fall
# into two groups that take turns; later it is tried again whether more would come.
FEWER = 0.6
MORE = 0.5
FEWEST = 4


class GroupCommit:
    """Decides when enough requests wait.

    Args:
        waiting: The requests that wait.
        large: Above this size a commit is hardly cheaper per request.
        used: Returns the CPU seconds that the event loop has used.
    """

    def __init__(self, waiting: Sized, large: int, used: Callable[[], float] = thread_time) -> None:
        self._waiting = waiting
        self._large = large
        self._used = used
        self._enough: float = FEWEST

    async def gather(self, served: int) -> None:
        """Return when it is time for a commit; the last one had `served` requests, 0 after a pause."""
        if served + len(self._waiting) < DENSE:
            return
        until = perf_counter() + MOST_SECONDS
        while (here := len(self._waiting)) < self._enough:
            used, began = self._used(), perf_counter()
            await asyncio.sleep(STEP_SECONDS)
            now = perf_counter()
            if self._used() - used < BUSY_SHARE * (now - began):
                self._enough = max(FEWEST, min(self._enough, FEWER * max(served, here)))
                return
            if now >= until:
                # The loop is busy with something else.
                self._enough = max(FEWEST, min(len(self._waiting), self._large))
                return
        self._enough = min(self._enough + MORE, self._large)
