"""Compares the clock of this machine with those of the members of etcd, which has no time of its own.

A member tells its time with every answer to `GET /version`, in whole seconds. If it said second T between `sent` and
`received` by this clock, it is ahead by more than T - received and by less than T + 1 - sent. Several answers, at other
moments of the second, narrow that down. A service whose clock differs from those of the majority refuses to serve; so
does one that does not know whether it does.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto

from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.stores.etcd.address import Address, Endpoint
from budget_service.stores.interface import Clock, StoreUnavailableError, StoreUnusableError

QUESTION_SECONDS = 1.0
# Not a second, so that each round asks at another moment of it; the first rounds soon tell the time exactly enough.
FIRST_PAUSE_SECONDS = 0.7
FIRST_ROUNDS = 12
PAUSE_SECONDS = 5.3
KEPT_SAMPLES = 8
# Between two rounds a clock that is set right moves by far less than this.
LARGEST_JUMP: Microseconds = SECOND // 4
MAX_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Sample:
    """A member's time in whole seconds, and between which times of this clock it was asked."""

    sent: Microseconds
    received: Microseconds
    second: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a member's clock is ahead of this one: between two times."""

    low: Microseconds
    high: Microseconds

    def are_within(self, skew: Microseconds) -> bool:
        """Return whether the clocks may differ by no more than `skew`."""
        return self.low <= skew and self.high >= -skew


class Verdict(Enum):
    """Whether this clock agrees with the majority."""

    AGREES = auto()
    DIFFERS = auto()
    NOT_KNOWN = auto()


def bounds_of(samples: Iterable[Sample]) -> Bounds | None:
    """Return what some samples of one member, oldest first, say together; None without any.

    Where they contradict each other a clock was set in between, and only the newest one counts.
    """
    each = [
        Bounds(one.second * SECOND - one.received, (one.second + 1) * SECOND - one.sent) for one in samples
    ]
    if not each:
        return None
    together = Bounds(max(one.low for one in each), min(one.high for one in each))
    return together if together.low <= together.high else each[-1]


def judge(bounds: Sequence[Bounds | None], skew: Microseconds) -> Verdict:
    """Return whether a clock agrees with the majority of members, one of `bounds` for each; None: not known."""
    majority = len(bounds) // 2 + 1
    near = sum(each is not None and each.are_within(skew) for each in bounds)
    far = sum(each is not None and not each.are_within(skew) for each in bounds)
    if near >= majority:
        return Verdict.AGREES
    return Verdict.DIFFERS if far >= majority else Verdict.NOT_KNOWN


class ClockGuard:
    """Compares a clock with those of the members until it is closed; `now` tells the time while they agree."""

    def __init__(self, address: Address, clock: Clock, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self._address = address
        self._tls = address.tls_context()
        self._clock = clock
        self._steady = steady
        self._samples: dict[Endpoint, deque[Sample]] = {
            each: deque(maxlen=KEPT_SAMPLES) for each in address.endpoints
        }
        # How far the clock is ahead of one that nobody sets.
        self._ahead = self._ahead_now()
        self._verdict = Verdict.NOT_KNOWN
        self._rounds = 0
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Compare once, and from then on. Raises StoreError if the clocks differ or cannot be compared."""
        await self._round()
        self.require_agreement()
        self._task = asyncio.create_task(self._compare())

    def now(self) -> Microseconds:
        """Return the time. Raises StoreUnavailableError if it cannot be relied on."""
        try:
            self.require_agreement()
        except StoreUnusableError as error:
            raise StoreUnavailableError(str(error)) from None
        return self._clock()

    def require_agreement(self) -> None:
        """Return if the clocks agree, else raise a StoreError with the reason."""
        if abs(self._ahead_now() - self._ahead) > LARGEST_JUMP:
            self._begin_anew()
        match self._verdict:
            case Verdict.DIFFERS:
                raise StoreUnusableError(
                    "the clock of this machine differs by more than "
                    f"{self._address.max_clock_skew / SECOND:g} seconds from those of most members of etcd: "
                    "set it right"
                )
            case Verdict.NOT_KNOWN:
                raise StoreUnavailableError(
                    "the clock of this machine could not be compared with those of most members of etcd"
                )

    async def close(self) -> None:
        """Stop comparing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _begin_anew(self) -> None:
        """Forget what was measured: the clock was set, and nothing of it holds any more."""
        self._ahead, self._verdict, self._rounds = self._ahead_now(), Verdict.NOT_KNOWN, 0
        for samples in self._samples.values():
            samples.clear()

    def _ahead_now(self) -> Microseconds:
        return self._clock() - self._steady() // 1000

    async def _compare(self) -> None:
        rested = 0.0
        while True:
            await asyncio.sleep(FIRST_PAUSE_SECONDS)
            rested += FIRST_PAUSE_SECONDS
            is_settled = self._rounds >= FIRST_ROUNDS and self._verdict is Verdict.AGREES
            if not is_settled or rested >= PAUSE_SECONDS:
                await self._round()
                rested = 0.0

    async def _round(self) -> None:
        answers = await asyncio.gather(*(self._ask(each) for each in self._address.endpoints))
        if abs(self._ahead_now() - self._ahead) > LARGEST_JUMP:
            self._begin_anew()
            return
        self._rounds += 1
        if sum(answers) > len(answers) // 2:
            # What a clock gains between two rounds is followed. While the majority tells nothing it adds up.
            self._ahead = self._ahead_now()
        bounds = [bounds_of(each) for each in self._samples.values()]
        self._verdict = judge(bounds, self._address.max_clock_skew)

    async def _ask(self, endpoint: Endpoint) -> bool:
        """Ask one member, and return whether it has answered."""
        with suppress(OSError, ValueError, TimeoutError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(QUESTION_SECONDS):
                self._samples[endpoint].append(await self._asked(endpoint))
                return True
        return False

    async def _asked(self, endpoint: Endpoint) -> Sample:
        host = endpoint.host.strip("[]")
        reader, writer = await asyncio.open_connection(
            host, endpoint.port, ssl=self._tls, limit=MAX_HEAD_BYTES
        )
        try:
            sent = self._clock()
            question = f"GET /version HTTP/1.1\r\nHost: {endpoint.target}\r\nConnection: close\r\n\r\n"
            writer.write(question.encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            return Sample(sent, self._clock(), second_of(head))
        finally:
            writer.transport.abort()


def second_of(head: str) -> int:
    """Return the time in the head of an answer by HTTP. Raises ValueError."""
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "date":
            return int(parsedate_to_datetime(value.strip()).timestamp())
    raise ValueError("no time in this answer")
