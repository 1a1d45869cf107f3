"""Whether the store answers: noticed within a fraction of the time that a single call may take.

A call that was sent to a store that hangs ends when its own time is over, with an unknown outcome. What can be known
sooner is that the store says nothing at all:

    a call waits, and nothing is answered for a moment ──▶ the store is asked for a sign of life
    no sign for SIGN_STEPS ──▶ SILENT: new calls wait here, unsent
    silent for PATIENCE_SECONDS, or it cannot be reached ──▶ AWAY: new calls are refused at once
    a sign ──▶ ANSWERING

Whoever asks for the store's health is told of a silence at once. That the service cannot serve is said only of a store
that is away: one slow write to a disk would otherwise take every replica of the service from its callers together.

Only time in which this process was punctual counts against the store: on a busy machine an answer may have come and not
be read yet.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import Enum, auto

from budget_service.stores.interface import Store, StoreError, StoreUnavailableError, StoreUnusableError

# The store is asked for a sign of life when calls have waited for a tick or two without any answer.
TICK_SECONDS = 0.02
# Then the sign is waited for in steps. One that ends so much too late shows that this process was held up.
HEARTBEAT_STEPS = 3
STEP_SECONDS = 0.015
LATE_SECONDS = 0.01
SILENCE_SECONDS = 0.5
CHECK_EVERY_SECONDS = 1.0
CHECK_SECONDS = 2.0


class State(Enum):
    """What is known of a store; see above."""

    ANSWERING = auto()
    SILENT = auto()
    AWAY = auto()


class FailureDetector:
    """Follows one store; `watch` and `check_again_and_again` do the work until they are cancelled.

    `changed` is set whenever `answers` or `is_serving` may have changed.
    """

    def __init__(self, store: Store) -> None:
        self.changed = asyncio.Event()
        self._store = store
        self._state = State.ANSWERING
        self._turned = asyncio.Event()
        # Why the last check was not passed; it is not passed before the first one.
        self._fault: StoreError | None = StoreUnavailableError("the store was not checked yet")
        self._waiting = 0
        self._answers = 0
        self._doubt = asyncio.Event()
        self._heartbeat: asyncio.Task[None] | None = None

    @property
    def answers(self) -> bool:
        """Whether the store answers at this moment and passed its last check."""
        return self._state is State.ANSWERING and self._fault is None

    @property
    def is_serving(self) -> bool:
        """Whether the store is there, though it may be silent for the moment, and passed its last check."""
        return self._state is not State.AWAY and self._fault is None

    async def admit(self) -> None:
        """Return when a new call may be sent to the store, else raise StoreUnavailableError: nothing was sent."""
        while self._state is State.SILENT:
            await self._turned.wait()
        if self._state is State.AWAY:
            raise StoreUnavailableError("the store does not answer")
        if isinstance(self._fault, StoreUnusableError):
            raise StoreUnavailableError(str(self._fault))

    def began(self) -> None:
        """Note that a call waits for the store."""
        self._waiting += 1

    def ended(self) -> None:
        """Note that it waits no more."""
        self._waiting -= 1

    def heard(self) -> None:
        """Note that the store has answered something."""
        self._answers += 1

    def doubted(self) -> None:
        """Note that the store could not do something: it is asked for a sign of life now."""
        self._doubt.set()

    async def watch(self) -> None:
        """Ask for a sign of life whenever there is reason to."""
        try:
            while True:
                await self._reason_to_ask()
                await self._ask_until_it_answers()
        finally:
            # More than once: redis-py loses a cancellation that comes while it takes a connection from its pool.
            while self._heartbeat is not None and not self._heartbeat.done():
                self._heartbeat.cancel()
                await asyncio.wait((self._heartbeat,), timeout=TICK_SECONDS)

    async def check_again_and_again(self) -> None:
        """Check all that the store promises, once a second."""
        while True:
            self._fault = await self._found_fault()
            self.changed.set()
            if isinstance(self._fault, StoreUnavailableError):
                self.doubted()
            await asyncio.sleep(CHECK_EVERY_SECONDS)

    async def _reason_to_ask(self) -> None:
        waited = False
        while not self._doubt.is_set():
            answers = self._answers
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._doubt.wait()
            is_quiet = self._waiting > 0 and answers == self._answers
            if is_quiet and waited:
                return
            waited = is_quiet
        self._doubt.clear()

    async def _ask_until_it_answers(self) -> None:
        silence_left = SILENCE_SECONDS
        while not (heartbeat := await self._heartbeat_or_refusal()):
            silence_left -= HEARTBEAT_STEPS * STEP_SECONDS + TICK_SECONDS
            is_away = heartbeat is False or silence_left <= 0 or self._state is State.AWAY
            self._turn(State.AWAY if is_away else State.SILENT)
            await asyncio.sleep(TICK_SECONDS)
        self._turn(State.ANSWERING)

    async def _heartbeat_or_refusal(self) -> bool | None:
        signed = await self._heard_heartbeat()
        # A connection may break while the store lives; the next one tells.
        return await self._heard_heartbeat() if signed is False else signed

    async def _heard_heartbeat(self) -> bool | None:
        """Return whether the store can be reached; None: it says nothing."""
        # A sign that is overdue is waited for again: it comes when a store that was held up goes on.
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
        return None

    def _turn(self, state: State) -> None:
        if state is not self._state:
            self._state = state
            self.changed.set()
            # Those who wait see the new state; whoever comes later waits for the next turn.
            turned, self._turned = self._turned, asyncio.Event()
            turned.set()


async def _wait_fairly(task: asyncio.Task[None], steps: int) -> None:
    """Wait until a task is done, or for so many steps; one that this process was late with does not count."""
    clock = asyncio.get_running_loop().time
    while steps and not task.done():
        began = clock()
        await asyncio.wait((task,), timeout=STEP_SECONDS)
        if clock() - began < STEP_SECONDS + LATE_SECONDS:
            steps -= 1
