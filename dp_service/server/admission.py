"""How many calls may be in the service at a time; beyond that it says so at once, rather than answer everybody late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# A call takes milliseconds of a CPU, a large release a tenth of a second: so many take a few seconds.
MAX_RUNNING = 256
RETRY_SECONDS = 1


class OverloadedError(Exception):
    """As many calls are running as may be; nothing was begun."""

    def __init__(self) -> None:
        super().__init__("too many calls at once; ask again in a moment")


class Admission:
    """Counts the calls that are running, in one event loop."""

    def __init__(self, most: int = MAX_RUNNING) -> None:
        self._most = most
        self._running = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let a call in while the block runs; raises OverloadedError."""
        if self._running >= self._most:
            raise OverloadedError
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
