"""Detects within a fraction of a call's time-out that the store does not answer.

A call to a store that hangs ends with its time-out and an unknown outcome. Heartbeats show sooner that the store is
silent:

    calls wait, and none is answered for a tick or two ──▶ a heartbeat is sent
    no answer to it for HEARTBEAT_STEPS ──▶ SILENT: new calls wait here, unsent
    silent for SILENCE_SECONDS, or not reachable ──▶ AWAY: new calls are refused at once
    an answer ──▶ ANSWERING

The health of the store shows a silence at once. The service itself becomes NOT_SERVING only when the store is away:
otherwise one slow write to a disk would take all replicas of the service away from their callers together.

Only time in which this process was punctual counts against the store. On a busy machine an answer may have arrived
without being read yet.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum, auto
from time import monotonic

from budget_service.internal_errors import describe_error, log_internal_error
from budget_service.stores.interface import (
    Store,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
)

# A heartbeat is sent when calls have waited for a tick or two without any answer. While none waits, nothing ticks.
TICK_SECONDS = 0.02
# Its answer is awaited in steps. A step that ends this much too late shows that this process was held up.
HEARTBEAT_STEPS = 3
STEP_SECONDS = 0.015
LATE_SECONDS = 0.01
SILENCE_SECONDS = 0.5
CHECK_EVERY_SECONDS = 1.0
CHECK_SECONDS = 2.0
# A problem that stays is logged again after so long.
LOG_AGAIN_SECONDS = 60.0

log = logging.getLogger(__name__)


class State(Enum):
    """What is known about a store; see the module."""

    ANSWERING = auto()
    SILENT = auto()
    AWAY = auto()


class FailureDetector:
    """Watches one store; `watch` and `keep_checking` run until they are cancelled.

    `changed` is set whenever `answers` or `is_serving` may have changed.
    """

    def __init__(self, store: Store) -> None:
        self.changed = asyncio.Event()
        self._store = store
        self._state = State.ANSWERING
        self._turned = asyncio.Event()
        # Why the last check failed. Before the first check it counts as failed.
        self._fault: StoreError | None = StoreUnavailableError("the store was not checked yet")
        # What was found to be damaged, by table; nobody repairs it while the service runs.
        self._damage: set[str] = set()
        self._is_damaged_everywhere = False
        self._waiting = 0
        self._answers = 0
        self._wanted = asyncio.Event()
        self._is_watching = False
        self._tick: asyncio.TimerHandle | None = None
        # Whether calls waited for the whole of the last tick.
        self._waited = False
        self._heartbeat: asyncio.Task[None] | None = None

    @property
    def answers(self) -> bool:
        """Whether the store answers now and passed its last check."""
        return self._state is State.ANSWERING and self._fault is None

    @property
    def is_serving(self) -> bool:
        """Whether the store is not away (it may be silent) and passed its last check."""
        return self._state is not State.AWAY and self._fault is None and not self._is_damaged_everywhere

    @property
    def is_sound(self) -> bool:
        """Whether no damage of the ledger was met since the start."""
        return not self._damage

    def damaged(self, error: StoreDamagedError) -> None:
        """Record that the store holds what cannot be read. If that concerns every account, no call is admitted."""
        self._is_damaged_everywhere = self._is_damaged_everywhere or error.is_everywhere
        if error.table not in self._damage:
            self._damage.add(error.table)
            fields = {"problem": str(error)}
            log.error("The ledger is damaged.", extra={"event": "ledger.damaged", "fields": fields})
        self.changed.set()

    async def admit(self) -> None:
        """Return when a new call may be sent to the store.

        Raises:
            StoreUnavailableError: The store is away or must not be used; nothing was sent.
        """
        while self._state is State.SILENT:
            await self._turned.wait()
        if self._state is State.AWAY:
            raise StoreUnavailableError("the store does not answer")
        if self._is_damaged_everywhere:
            raise StoreUnavailableError("the ledger is damaged")
        if isinstance(self._fault, StoreUnusableError):
            raise StoreUnavailableError(str(self._fault))

    async def reached(self) -> None:
        """Return when the last heartbeat found the store, or there was none: until then calls are refused."""
        while self._state is not State.ANSWERING:
            await self._turned.wait()

    def began(self) -> None:
        """Record that a call waits for the store."""
        self._waiting += 1
        if self._is_watching and self._tick is None:
            self._begin_tick()

    def ended(self) -> None:
        """Record that a call has ended."""
        self._waiting -= 1

    def answered(self) -> None:
        """Record that the store has answered a call."""
        self._answers += 1

    def request_heartbeat(self) -> None:
        """Have a heartbeat sent now, because a call has failed."""
        self._wanted.set()

    async def watch(self) -> None:
        """Send heartbeats whenever there is a reason to."""
        try:
            while True:
                await self._reason_for_heartbeat()
                await self._ping_until_answered()
        finally:
            # More than once: redis-py loses a cancellation that comes while it takes a connection from its pool.
            while self._heartbeat is not None and not self._heartbeat.done():
                self._heartbeat.cancel()
                await asyncio.wait((self._heartbeat,), timeout=TICK_SECONDS)

    async def keep_checking(self) -> None:
        """Run the store's own check once a second."""
        last = LastProblem()
        while True:
            self._fault = await self._found_fault()
            self.changed.set()
            problem = "" if self._fault is None else str(self._fault)
            if last.is_to_be_logged(problem):
                fields = {"problem": problem}
                log.error(
                    "A check of the store failed.", extra={"event": "store.check_failed", "fields": fields}
                )
            if isinstance(self._fault, StoreUnavailableError):
                self.request_heartbeat()
            await asyncio.sleep(CHECK_EVERY_SECONDS)

    async def _reason_for_heartbeat(self) -> None:
        self._is_watching, self._waited = True, False
        if self._waiting:
            self._begin_tick()
        try:
            await self._wanted.wait()
        finally:
            self._is_watching = False
            if self._tick is not None:
                self._tick.cancel()
                self._tick = None
        self._wanted.clear()

    def _begin_tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._tick = loop.call_later(TICK_SECONDS, self._tick_ended, self._answers)

    def _tick_ended(self, answers: int) -> None:
        self._tick = None
        is_quiet = self._waiting > 0 and answers == self._answers
        if is_quiet and self._waited:
            self._wanted.set()
            return
        self._waited = is_quiet
        if self._waiting:
            self._begin_tick()

    async def _ping_until_answered(self) -> None:
        silence_left = SILENCE_SECONDS
        while not (heartbeat := await self._is_reachable()):
            silence_left -= HEARTBEAT_STEPS * STEP_SECONDS + TICK_SECONDS
            is_away = heartbeat is False or silence_left <= 0 or self._state is State.AWAY
            self._turn(State.AWAY if is_away else State.SILENT)
            await asyncio.sleep(TICK_SECONDS)
        self._turn(State.ANSWERING)

    async def _is_reachable(self) -> bool | None:
        reachable = await self._heartbeat_in_time()
        # A connection may break while the store is alive; a second heartbeat shows that.
        return await self._heartbeat_in_time() if reachable is False else reachable

    async def _heartbeat_in_time(self) -> bool | None:
        """Return whether the store can be reached; None: no answer in time."""
        # An overdue heartbeat is awaited again: its answer comes when a store that was held up goes on.
        self._heartbeat = self._heartbeat or asyncio.create_task(self._store.ping())
        await _wait_fairly(self._heartbeat, HEARTBEAT_STEPS)
        if not self._heartbeat.done():
            return None
        heartbeat, self._heartbeat = self._heartbeat, None
        return not heartbeat.cancelled() and heartbeat.exception() is None

    async def _found_fault(self) -> StoreError | None:
        try:
            # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the result.
            async with asyncio.timeout(CHECK_SECONDS):
                await self._store.check()
        except StoreError as error:
            return error
        except TimeoutError:
            return StoreUnavailableError("the store does not answer")
        except Exception as error:
            # Otherwise the checks would end here, and the last one would count for ever.
            log_internal_error(error)
            return StoreUnavailableError(describe_error(error))
        return None

    def _turn(self, state: State) -> None:
        if state is not self._state:
            self._state = state
            self.changed.set()
            # Waiting calls see the new state; later ones wait for the next change.
            turned, self._turned = self._turned, asyncio.Event()
            turned.set()


class LastProblem:
    """The problem that was logged last, so that it is logged once, and again while it stays."""

    def __init__(self) -> None:
        self._logged = ("", 0.0)

    def is_to_be_logged(self, problem: str) -> bool:
        """Return whether a problem was not logged within LOG_AGAIN_SECONDS; an empty one is that there is none."""
        last, since = self._logged
        if problem == last and monotonic() - since < LOG_AGAIN_SECONDS:
            return False
        self._logged = (problem, monotonic())
        return bool(problem)


async def _wait_fairly(task: asyncio.Task[None], steps: int) -> None:
    """Wait until a task is done or `steps` have passed; a step that this process was late with does not count."""
    clock = asyncio.get_running_loop().time
    while steps and not task.done():
        began = clock()
        await asyncio.wait((task,), timeout=STEP_SECONDS)
        if clock() - began < STEP_SECONDS + LATE_SECONDS:
            steps -= 1
