"""How much one caller may ask of the gateway at a time."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

MAX_CALLERS = 10_000
# Of all callers together: a question holds a true histogram, and those that wait for the engine longest.
MAX_RUNNING = 256
COME_BACK_SECONDS = 1.0
# Beyond that nobody waits in line: most of those who were told a moment have gone.
LONGEST_LINE_SECONDS = 5.0


class TooManyError(Exception):
    """A caller asks too much; nothing was begun. `wait_milliseconds`: when it may be more successful."""

    def __init__(self, reason: str, message: str, wait_seconds: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.wait_milliseconds = math.ceil(1000 * wait_seconds)


@dataclass
class _Bucket:
    """How many calls may begin now, as of a moment; when the next in line is told to come; how many are under way."""

    tokens: float
    at: float
    next_in_line: float = 0.0
    running: int = 0


class Limiter:
    """A token bucket and a count of running calls for each caller, and a count of all that run.

    Belongs to one event loop and never waits.

    Args:
        per_second: calls that become possible each second.
        burst: the most calls that are possible at once.
        concurrent: the most calls that may be under way.
        clock: seconds that never go back.
        most: the most calls of all callers that may be under way.
    """

    def __init__(
        self,
        *,
        per_second: float,
        burst: int,
        concurrent: int,
        clock: Callable[[], float],
        most: int = MAX_RUNNING,
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._concurrent = concurrent
        self._clock = clock
        self._most = most
        self._running = 0
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    @contextmanager
    def entered(self, name: str) -> Iterator[Callable[[], None]]:
        """Count a call while the block runs.

        What it gives counts the call no more among those of all callers, for one that only its own caller holds up.

        Raises:
            TooManyError: the caller has had enough for now, or the gateway has.
        """
        if self._running >= self._most:
            raise TooManyError("OVERLOADED", "too many calls at once; nothing was begun", COME_BACK_SECONDS)
        bucket = self._refilled(name)
        if bucket.running >= self._concurrent:
            message = f"expected at most {self._concurrent} calls at a time"
            raise TooManyError("TOO_MANY_AT_ONCE", message, COME_BACK_SECONDS)
        if bucket.tokens < 1:
            message = "too many calls in a short time; nothing was begun"
            raise TooManyError("RATE_LIMITED", message, self._wait_in_line(bucket))
        bucket.tokens -= 1
        bucket.running += 1
        self._running += 1
        try:
            with ExitStack() as shared:
                shared.callback(self._leave)
                yield shared.close
        finally:
            bucket.running -= 1

    def _leave(self) -> None:
        self._running -= 1

    def _wait_in_line(self, bucket: _Bucket) -> float:
        """Return in how many seconds a refused call may come again: each at a moment of its own."""
        possible_at = bucket.at + (1 - bucket.tokens) / self._per_second
        told = max(possible_at, min(bucket.next_in_line, bucket.at + LONGEST_LINE_SECONDS))
        bucket.next_in_line = told + 1 / self._per_second
        return told - bucket.at

    def _refilled(self, name: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.pop(name, None)
        if bucket is None:
            bucket = _Bucket(self._burst, now)
            self._forget_idle()
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_second)
        bucket.at = now
        self._buckets[name] = bucket
        return bucket

    def _forget_idle(self) -> None:
        """Make room for another caller: whoever called least lately, and is not being answered, is forgotten."""
        if len(self._buckets) < MAX_CALLERS:
            return
        idle = next((name for name, bucket in self._buckets.items() if not bucket.running), None)
        if idle is not None:
            del self._buckets[idle]
