"""A circuit: while budget_service does not answer, nothing new is begun, and whoever asks is told so at once.

    closed ── a call ends without an answer while nobody else is answered, or the service says nothing ──▶ open
    open ── after REST_SECONDS the next call tries ──▶ answered: closed; not answered: open again

Of several replicas one may die in the middle of a call: as long as others answer, only that call is refused.

An open circuit refuses, so it fails closed. It never stands before a charge: what may have been written already must
be found out, however long the service takes to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from pinot_connector.errors import OutcomeUnknown, ServiceUnavailable
from pinot_connector.rpc_errors import Service

REST_SECONDS = 0.5

# Twice a part to wait, and a part for the service to say that it lives: a single message may be lost or late, and its
# store may be slow once. The fifth is for a service that dies just after it said something, the sixth for the time that
# it takes itself to notice that its store says nothing.
PARTS = 6
LOST_HEARTBEATS = 2
# Before anything was ever heard a name has to be looked up and connections made, which takes several messages.
FIRST_CONTACT = 5

_Answer = TypeVar("_Answer")


class CircuitBreaker:
    """Guards the calls of one client to one service, within one event loop.

    Args:
        lives: asks the service whether it and its store live, and waits so many seconds for the answer.
        silence_seconds: how long the service may say nothing, not even that it lives. A call that takes longer than
            that is no reason to give it up. As long as it was never heard, it may take FIRST_CONTACT times as long.
    """

    def __init__(self, lives: Callable[[float], Awaitable[bool]], silence_seconds: float) -> None:
        self._lives = lives
        self._part_seconds = silence_seconds / PARTS
        self._opened_at: float | None = None
        self._trying = False
        self._answers = 0

    def heard(self) -> None:
        """Notes that the service has answered something."""
        self._answers += 1
        self._opened_at = None

    async def guarded(self, call: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """Returns what `call` returns, unless the circuit is open or opens.

        Raises:
            ServiceUnavailable: there is no answer; where `call` may have had an effect, it is one that ends by itself.
        """
        is_trial = self._enter()
        answers = self._answers
        try:
            return await self._while_it_lives(call)
        except OutcomeUnknown:
            self._open_unless_heard_since(answers)
            raise ServiceUnavailable(Service.BUDGET, "no answer") from None
        except ServiceUnavailable:
            self._open_unless_heard_since(answers)
            raise
        finally:
            if is_trial:
                self._trying = False

    def _enter(self) -> bool:
        """Returns whether this call is the one that tries an open circuit."""
        if self._opened_at is None:
            return False
        if self._trying or _now() < self._opened_at + REST_SECONDS:
            raise ServiceUnavailable(Service.BUDGET, "it did not answer a moment ago")
        self._trying = True
        return True

    def _open_unless_heard_since(self, answers: int) -> None:
        if answers == self._answers:
            self._opened_at = _now()

    async def _while_it_lives(self, call: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        calling = asyncio.create_task(call())
        watching = asyncio.create_task(self._silence())
        try:
            await asyncio.wait((calling, watching), return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                watching.result()
                raise ServiceUnavailable(Service.BUDGET, "it does not answer")
            return calling.result()
        finally:
            for task in (calling, watching):
                task.cancel()
            await asyncio.gather(calling, watching, return_exceptions=True)

    async def _silence(self) -> None:
        """Returns once the service has said nothing for a while. A loop that was held up itself accuses nobody."""
        lost = 0
        while lost < LOST_HEARTBEATS:
            answers = self._answers
            seconds = self._part_seconds * (1 if answers else FIRST_CONTACT)
            await asyncio.sleep(seconds)
            if answers != self._answers:
                lost = 0
            elif await self._lives(seconds):
                self._answers += 1
                lost = 0
            else:
                lost += 1


def _now() -> float:
    return asyncio.get_running_loop().time()
