"""The engine's blocking calls, each in a thread, with the time-out of the engine and measured by step.

Equal queries on one version of the data share one call as long as it is under way. Nobody is shown what its answer
leads to before their own account has paid, and a release has noise of its own, so it makes no difference who began the
call. It goes on if they leave: a thread cannot be stopped, and others may have come for its answer. A call that still
waits for a thread is dropped when all have left who wanted it, so that nobody can fill the queue and go.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pinot_connector import telemetry
from pinot_connector.engines.base import Engine, EngineAnswer, EngineQuery
from pinot_connector.errors import EngineUnavailable
from pinot_connector.single_flight import SharedCalls

MAX_ENGINE_CALLS = 32

_Answer = TypeVar("_Answer")


class EngineCalls:
    """Calls of one engine, up to 32 at once. Use it in one event loop.

    Every method raises EngineUnavailable after `seconds`, and otherwise what the method of the engine raises. Who joins
    a call that is under way waits until the end of its time.
    """

    def __init__(self, engine: Engine, seconds: float) -> None:
        self._engine = engine
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(MAX_ENGINE_CALLS, "gris-engine")
        self._running: SharedCalls[EngineAnswer] = SharedCalls()
        self._confirming: SharedCalls[None] = SharedCalls()

    @property
    def engine(self) -> Engine:
        """The engine that is called."""
        return self._engine

    async def version(self, table: str) -> str:
        """Returns the version of a table's data."""
        return await self._called("version", lambda: self._engine.data_version(table))

    async def check(self, query: EngineQuery) -> None:
        """Returns if the data are what the query requires."""
        await self._called("check", lambda: self._engine.check(query))

    async def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Returns the answer of a query on one version of the data, which others may hold too: do not change it."""

        return await self._shared(
            self._running, (query, data_version), "run", lambda: self._engine.run(query, data_version)
        )

    async def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Returns if the answer was whole."""

        # All who hold this very answer had it before the call began, so the call confirms it for all of them.
        await self._shared(
            self._confirming, (query, id(answer)), "confirm", lambda: self._engine.confirm(query, answer)
        )

    def close(self) -> None:
        """Starts no call any more; those that run end by their own time-outs, and nobody waits for them."""
        self._running.cancel()
        self._confirming.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _shared(
        self, calls: SharedCalls[_Answer], key: Hashable, step: str, call: Callable[[], _Answer]
    ) -> _Answer:
        begun = threading.Event()

        def begin() -> _Answer:
            begun.set()
            return call()

        return await calls.joined(key, lambda: self._called(step, begin), begun.is_set)

    async def _called(self, step: str, call: Callable[[], _Answer]) -> _Answer:
        running = asyncio.get_running_loop().run_in_executor(self._threads, call)
        with telemetry.engine_call(self._engine.dialect, step):
            try:
                # Not asyncio.wait_for: before Python 3.12 it forgets a cancellation that comes with the answer.
                async with asyncio.timeout(self._seconds):
                    return await running
            except TimeoutError:
                raise EngineUnavailable("the engine took too long") from None
