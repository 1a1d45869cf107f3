"""A pipelined connection to Redis.

Commands that arrive while answers to others are awaited are sent together after those: one system call, one turn of
Redis and, with `appendfsync always`, one wait for the disk for all of them. A caller may be cancelled: a command that
was sent is still read to its end, so that no answer is taken for another one; a command that still waits is not sent.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

from hiredis import pack_command
from redis.asyncio import BlockingConnectionPool
from redis.exceptions import RedisError, ResponseError

from budget_service.internal_errors import describe_error, log_internal_error
from budget_service.ledger.values import Account
from budget_service.stores.interface import (
    NOT_BEGUN,
    OUTCOME_NOT_KNOWN,
    OutcomeUnknownError,
    StoreError,
    StoreUnavailableError,
)
from budget_service.stores.redis.replication import COMMAND, Replication
from budget_service.stores.turns import Turns

# Few enough that the next ones are made while Redis works on these.
MAX_SENT_AT_ONCE = 64

_LOOK = pack_command(COMMAND)  # type: ignore[arg-type]

# What the service asks for itself has its turns too.
NOBODY = Account(("",))

Asked: TypeAlias = tuple["asyncio.Future[Any]", bytes]


class PipelinedConnection:
    """Sends commands over a connection of a pool; nothing is tried twice.

    The pool itself has no time-out for answers: commands that are sent together have `answer_seconds` together.
    """

    def __init__(
        self,
        pool: BlockingConnectionPool,
        *,
        connect_seconds: float,
        answer_seconds: float,
        replication: Replication,
    ) -> None:
        self._pool = pool
        self._replication = replication
        self._connect_seconds = connect_seconds
        self._answer_seconds = answer_seconds
        self._waiting: Turns[bytes] = Turns()
        self._worker: asyncio.Task[None] | None = None
        self._connection: Any = None

    async def ask(self, *command: str | bytes, account: Account = NOBODY) -> Any:
        """Return the answer to a command, or raise the ResponseError that it is; it is sent in an account's turn.

        Raises StoreUnavailableError if the command was not sent, OutcomeUnknownError if it was not answered.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        # The library's own way of writing a command is not the one of its parser, and takes ten times as long.
        self._waiting.add(account, answer, pack_command(command))  # type: ignore[arg-type]
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        try:
            return await answer
        finally:
            # A caller that leaves before its turn leaves nothing behind.
            self._waiting.drop(account, answer)

    async def close(self) -> None:
        """Read the answers to what was sent, and close the connection."""
        if self._worker is not None:
            await self._worker
        await self._pool.disconnect()

    async def _work(self) -> None:
        batch: list[Asked] = []
        try:
            while self._waiting:
                batch = self._waiting.take(MAX_SENT_AT_ONCE)
                await self._exchange(batch)
        except Exception as error:
            log_internal_error(error)
        finally:
            self._worker = None
            # Only an internal error leaves requests here: those being decided, and those still waiting.
            _fail(batch, OutcomeUnknownError, OUTCOME_NOT_KNOWN)
            _fail(self._waiting.take(len(self._waiting)), StoreUnavailableError, NOT_BEGUN)

    async def _exchange(self, batch: list[Asked]) -> None:
        """Send commands and read their answers in turn; commands not sent and not answered fail differently."""
        try:
            async with asyncio.timeout(self._connect_seconds):
                connection = await self._connected()
        except Exception as error:
            _fail(batch, StoreUnavailableError, _reason(error))
            return
        try:
            async with asyncio.timeout(self._answer_seconds):
                if self._replication.has_replicas:
                    await self._exchange_and_look(connection, batch)
                else:
                    await connection.send_packed_command([packed for _, packed in batch])
                    for answer, _ in batch:
                        await _read(connection, answer)
        except Exception as error:
            _fail(batch, OutcomeUnknownError, _reason(error))
            await self._hang_up(connection)
        except BaseException:
            await self._hang_up(connection)
            raise

    async def _connected(self) -> Any:
        """Return the connection, which is taken from the pool once: that costs as much as an exchange."""
        if self._connection is None:
            self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        else:
            await self._pool.ensure_connection(self._connection)
        return self._connection

    async def _exchange_and_look(self, connection: Any, batch: list[Asked]) -> None:
        """Send commands and read their answers, and look at the replication before any of them is passed on."""
        await connection.send_packed_command([*(packed for _, packed in batch), _LOOK])
        answers: list[asyncio.Future[Any]] = [asyncio.get_running_loop().create_future() for _ in batch]
        for answer in answers:
            await _read(connection, answer)
        self._replication.exchanged(await connection.read_response())
        for (waiting, _), answer in zip(batch, answers, strict=True):
            # Also the exception of one that nobody waits for any more is retrieved.
            error = answer.exception()
            if waiting.done():
                continue
            if error is None:
                waiting.set_result(answer.result())
            else:
                waiting.set_exception(error)

    async def _hang_up(self, connection: Any) -> None:
        """Close a connection on which answers may still come, so that none is taken for the answer to another."""
        try:
            await connection.disconnect()
        except Exception as error:
            log_internal_error(error)
            # Nor is one used again that cannot be closed.
            self._pool.reset()  # type: ignore[no-untyped-call]
            self._connection = None


async def _read(connection: Any, answer: asyncio.Future[Any]) -> None:
    try:
        found = await connection.read_response()
    except ResponseError as error:
        if not answer.done():
            answer.set_exception(error)
        return
    if not answer.done():
        answer.set_result(found)


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "Redis did not answer in time"
        case RedisError() | OSError():
            return str(error)
    return describe_error(error)


def _fail(batch: list[Asked], kind: type[StoreError], message: str) -> None:
    for answer, _ in batch:
        # Some have their answer already, and a caller that was cancelled waits no more.
        if not answer.done():
            answer.set_exception(kind(message))
