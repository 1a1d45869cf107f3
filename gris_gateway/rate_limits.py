"""How much one caller may ask of the gateway at a time."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits

RETRY_SECONDS = 1.0
# The queue of refused callers is no longer than that: most of those who were given a time have gone.
LONGEST_QUEUE_SECONDS = 5.0


class TooManyError(Exception):
    """A caller asks too much; nothing was begun. `wait_milliseconds` says when a retry may succeed."""

    def __init__(self, reason: str, message: str, wait_seconds: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.wait_milliseconds = math.ceil(1000 * wait_seconds)


@dataclass
class _Bucket:
    """How many calls may begin at time `at`, when the next refused call may retry, and how many are under way."""

    tokens: float
    at: float
    next_retry_at: float = 0.0
    running: int = 0


class Limiter:
    """A token bucket and a count of running calls for each caller, and a count of all that run.

    Belongs to one event loop and never waits.

    Args:
        per_second: How many calls become possible each second.
        burst: The most calls that are possible at once.
        concurrent: The most calls of one caller that may be under way.
        clock: Returns seconds that never go back.
        limits: How many calls of all callers may be under way, and for how many callers rates are remembered.
    """

    def __init__(
        self,
        *,
        per_second: float,
        burst: int,
        concurrent: int,
        clock: Callable[[], float],
        limits: GatewayLimits = DEFAULT_LIMITS,
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._concurrent = concurrent
        self._clock = clock
        self._limits = limits
        self._running = 0
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    @contextmanager
    def entered(self, name: str) -> Iterator[Callable[[], None]]:
        """Count a call while the block runs.

        Yields:
            A function after which the call no longer counts among those of all callers: for one that only its own
            caller holds up.

        Raises:
            TooManyError: The caller is over its limits, or the gateway is.
        """
        if self._running >= self._limits.running_calls:
            raise TooManyError("OVERLOADED", "too many calls at once; nothing was begun", RETRY_SECONDS)
        bucket = self._refilled(name)
        if bucket.running >= self._concurrent:
            message = f"expected at most {self._concurrent} calls at a time"
            raise TooManyError("TOO_MANY_AT_ONCE", message, RETRY_SECONDS)
        if bucket.tokens < 1:
            message = "too many calls in a short time; nothing was begun"
            raise TooManyError("RATE_LIMITED", message, self._wait_seconds(bucket))
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

    def _wait_seconds(self, bucket: _Bucket) -> float:
        """Return in how many seconds a refused call may retry: each at a time of its own."""
        possible_at = bucket.at + (1 - bucket.tokens) / self._per_second
        retry_at = max(possible_at, min(bucket.next_retry_at, bucket.at + LONGEST_QUEUE_SECONDS))
        bucket.next_retry_at = retry_at + 1 / self._per_second
        return retry_at - bucket.at

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
        """Forget the caller who called longest ago and has no call under way, if there are too many."""
        if len(self._buckets) < self._limits.remembered_callers:
            return
        idle = next((name for name, bucket in self._buckets.items() if not bucket.running), None)
        if idle is not None:
            del self._buckets[idle]
