"""Whether the store answers: noticed within a fraction of the time that a single call may take.

A call that was sent to a store that hangs ends when its own time is over, with an unknown outcome. What can be known
sooner is that the store says nothing at all: then nothing new is sent to it, and whoever asks is told at once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from budget_service.stores.interface import Store, StoreError, StoreUnavailableError, StoreUnusableError

# The store is asked for a sign of life when calls have waited for a tick or two without any answer.
TICK_SECONDS = 0.04
SIGN_SECONDS = 0.06
CHECK_EVERY_SECONDS = 1.0
CHECK_SECONDS = 2.0


class Pulse:
    """Follows one store; `watch` and `check_again_and_again` do the work until they are cancelled.

    `changed` is set whenever `is_serving` may have changed.
    """

    def __init__(self, store: Store) -> None:
        self.changed = asyncio.Event()
        self._store = store
        self._is_silent = False
        # Why the last check was not passed; it is not passed before the first one.
        self._fault: StoreError | None = StoreUnavailableError("the store was not checked yet")
        self._waiting = 0
        self._answers = 0
        self._doubt = asyncio.Event()
        self._sign: asyncio.Task[None] | None = None

    @property
    def is_serving(self) -> bool:
        """Whether the store answers and passed its last check."""
        return not self._is_silent and self._fault is None

    def demand(self) -> None:
        """Return if a new call may be sent to the store, else raise StoreUnavailableError: nothing was sent."""
        if self._is_silent:
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
                self._note(is_silent=not await self._gives_a_sign())
                while self._is_silent:
                    await asyncio.sleep(TICK_SECONDS)
                    self._note(is_silent=not await self._gives_a_sign())
        finally:
            # More than once: redis-py loses a cancellation that comes while it takes a connection from its pool.
            while self._sign is not None and not self._sign.done():
                self._sign.cancel()
                await asyncio.wait((self._sign,), timeout=TICK_SECONDS)

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

    async def _gives_a_sign(self) -> bool:
        signed = await self._signed()
        # A connection may break while the store lives; the next one tells.
        return bool(await self._signed() if signed is False else signed)

    async def _signed(self) -> bool | None:
        """Return whether the store answered; None: not yet."""
        # One that is overdue is waited for again: it comes when a store that was held up goes on.
        self._sign = self._sign or asyncio.create_task(self._store.ping())
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.wait((self._sign,), timeout=SIGN_SECONDS)
        if loop.time() - began > 2 * SIGN_SECONDS:
            # This process was held up itself, and the answer may lie there unread.
            await asyncio.wait((self._sign,), timeout=SIGN_SECONDS)
        if not self._sign.done():
            return None
        sign, self._sign = self._sign, None
        return not sign.cancelled() and sign.exception() is None

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

    def _note(self, *, is_silent: bool) -> None:
        if is_silent != self._is_silent:
            self._is_silent = is_silent
            self.changed.set()
