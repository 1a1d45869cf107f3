"""One task at a time for each key; others of the same key wait for it, and fail as it failed."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class SingleFlight(Generic[_Key]):
    """Gives turns. Use it in one event loop.

    Args:
        is_shared: Whether those who waited fail with this error too. Otherwise each of them gets a turn of its own.
    """

    def __init__(self, is_shared: Callable[[BaseException], bool]) -> None:
        self._is_shared = is_shared
        self._ends: dict[_Key, asyncio.Future[BaseException | None]] = {}

    def turn(self, key: _Key) -> Turn | None:
        """Returns a turn, None if somebody has one."""
        if key in self._ends:
            return None
        end: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self._ends[key] = end

        def ended(error: BaseException | None) -> None:
            del self._ends[key]
            end.set_result(error if error is not None and self._is_shared(error) else None)

        return Turn(ended)

    async def wait(self, key: _Key) -> None:
        """Waits until nobody has a turn; if the one who had it failed with an error that is shared, fails with it."""
        end = self._ends.get(key)
        error = None if end is None else await asyncio.shield(end)
        if error is not None:
            # One error must not be raised in several tasks: each adds its own traceback to it.
            raise copy.copy(error)


class Turn:
    """A turn that ends with its block at the latest."""

    def __init__(self, ended: Callable[[BaseException | None], None]) -> None:
        self._ended: Callable[[BaseException | None], None] | None = ended

    def end(self, error: BaseException | None = None) -> None:
        """Ends the turn; ending it twice is allowed."""
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended(error)

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end(error)
