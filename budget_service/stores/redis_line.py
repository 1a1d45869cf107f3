"""A line to Redis on which many commands travel together.

Commands that come while the answers to others are awaited are sent at once when those are there: one system call, one
turn of Redis and, with `appendfsync always`, one wait for the disk for all of them. A lone one waits for nobody.
Whoever asked may be cancelled; what was sent is read to its end all the same, so that no answer is taken for another,
and what still waits is not sent.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any, TypeAlias

from redis.asyncio import BlockingConnectionPool
from redis.exceptions import ResponseError

from budget_service.stores.interface import OutcomeUnknownError, StoreError, StoreUnavailableError

MAX_SENT_AT_ONCE = 256

Asked: TypeAlias = tuple["asyncio.Future[Any]", tuple[str, ...]]


class Line:
    """Sends commands over connections of a pool; nothing is tried twice."""

    def __init__(self, pool: BlockingConnectionPool) -> None:
        self._pool = pool
        # In the order in which they came.
        self._waiting: dict[asyncio.Future[Any], tuple[str, ...]] = {}
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, *command: str) -> Any:
        """Return the answer to a command, or raise the ResponseError that it is.

        Raises StoreUnavailableError if the command was not sent, OutcomeUnknownError if it was not answered.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting[answer] = command
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        try:
            return await answer
        finally:
            # Whoever leaves before its turn leaves nothing behind.
            self._waiting.pop(answer, None)

    async def close(self) -> None:
        """Read the answers to what was sent."""
        if self._worker is not None:
            await self._worker

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch = list(islice(self._waiting.items(), MAX_SENT_AT_ONCE))
                for answer, _ in batch:
                    del self._waiting[answer]
                await self._exchange(batch)
        finally:
            self._worker = None

    async def _exchange(self, batch: list[Asked]) -> None:
        """Send commands and read their answers in turn, telling what was not sent from what was not answered."""
        try:
            connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        except Exception as error:
            _fail(batch, StoreUnavailableError, str(error))
            return
        try:
            packed = [part for _, command in batch for part in connection.pack_command(*command)]
            await connection.send_packed_command(packed)
            for answer, _ in batch:
                await _read(connection, answer)
        except Exception as error:
            await connection.disconnect()
            _fail(batch, OutcomeUnknownError, str(error))
        finally:
            await self._pool.release(connection)


async def _read(connection: Any, answer: asyncio.Future[Any]) -> None:
    try:
        found = await connection.read_response()
    except ResponseError as error:
        if not answer.done():
            answer.set_exception(error)
        return
    if not answer.done():
        answer.set_result(found)


def _fail(batch: list[Asked], kind: type[StoreError], message: str) -> None:
    for answer, _ in batch:
        # Some have their answer already, and a caller that was cancelled waits no more.
        if not answer.done():
            answer.set_exception(kind(message))
