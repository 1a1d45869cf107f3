"""How much one caller may ask of the gateway at a time, and in which order calls that come too fast wait.

A call has two parts. It *arrives*: it is identified, read, and looked up. Then it takes its *turn*: what needs the
ledger or the engine is done. An answer that is given from what is kept never takes a turn, so it neither waits for
others nor counts against the rate.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits
from pinot_connector.errors import ErrorCode, GrisError

RETRY_SECONDS = 1.0
# The queue of refused callers is no longer than that: most of those who were given a time have gone.
LONGEST_QUEUE_SECONDS = 5.0


class TooManyError(GrisError):
    """A caller asks too much; nothing was begun. `wait_milliseconds` says when a retry may succeed."""

    code: ClassVar[ErrorCode] = ErrorCode.UNAVAILABLE

    def __init__(self, reason: str, message: str, wait_seconds: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.wait_milliseconds = math.ceil(1000 * wait_seconds)


@dataclass(frozen=True)
class CallerLimits:
    """The limits of one caller.

    Attributes:
        per_second: How many calls become possible each second.
        burst: The most calls that are possible at once.
        concurrent: The most calls that may arrive, and the most that may have their turn.
        waiting: The most calls that may wait, for either or because of the rate; further ones are refused.
    """

    per_second: float
    burst: int
    concurrent: int
    waiting: int


@dataclass
class _Bucket:
    """The calls of one caller.

    `tokens` may begin at time `at`; less than none are there if calls wait for theirs. `next_retry_at` is when the next
    refused call may retry.
    """

    tokens: float
    at: float
    arriving: asyncio.Semaphore
    running: asyncio.Semaphore
    next_retry_at: float = 0.0
    open: int = 0
    waiting: int = 0


@dataclass
class _Place:
    """A place among those that a semaphore counts; it is taken once, and given back once."""

    semaphore: asyncio.Semaphore
    is_taken: bool = False

    @property
    def is_free(self) -> bool:
        """Whether taking it needs no waiting."""
        return self.is_taken or not self.semaphore.locked()

    async def take(self) -> None:
        """Take the place, in the order in which it is asked for."""
        if not self.is_taken:
            await self.semaphore.acquire()
            self.is_taken = True

    def give_back(self) -> None:
        """Give the place to the call that waits first."""
        if self.is_taken:
            self.is_taken = False
            self.semaphore.release()


@dataclass
class AdmittedCall:
    """One call within the limits.

    Attributes:
        has_turn: Whether it takes, or waits for, a turn: then it counts against the rate.
    """

    _limiter: Limiter
    _bucket: _Bucket
    _shared: _Place
    _arriving: _Place = field(init=False)
    _running: _Place = field(init=False)
    has_turn: bool = False

    def __post_init__(self) -> None:
        self._arriving, self._running = _Place(self._bucket.arriving), _Place(self._bucket.running)

    async def arrive(self, pause_seconds: float) -> None:
        """Wait until the call may be read: for its token, and for a place among those that arrive.

        Raises:
            TooManyError: Too many wait already.
        """
        if not pause_seconds and self._arriving.is_free and self._shared.is_free:
            await self._arriving.take()
            await self._shared.take()
            return
        with self._limiter.waiting(self._bucket):
            await asyncio.sleep(pause_seconds)
            await self._arriving.take()
            await self._shared.take()

    async def turn(self, request_bytes: int = 0) -> None:
        """Wait for the call's turn, which it then has until it ends; nothing of its work may begin before.

        The order is that in which calls ask for it. The call's own deadline ends the waiting.

        Args:
            request_bytes: The size of the request, which is held while it waits.

        Raises:
            TooManyError: Too many wait already, or the request is too large to wait.
        """
        if self.has_turn:
            return
        self.has_turn = True
        if self._running.is_free:
            await self._running.take()
            self._arriving.give_back()
            return
        self._limiter.require_small(request_bytes)
        with self._limiter.waiting(self._bucket):
            # What waits is small, so others may arrive.
            self._arriving.give_back()
            self._shared.give_back()
            await self._running.take()
            await self._shared.take()

    def stop_counting(self) -> None:
        """Stop counting among the calls of all callers: for a call that only its own caller holds up."""
        self._shared.give_back()

    def end(self) -> None:
        """Give back everything."""
        for place in (self._arriving, self._running, self._shared):
            place.give_back()


class Limiter:
    """Bounds the calls of each caller, and those of all callers together. Belongs to one event loop.

    Args:
        own: The limits of each caller.
        clock: Returns seconds that never go back.
        limits: How many calls of all callers may be under way or wait, and for how many callers rates are remembered.
    """

    def __init__(
        self, own: CallerLimits, *, clock: Callable[[], float], limits: GatewayLimits = DEFAULT_LIMITS
    ) -> None:
        self._own = own
        self._clock = clock
        self._limits = limits
        self._shared = asyncio.Semaphore(limits.running_calls)
        self._waiting = 0
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    @asynccontextmanager
    async def entered(self, name: str, seconds_left: float | None = None) -> AsyncIterator[AdmittedCall]:
        """Let a call arrive, and count it while the block runs.

        A call that ends well without a turn was answered from what is kept, and gets its token back.

        Args:
            name: The caller.
            seconds_left: Until the deadline of the call; None: it has none.

        Raises:
            TooManyError: The caller is over its limits, or the gateway is.
        """
        if self._shared.locked():
            raise _overloaded()
        bucket = self._refilled(name)
        pause_seconds = self._pause_seconds(bucket, seconds_left)
        bucket.tokens -= 1
        bucket.open += 1
        call = AdmittedCall(self, bucket, _Place(self._shared))
        try:
            await self._arrived(call, pause_seconds)
            yield call
            if not call.has_turn:
                self._return_token(bucket)
        finally:
            call.end()
            bucket.open -= 1

    @contextmanager
    def waiting(self, bucket: _Bucket) -> Iterator[None]:
        """Count a call among those that wait.

        Raises:
            TooManyError: Too many of this caller, or of all, wait already.
        """
        if bucket.waiting >= self._own.waiting:
            raise self._too_many()
        if self._waiting >= self._limits.waiting_calls:
            raise _overloaded()
        bucket.waiting += 1
        self._waiting += 1
        try:
            yield
        finally:
            bucket.waiting -= 1
            self._waiting -= 1

    def require_small(self, request_bytes: int) -> None:
        """Refuse a request that is too large to be held while it waits.

        Raises:
            TooManyError: It is.
        """
        most = self._limits.waiting_request_bytes
        if request_bytes > most:
            message = (
                f"at most {self._own.concurrent} calls at a time; a request over {most} bytes does not wait"
            )
            raise TooManyError("TOO_MANY_AT_ONCE", message, RETRY_SECONDS)

    async def _arrived(self, call: AdmittedCall, pause_seconds: float) -> None:
        try:
            await call.arrive(pause_seconds)
        except BaseException:
            # Nothing was begun.
            self._return_token(call._bucket)
            raise

    def _pause_seconds(self, bucket: _Bucket, seconds_left: float | None) -> float:
        """Return how long a call waits for its token.

        Raises:
            TooManyError: Longer than it may.
        """
        if bucket.tokens >= 1:
            return 0.0
        pause = (1 - bucket.tokens) / self._own.per_second
        if bucket.waiting >= self._own.waiting or (seconds_left is not None and pause > seconds_left):
            message = "too many calls in a short time; nothing was begun"
            raise TooManyError("RATE_LIMITED", message, self._wait_seconds(bucket))
        return pause

    def _wait_seconds(self, bucket: _Bucket) -> float:
        """Return in how many seconds a refused call may retry: each at a time of its own."""
        possible_at = bucket.at + (1 - bucket.tokens) / self._own.per_second
        retry_at = max(possible_at, min(bucket.next_retry_at, bucket.at + LONGEST_QUEUE_SECONDS))
        bucket.next_retry_at = retry_at + 1 / self._own.per_second
        return retry_at - bucket.at

    def _return_token(self, bucket: _Bucket) -> None:
        bucket.tokens = min(self._own.burst, bucket.tokens + 1)

    def _too_many(self) -> TooManyError:
        own = self._own
        message = f"expected at most {own.concurrent} calls at a time and {own.waiting} that wait"
        return TooManyError("TOO_MANY_AT_ONCE", message, RETRY_SECONDS)

    def _refilled(self, name: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.pop(name, None)
        if bucket is None:
            concurrent = self._own.concurrent
            bucket = _Bucket(
                self._own.burst, now, asyncio.Semaphore(concurrent), asyncio.Semaphore(concurrent)
            )
            self._forget_idle()
        bucket.tokens = min(self._own.burst, bucket.tokens + (now - bucket.at) * self._own.per_second)
        bucket.at = now
        self._buckets[name] = bucket
        return bucket

    def _forget_idle(self) -> None:
        """Forget the caller who called longest ago and has no call open, if there are too many."""
        if len(self._buckets) < self._limits.remembered_callers:
            return
        idle = next((name for name, bucket in self._buckets.items() if not bucket.open), None)
        if idle is not None:
            del self._buckets[idle]


def _overloaded() -> TooManyError:
    return TooManyError("OVERLOADED", "too many calls at once; nothing was begun", RETRY_SECONDS)
