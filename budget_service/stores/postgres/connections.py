"""The connections to PostgreSQL: their number, the time-out of an answer, and what its absence means.

A caller that finds no idle connection opens one, and gets an error at once if that fails. (A pool that connects in the
background keeps callers waiting for a server that is gone, and later for its next attempt.)
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from budget_service.stores.interface import (
    OutcomeUnknownError,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
)
from budget_service.stores.postgres.address import Address
from budget_service.stores.postgres.round_trip import Statement, Values, round_trip

MAX_CONNECTIONS = 16
# Each one is a process of the server, and many that start at once are slower than one after the other.
MAX_CONNECTING = 4
BUSY_TIMEOUT_SECONDS = 1.0
CANCEL_AGAIN_SECONDS = 0.05
# A statement that breaks a rule of the tables is a fault of this program, not of the server.
FAULTS = (psycopg.DataError, psycopg.IntegrityError)


# Somebody else was quicker: the transaction was rolled back, and may be begun again.
OTHERS_WERE_QUICKER = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
_AT_REST = (TransactionStatus.IDLE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Session:
    """A connection in autocommit mode: outside of BEGIN and COMMIT each statement is a transaction."""

    def __init__(self, connection: AsyncConnection[Any], answer_seconds: float) -> None:
        self._answer_seconds = answer_seconds
        self.connection = connection
        self._warnings: list[Diagnostic] = []
        self._prepared: set[bytes] = set()
        connection.add_notice_handler(self._note)

    @property
    def is_idle(self) -> bool:
        """Return whether the connection can be used for another transaction."""
        return self.connection.pgconn.transaction_status == TransactionStatus.IDLE

    @property
    def was_ended(self) -> bool:
        """Return whether the server has sent something that nobody asked for: most likely that it hangs up."""
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def rows(self, query: sql.SQL | sql.Composed, *parameters: Any) -> list[Any]:
        """Return the rows of a statement.

        Raises StoreUnavailableError or one of FAULTS if the server refused it and nothing was changed, or
        OutcomeUnknownError.
        """
        with self._reported():
            cursor = await self.connection.execute(query, parameters, prepare=True)
            return await cursor.fetchall()

    async def together(self, *statements: tuple[Statement, Values]) -> list[PGresult]:
        """Send statements in one round trip and return what each has found. None is run after one that fails.

        Raises as `rows` does, and one of OTHERS_WERE_QUICKER.
        """
        with self._reported():
            return await self.connection.wait(round_trip(self.connection.pgconn, self._prepared, statements))

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Say what a failure of the block means, or a warning in it."""
        self._warnings.clear()
        try:
            with self.given(self._answer_seconds):
                yield
        except (*FAULTS, *OTHERS_WERE_QUICKER):
            raise
        except psycopg.Error as error:
            raise self._failure(error) from None
        if self._warnings:
            # It has stopped waiting for a standby, and the commit is only its own: a fail-over would lose it.
            raise OutcomeUnknownError(
                "PostgreSQL answered with a warning, so that a fail-over may lose the change"
            )

    @contextmanager
    def given(self, seconds: float) -> Iterator[None]:
        """Hang up if the block takes longer, so that what waits in it raises psycopg.OperationalError."""
        # A cancelled wait would have psycopg ask the silent server to cancel, and wait for that.
        timer = asyncio.get_running_loop().call_later(seconds, self._hang_up)
        try:
            yield
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Hang up."""
        await self.connection.close()

    def _failure(self, error: psycopg.Error) -> StoreUnavailableError | OutcomeUnknownError:
        # The server's message may quote a row, so only its code is reported.
        said = f"{type(error).__name__} ({error.sqlstate})"
        if isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
            return StoreUnavailableError("this service was held up, and PostgreSQL has let others go on")
        if error.sqlstate is not None and self.connection.pgconn.transaction_status in _AT_REST:
            return StoreUnavailableError(f"PostgreSQL refused: {said}")
        return OutcomeUnknownError(f"PostgreSQL hung up or gave no answer: {type(error).__name__}")

    def _note(self, notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warnings.append(notice)

    def _hang_up(self) -> None:
        # The connection may have ended by itself meanwhile.
        with (
            suppress(OSError, psycopg.OperationalError),
            socket.fromfd(self.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as other,
        ):
            other.shutdown(socket.SHUT_RDWR)


class Connections:
    """At most `most` sessions, the last one used first; each has passed `prove` before it is used."""

    def __init__(
        self,
        address: Address,
        prove: Callable[[Session], Awaitable[None]],
        most: int,
        answer_seconds: float,
    ) -> None:
        self._answer_seconds = answer_seconds
        self._address = address
        self._prove = prove
        self._free = asyncio.Semaphore(most)
        self._connecting = asyncio.Semaphore(MAX_CONNECTING)
        self._idle: list[Session] = []

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Lend a session. Raises StoreUnavailableError, or StoreUnusableError if a new session does not pass."""
        await self._acquire_slot()
        try:
            session = self._take_idle() or await self._connect()
            try:
                yield session
            except OutcomeUnknownError:
                # The others may be as silent; a new connection finds out soon.
                await self.close()
                raise
            finally:
                await self._give_back(session)
        finally:
            self._free.release()

    async def close(self) -> None:
        """Close every session that is not in use."""
        while self._idle:
            await self._idle.pop().close()

    async def _connect(self) -> Session:
        """Return a session with the first host that can be reached and passes."""
        errors: list[StoreError] = []
        for conninfo in self._address.conninfos:
            try:
                return await self._proven(conninfo)
            except StoreError as error:
                errors.append(error)
        # Waiting does not help where a host must not be used.
        raise next((each for each in errors if isinstance(each, StoreUnusableError)), errors[-1])

    async def _proven(self, conninfo: str) -> Session:
        async with self._connecting:
            session = Session(await self._connection_to(conninfo), self._answer_seconds)
        try:
            with session.given(self._address.connect_timeout_seconds):
                await self._prove(session)
        except BaseException as error:
            await session.close()
            if isinstance(error, OutcomeUnknownError):
                raise StoreUnavailableError(str(error)) from None
            raise
        return session

    async def _acquire_slot(self) -> None:
        try:
            async with asyncio.timeout(BUSY_TIMEOUT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailableError("every connection to PostgreSQL is busy") from None

    def _take_idle(self) -> Session | None:
        while self._idle:
            session = self._idle.pop()
            if not session.was_ended:
                return session
            session.connection.pgconn.finish()
        return None

    async def _give_back(self, session: Session) -> None:
        if session.is_idle:
            self._idle.append(session)
        else:
            await session.close()

    async def _connection_to(self, conninfo: str) -> AsyncConnection[Any]:
        connecting = asyncio.create_task(AsyncConnection.connect(conninfo, autocommit=True))
        try:
            await asyncio.wait((connecting,), timeout=self._address.connect_timeout_seconds)
        finally:
            await _end(connecting)
        try:
            return connecting.result()
        except asyncio.CancelledError:
            raise StoreUnavailableError("PostgreSQL does not answer") from None
        except psycopg.Error as error:
            raise StoreUnavailableError(" ".join(str(error).split())) from None
        except OSError as error:
            raise StoreUnavailableError(f"PostgreSQL cannot be reached: {error.strerror}") from None


async def _end(connecting: asyncio.Task[AsyncConnection[Any]]) -> None:
    # More than once: psycopg before 3.3 loses a cancellation that comes together with a packet, and then waits for the
    # next one as long as the system does.
    while not connecting.done():
        connecting.cancel()
        await asyncio.wait((connecting,), timeout=CANCEL_AGAIN_SECONDS)
