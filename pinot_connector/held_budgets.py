"""Waiting for budget that open reservations hold: the questions of an account wait in order, one after the other.

budget_service refuses such a reservation without an effect, and does not remember the refusal. The first question in
the queue sends the same request again after pauses that grow, and at once when a reservation of this client ends; those
behind it wait for their turn.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from pinot_connector import telemetry
from pinot_connector.errors import BudgetHeld

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
# Each pause is at least this part of what it may be, so that the clients of one account do not ask all at once.
SHORTEST_PART = 0.5

_Answer = TypeVar("_Answer")


class HeldQueue:
    """The questions of one account that wait for budget, within one event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # it lets tasks in by the order in which they came
        self._freed = asyncio.Event()
        self._waiting = 0

    @property
    def is_empty(self) -> bool:
        """Whether no question waits."""
        return self._waiting == 0

    def wake(self) -> None:
        """Lets the first question try again at once."""
        self._freed.set()

    async def granted(
        self, attempt: Callable[[], Awaitable[_Answer]], deadline: float, *, has_begun: bool = False
    ) -> _Answer:
        """Returns what `attempt` returns, as soon as it is this question's turn and its budget is free.

        A cancellation takes effect in `attempt`, or while nothing is under way.

        Args:
            attempt: tries once; raises BudgetHeld if that had no effect because of open reservations.
            deadline: when to give up, by the clock of the event loop.
            has_begun: whether the first try is under way already: it must not wait for others.

        Raises:
            BudgetHeld: the budget was held until the deadline.
        """
        if self.is_empty or has_begun:
            with suppress(BudgetHeld):
                return await attempt()
        with self._counted(), telemetry.budget_wait():
            await self._until_turn(deadline)
            try:
                return await self._until_free(attempt, deadline)
            finally:
                self._turn.release()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def _until_turn(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._turn.acquire()
        except TimeoutError:
            raise BudgetHeld(()) from None

    async def _until_free(self, attempt: Callable[[], Awaitable[_Answer]], deadline: float) -> _Answer:
        longest = FIRST_PAUSE_SECONDS
        while True:
            # What is freed while the attempt is under way may have come too late for it.
            self._freed.clear()
            try:
                return await attempt()
            except BudgetHeld:
                seconds = longest * random.uniform(SHORTEST_PART, 1)  # noqa: S311 - nothing depends on it
                if asyncio.get_running_loop().time() + seconds >= deadline:
                    raise
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._freed.wait()
            longest = min(2 * longest, LONGEST_PAUSE_SECONDS)


class HeldQueues:
    """A queue for each account, as long as somebody uses it."""

    def __init__(self) -> None:
        self._queues: WeakValueDictionary[tuple[str, ...], HeldQueue] = WeakValueDictionary()

    def of(self, account: tuple[str, ...]) -> HeldQueue:
        """Returns the queue of an account."""
        return self._queues.setdefault(account, HeldQueue())

    def freed(self, account: tuple[str, ...]) -> None:
        """Wakes those who may wait for what a reservation of the account held: all below its root account."""
        for path, queue in list(self._queues.items()):
            if path[:1] == account[:1]:
                queue.wake()
