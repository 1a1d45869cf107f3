"""A transaction of one root account in PostgreSQL: one round trip locks and loads, a second one writes and commits.

READ COMMITTED is enough: each statement sees what was committed before it began, so what is loaded after the lock was
taken is all that the root has, and nobody else changes it until the lock is gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import OutcomeUnknownError, StoreUnavailableError
from budget_service.stores.postgres import statements
from budget_service.stores.postgres.connections import OTHERS_WERE_QUICKER, Cursor, Pipeline, Session
from budget_service.stores.postgres.encoding import load_parameters, read_loaded, write_parameters
from budget_service.stores.transactions import Changes, Loaded, Wanted


class PostgresTransaction:
    """A transaction that holds the lock of a root account; see `Transaction`.

    `may_have_an_effect` as soon as the commit is sent.
    """

    def __init__(self, session: Session, pipeline: Pipeline, end: AsyncExitStack, root: str) -> None:
        self.loaded: Loaded
        self.may_have_an_effect = False
        self._session = session
        self._pipeline = pipeline
        self._end = end
        self._root = root
        self._is_new = False

    async def begin(self, wanted: Wanted, clock: Microseconds | None, most_due: int) -> None:
        """Lock the root, making it if it is not there, and load."""
        parameters = load_parameters(wanted, clock, most_due)
        await self._pipeline.send(statements.BEGIN)
        locked = await self._pipeline.send(statements.LOCK, parameters)
        found = await self._pipeline.send(statements.LOAD, parameters)
        await self._pipeline.answers()
        self._is_new = not locked.rowcount
        if self._is_new:
            await self._pipeline.send(statements.ADD_ROOT, parameters)
            # Somebody else may have made it at the same time, and changed it since.
            await self._pipeline.send(statements.LOCK, parameters)
            found = await self._pipeline.send(statements.LOAD, parameters)
            await self._pipeline.answers()
        self.loaded = await _loaded(found, wanted, most_due)

    async def commit(self, changes: Changes) -> bool:
        """Write all changes and commit; see `Transaction`.

        A commit without changes waits for the standbys as any other does, because the lock was a change: a replay
        acknowledges nothing that a fail-over could still lose.
        """
        if self._session.was_ended:
            raise StoreUnavailableError("PostgreSQL has ended the transaction of a service that was held up")
        if changes:
            parts, parameters = write_parameters(self._root, changes, self.loaded.roots[self._root].last_time)
            await self._pipeline.send(statements.writing(parts), parameters)
        elif self._is_new:
            # A root that was only asked for is not there. psycopg would forget what it has prepared at a ROLLBACK.
            await self._pipeline.send(statements.REMOVE_ROOT, {"root": self._root})
        self.may_have_an_effect = True
        try:
            ended = await self._pipeline.send(statements.COMMIT)
            await self._end.aclose()
        except OTHERS_WERE_QUICKER:
            return False
        if ended.statusmessage != "COMMIT":
            raise OutcomeUnknownError("PostgreSQL did not say that it has committed")
        return True


@asynccontextmanager
async def opened(session: Session, root: str) -> AsyncIterator[PostgresTransaction]:
    """Give a transaction of a root account, which `begin` begins. Raises as `Session.pipeline` does."""
    async with AsyncExitStack() as end:
        yield PostgresTransaction(session, await end.enter_async_context(session.pipeline()), end, root)


async def load(session: Session, wanted: Wanted, clock: Microseconds | None, most_due: int) -> Loaded:
    """Return what is wanted without a lock. Raises as `Session.pipeline` does."""
    async with session.pipeline() as pipeline:
        found = await pipeline.send(statements.LOAD, load_parameters(wanted, clock, most_due))
    return await _loaded(found, wanted, most_due)


async def _loaded(found: Cursor, wanted: Wanted, most_due: int) -> Loaded:
    ((text,),) = await found.fetchall()
    return read_loaded(text, wanted, most_due)
