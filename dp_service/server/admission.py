"""A limit on the calls that run at a time; more are refused at once, so that the others are answered in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# A call takes milliseconds of CPU time, a large release a tenth of a second: 256 of them take a few seconds.
MAX_RUNNING = 256
RETRY_SECONDS = 1


class OverloadedError(Exception):
    """The limit of calls is reached; the refused call has not begun."""

    def __init__(self) -> None:
        super().__init__("too many calls at once; try again in a moment")


class Admission:
    """Counts the calls that are running, in one event loop."""

    def __init__(self, most: int = MAX_RUNNING) -> None:
        self._most = most
        self._running = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count a call while the block runs.

        Raises:
            OverloadedError: The limit of calls is reached.
        """
        if self._running >= self._most:
            raise OverloadedError
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
