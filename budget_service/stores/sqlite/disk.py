"""How long the disk may take for a commit or a trim, and what is done when it takes longer.

A disk that is busy takes some hundred milliseconds and is waited for: a service that refused everything meanwhile would
come and go with every burst of writes. One that takes `slow_disk_seconds` counts as silent, so that nothing new is sent
to it. After `hanging_disk_seconds` the callers that wait get an error, and no new ones are admitted until the commit is
over, however it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from budget_service.stores.interface import StoreUnavailableError
from budget_service.tuning import Tuning

HANGS = "the disk does not answer"


class Disk:
    """What the commit that is under way tells of the disk; `give_up` is called when it has taken too long."""

    def __init__(self, give_up: Callable[[], None], tuning: Tuning) -> None:
        self._tuning = tuning
        self._give_up = give_up
        self._commit: asyncio.Future[None] | None = None
        self._slow_from = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._hangs = False

    def begins(self) -> None:
        """Note that a commit has begun; there is one at a time."""
        loop = asyncio.get_running_loop()
        self._commit = loop.create_future()
        self._slow_from = loop.time() + self._tuning.slow_disk_seconds
        self._timer = loop.call_later(self._tuning.hanging_disk_seconds, self._hang)

    def ends(self) -> None:
        """Note that it is over, whether it succeeded or not."""
        if self._commit is not None and self._timer is not None:
            self._timer.cancel()
            self._commit.set_result(None)
        self._commit = None
        self._hangs = False

    def require_responsive(self) -> None:
        """Return if another request may wait for the disk, else raise StoreUnavailableError."""
        if self._hangs:
            raise StoreUnavailableError(HANGS)

    async def heartbeat(self) -> None:
        """Return at once, or if the commit is slow when it is over."""
        if self._commit is not None and asyncio.get_running_loop().time() >= self._slow_from:
            await asyncio.shield(self._commit)

    def _hang(self) -> None:
        self._hangs = True
        self._give_up()
