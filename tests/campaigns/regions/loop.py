"""An event loop whose time passes only when nothing is left to do: the same seed gives the same history.

asyncio's own loop also looks after sockets, threads and signals; this one does what a simulation needs, and is quicker.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVarTuple

from budget_service.stores import group_commit

Arguments = TypeVarTuple("Arguments")


LONGEST_SECONDS = 86_400.0
"""No history takes a day. One that does waits for something that never comes, while others look after themselves."""


class StuckError(AssertionError):
    """The history waits, and no time will change that."""

    def __init__(self) -> None:
        super().__init__("the history does not end")


class Call(asyncio.TimerHandle):
    """Something to call at a time, unless it is cancelled before."""

    __slots__ = ("arguments", "callback", "context", "due")

    def __init__(
        self, due: float, callback: Callable[..., Any], arguments: tuple[Any, ...], context: Context | None
    ) -> None:
        # Without the base class's own, which keeps more: a history makes some fifty thousand of these.
        self.due = due
        self.callback: Callable[..., Any] | None = callback
        self.arguments = arguments
        self.context = copy_context() if context is None else context

    def cancel(self) -> None:
        """Have it not called."""
        self.callback, self.arguments = None, ()

    def cancelled(self) -> bool:
        """Return whether it is not called."""
        return self.callback is None

    def when(self) -> float:
        """Return when it is called."""
        return self.due


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop without sockets, pipes and threads; what is due at one time is called in the order of asking."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._due: deque[Call] = deque()
        self._timers: list[tuple[float, int, Call]] = []
        self._numbers = count()
        self._is_over = False

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def call_soon(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.Handle:
        """Call something when all that waits was called."""
        call = Call(self._now, callback, args, context)
        self._due.append(call)
        return call

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call something after some virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call something at a virtual time."""
        call = Call(when, callback, args, context)
        heappush(self._timers, (when, next(self._numbers), call))
        return call

    def sleep(self, seconds: float) -> asyncio.Future[None]:
        """Return a future that is done after some virtual seconds."""
        asleep: asyncio.Future[None] = asyncio.Future(loop=self)
        call = Call(self._now + seconds, _wake, (asleep,), _EMPTY)
        heappush(self._timers, (call.due, next(self._numbers), call))
        return asleep

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """Run a coroutine."""
        return asyncio.Task(coro, loop=self, name=None if name is None else str(name), context=context)

    def get_debug(self) -> bool:
        """Say that nothing is to be noted for debugging."""
        return False

    def is_running(self) -> bool:
        """Return whether something is run."""
        return self in _LOOPS

    def is_closed(self) -> bool:
        """Return whether nothing is called any more."""
        return self._is_over

    def close(self) -> None:
        """Call nothing any more."""
        self._is_over = True
        self._due.clear()
        self._timers.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore what nobody waits for: a history says at its end whether it was good."""

    def run_until_complete(self, future: Any) -> Any:
        """Run until a task has ended, and return its result."""
        task = asyncio.ensure_future(future, loop=self)
        events._set_running_loop(self)
        _LOOPS.append(self)
        try:
            while not task.done():
                self._call_next()
        finally:
            _LOOPS.pop()
            events._set_running_loop(None)
        return task.result()

    def _call_next(self) -> None:
        """Let the time pass until something is due, and call it and all that follows from it at once."""
        due, timers = self._due, self._timers
        if not due:
            if not timers:
                raise StuckError
            when, _, call = heappop(timers)
            if call.callback is None:
                return
            self._now = max(self._now, when)
            if self._now > LONGEST_SECONDS:
                raise StuckError
            due.append(call)
        while due:
            call = due.popleft()
            if call.callback is not None:
                call.context.run(call.callback, *call.arguments)


# The loop whose history is simulated. To find it, asyncio asks the system for the process's id each time.
_LOOPS: list[VirtualLoop] = []
_EMPTY = Context()


def now() -> float:
    """Return the virtual time in seconds."""
    return _LOOPS[-1].time()


def sleep(seconds: float) -> asyncio.Future[None]:
    """Return a future that is done after some virtual seconds: asyncio's `sleep`, and several times quicker."""
    return _LOOPS[-1].sleep(seconds)


def _wake(asleep: asyncio.Future[None]) -> None:
    # The one that waited for it may have been cancelled.
    if not asleep.done():
        asleep.set_result(None)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a simulation to its end, and drop what still waits."""
    loop = VirtualLoop()
    # Gathering looks at the real time, which is not part of a history.
    dense, group_commit.DENSE = group_commit.DENSE, 10**9
    try:
        return loop.run_until_complete(work)
    finally:
        group_commit.DENSE = dense
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
