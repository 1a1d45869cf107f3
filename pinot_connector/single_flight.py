"""Work that many ask for at once is done once: in turns, or by calls that are shared while they are under way."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from pinot_connector.errors import GrisError

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class SingleFlight(Generic[_Key]):
    """Gives turns: one task at a time for each key; others wait for it, and fail as it failed.

    Use it in one event loop.

    Args:
        is_shared: Whether those who waited fail with this error too. Otherwise each of them gets a turn of its own.
    """

    def __init__(self, is_shared: Callable[[BaseException], bool]) -> None:
        self._is_shared = is_shared
        self._ends: dict[_Key, asyncio.Future[BaseException | None]] = {}

    def turn(self, key: _Key) -> Turn[_Key] | None:
        """Returns a turn, None if somebody has one."""
        turn = Turn(self)
        return turn if turn.taken(key) else None

    async def wait(self, key: _Key) -> None:
        """Waits until nobody has a turn; if the one who had it failed with an error that is shared, fails with it."""
        end = self._ends.get(key)
        error = None if end is None else await asyncio.shield(end)
        if error is not None:
            # One error must not be raised in several tasks: each adds its own traceback to it.
            raise copy.copy(error)

    def _begin(self, key: _Key) -> bool:
        if key in self._ends:
            return False
        self._ends[key] = asyncio.get_running_loop().create_future()
        return True

    def _end(self, key: _Key, error: BaseException | None) -> None:
        is_shared = error is not None and self._is_shared(error)
        self._ends.pop(key).set_result(error if is_shared else None)


class Turn(Generic[_Key]):
    """What a task has of a single flight: none at first, the turn of one key at a time, none after its block."""

    def __init__(self, flight: SingleFlight[_Key]) -> None:
        self._flight = flight
        self._key: _Key | None = None

    def taken(self, key: _Key) -> bool:
        """Ends the present turn and takes the key's; returns False if another task has it."""
        self.end()
        if self._flight._begin(key):
            self._key = key
        return self._key is not None

    async def found(self, key: _Key, find: Callable[[], Awaitable[_Value | None]]) -> _Value | None:
        """Returns what is found, None once it is this task's turn to make it; waits for the one who makes it now."""
        while True:
            # Looked for in the turn: the task that had the last one may have made it since.
            is_mine = self.taken(key)
            if (found := await find()) is not None:
                self.end()
                return found
            if is_mine:
                return None
            await self._flight.wait(key)

    def end(self, error: BaseException | None = None) -> None:
        """Ends the turn; ending it twice is allowed."""
        if self._key is not None:
            key, self._key = self._key, None
            self._flight._end(key, error)

    def __enter__(self) -> Turn[_Key]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end(error)


@dataclass
class _SharedCall(Generic[_Value]):
    task: asyncio.Task[_Value]
    has_begun: Callable[[], bool]
    waiting: int = 0


def _has_always_begun() -> bool:
    return True


class SharedCalls(Generic[_Value]):
    """Calls of which those with the same key are made once for all who ask while one is under way.

    A call goes on if the one who began it leaves, for others may have come for its answer; one that still waits for its
    turn is dropped when everybody has left. What it raises, it raises for all of them. Use it in one event loop.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, _SharedCall[_Value]] = {}

    async def joined(
        self,
        key: Hashable,
        call: Callable[[], Coroutine[Any, Any, _Value]],
        has_begun: Callable[[], bool] = _has_always_begun,
    ) -> _Value:
        """Returns what a call of this key returns: of the one that is under way, or else of this one.

        Args:
            key: names the call; calls of the same key do the same.
            call: makes the call.
            has_begun: says whether this call has had its turn.
        """
        shared = self._under_way.get(key)
        if shared is None:
            shared = self._under_way[key] = _SharedCall(asyncio.create_task(call()), has_begun)
            shared.task.add_done_callback(lambda ended: self._ended(key, ended))
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task)
        except GrisError as error:
            failure = copy.copy(error)
        finally:
            shared.waiting -= 1
            if not (shared.waiting or shared.task.done() or shared.has_begun()):
                # Who comes from now on makes a call of their own.
                self._under_way.pop(key, None)
                shared.task.cancel()
        # One error must not be raised in several tasks: each adds its own traceback to it.
        raise failure

    def cancel(self) -> None:
        """Cancels what is under way."""
        for shared in self._under_way.values():
            shared.task.cancel()

    def _ended(self, key: Hashable, task: asyncio.Task[_Value]) -> None:
        shared = self._under_way.get(key)
        if shared is not None and shared.task is task:
            del self._under_way[key]
        # If everybody has left, nobody else retrieves the error, and asyncio would log that.
        if not task.cancelled():
            task.exception()
