"""A circuit breaker: while budget_service does not answer, questions are refused at once.

    closed ── a call gets no answer while no other call does, or the service is silent ──▶ open
    open ── after REST_SECONDS the next call tries ──▶ answered: closed; not answered: open again

If one of several replicas dies in the middle of a call while others answer, only that call is refused.

An open circuit breaker refuses questions, so it fails closed. It never guards a charge: whether a charge was recorded
must be found out, however long the service takes to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from pinot_connector.endpoints import silent
from pinot_connector.errors import OutcomeUnknown, ServiceUnavailable
from pinot_connector.rpc_errors import Service

REST_SECONDS = 0.5

# The silence is divided into six intervals. Two heartbeats may fail, each after an interval of waiting and one for the
# answer: a message may be lost or late, and the store may be slow once. The fifth is for a service that dies just after
# an answer, the sixth for the time that it needs to notice that its store is silent.
INTERVALS = 6
LOST_HEARTBEATS = 2
# Before the first answer, a name has to be resolved and connections made, which takes several messages.
FIRST_CONTACT = 5

_Answer = TypeVar("_Answer")


class CircuitBreaker:
    """Guards the calls of one client to one service, within one event loop.

    Args:
        is_alive: asks the service whether it and its store are alive, and waits so many seconds for the answer.
        address: where the service is, for errors.
        silence_seconds: how long the service may answer neither calls nor heartbeats. A call may take longer as long
            as heartbeats are answered. Before the first answer, it may take FIRST_CONTACT times as long.
    """

    def __init__(
        self, is_alive: Callable[[float], Awaitable[bool]], address: str, silence_seconds: float
    ) -> None:
        self._is_alive = is_alive
        self._address = address
        self._interval_seconds = silence_seconds / INTERVALS
        self._opened_at: float | None = None
        self._trying = False
        self._answers = 0

    def heard(self) -> None:
        """Notes that the service has answered."""
        self._answers += 1
        self._opened_at = None

    async def guarded(self, call: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """Returns what `call` returns, unless the circuit breaker is open or opens.

        Args:
            call: sends a request; an effect whose answer is lost must end by itself.

        Raises:
            ServiceUnavailable: there is no answer.
        """
        is_trial = self._enter()
        answers = self._answers
        try:
            return await self._while_alive(call)
        except OutcomeUnknown:
            self._open_unless_heard_since(answers)
            raise self._silent() from None
        except ServiceUnavailable:
            self._open_unless_heard_since(answers)
            raise
        finally:
            if is_trial:
                self._trying = False

    def _enter(self) -> bool:
        """Returns whether this call is the one that tries an open circuit breaker."""
        if self._opened_at is None:
            return False
        if self._trying or _now() < self._opened_at + REST_SECONDS:
            raise self._silent()
        self._trying = True
        return True

    def _silent(self) -> ServiceUnavailable:
        return ServiceUnavailable(Service.BUDGET, silent(self._address))

    def _open_unless_heard_since(self, answers: int) -> None:
        if answers == self._answers:
            self._opened_at = _now()

    async def _while_alive(self, call: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        loop = asyncio.get_running_loop()
        silent = asyncio.timeout(None)
        watching: asyncio.Task[None] | None = None

        def watch(answers: int) -> None:
            # Most calls are answered before, so that they need no task that watches them.
            nonlocal watching
            watching = asyncio.create_task(self._silence(answers))
            watching.add_done_callback(ended)

        def ended(task: asyncio.Task[None]) -> None:
            if not (task.cancelled() or has_returned):
                silent.reschedule(loop.time())

        has_returned = False
        waiting = loop.call_later(self._seconds(), watch, self._answers)
        try:
            async with silent:
                try:
                    return await call()
                finally:
                    has_returned = True
        except TimeoutError:
            if watching is None or not silent.expired():
                raise
            watching.result()
            raise self._silent() from None
        finally:
            waiting.cancel()
            if watching is not None and not watching.done():
                watching.cancel()
                await asyncio.wait((watching,))

    def _seconds(self) -> float:
        return self._interval_seconds * (1 if self._answers else FIRST_CONTACT)

    async def _silence(self, answers: int) -> None:
        """Returns once the service has been silent for too long; delays of this event loop itself do not count.

        Args:
            answers: how many answers there were before the interval that has just ended.
        """
        lost = 0
        while True:
            if answers != self._answers:
                lost = 0
            elif await self._is_alive(self._seconds()):
                self._answers += 1
                lost = 0
            else:
                lost += 1
            if lost == LOST_HEARTBEATS:
                return
            answers = self._answers
            await asyncio.sleep(self._seconds())


def _now() -> float:
    return asyncio.get_running_loop().time()
