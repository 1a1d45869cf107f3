"""Group commit: how long requests wait for others, to be committed together.

A commit costs as much as several charges, whatever its size, so under load few large commits answer all callers sooner.
While the event loop is busy, mostly with accepting more requests, waiting for them costs little. An idle loop means
that all callers wait for this commit, so it begins. Few requests do not wait for others at all.

Where a crowd waits, a commit takes few of each root account: a caller of another one, whose turn is next, waits for as
long as the event loop works for one commit. Only if the loop is idle meanwhile, because the store is slow, are they
more. Many are a crowd if only one root asks, and few already if several do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sized
from time import perf_counter, thread_time
from typing import Protocol

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
# So many of one root that wait are a crowd. While it grows, requests are still being accepted, in the order in which
# they came, and whose turn it is among them is not known yet. One takes several turns of the event loop.
CROWD = 128
TURNS_OF_ONE = 6


class Waiting(Sized, Protocol):
    """The requests that wait; see `Turns`."""

    @property
    def several_roots(self) -> bool:
        """Whether more than one root has asked lately."""


class GroupCommit:
    """Decides when enough requests wait.

    Args:
        waiting: The requests that wait.
        large: Above this size a commit is hardly cheaper per request.
        used: Returns the CPU seconds that the event loop has used.
        clock: Returns the seconds that have passed.
        sleep: Lets the event loop work for so many seconds, 0 for one turn of it.
    """

    def __init__(
        self,
        waiting: Waiting,
        large: int,
        used: Callable[[], float] = thread_time,
        clock: Callable[[], float] = perf_counter,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._waiting = waiting
        self._large = large
        self._used = used
        self._clock = clock
        self._sleep = sleep
        self._enough: float = FEWEST
        self._few: float = FEWEST
        # When the last commit began, and what the event loop had used by then.
        self._began = (0.0, 0.0)

    @property
    def share(self) -> int:
        """How many of each root the next commit should have at most."""
        return int(self._few) if self._is_crowd else CROWD

    async def gather(self, served: int) -> None:
        """Return when it is time for a commit; the last one had `served` requests, 0 after a pause."""
        if served + len(self._waiting) < DENSE:
            return
        if self._is_crowd:
            await self._gather_crowd()
            return
        until = self._clock() + MOST_SECONDS
        while (here := len(self._waiting)) < self._enough:
            used, began = self._used(), self._clock()
            await self._sleep(STEP_SECONDS)
            now = self._clock()
            if self._used() - used < BUSY_SHARE * (now - began):
                self._enough = max(FEWEST, min(self._enough, FEWER * max(served, here)))
                return
            if now >= until:
                # The loop is busy with something else.
                self._enough = max(FEWEST, min(len(self._waiting), self._large))
                return
        self._enough = min(self._enough + MORE, self._large)

    @property
    def _is_crowd(self) -> bool:
        return len(self._waiting) > (DENSE if self._waiting.several_roots else CROWD)

    async def _gather_crowd(self) -> None:
        """Return when all who ask are there, after a look at what the event loop did during the last commit."""
        began, used = self._began
        is_busy = self._used() - used >= BUSY_SHARE * (self._clock() - began)
        self._few = max(FEWEST, FEWER * self._few) if is_busy else min(self._few / FEWER, self._large)
        until, here = self._clock() + MOST_SECONDS, 0
        while here < len(self._waiting) and self._clock() < until:
            here = len(self._waiting)
            for _ in range(TURNS_OF_ONE):
                await self._sleep(0)
        self._began = (self._clock(), self._used())
