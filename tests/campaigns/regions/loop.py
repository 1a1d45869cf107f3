"""An event loop whose time passes only when nothing is left to do: the same seed gives the same history."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from budget_service.stores import group_commit


class StuckError(Exception):
    """Everything waits, and no time will change that."""


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop without sockets, pipes and threads."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0
        self._selector = self

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual

    def select(self, timeout: float | None) -> list[Any]:
        """Let the time pass that the loop would have waited."""
        if timeout is None:
            raise StuckError
        self._virtual += timeout
        return []

    def _process_events(self, _events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


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
