"""A transaction of one root account in PostgreSQL: one round trip locks and loads, a second one writes and commits.

READ COMMITTED is enough: each statement sees what was committed before it began, so what is loaded after the lock was
taken is all that the root has, and nobody else changes it until the lock is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psycopg.pq.abc import PGresult

from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import OutcomeUnknownError
from budget_service.stores.postgres import statements
from budget_service.stores.postgres.connections import OTHERS_WERE_QUICKER, Session
from budget_service.stores.postgres.encoding import (
    administered_parameters,
    load_parameters,
    read_administered,
    read_loaded,
    write_parameters,
)
from budget_service.stores.postgres.round_trip import Statement, Values
from budget_service.stores.transactions import Changes, Loaded, Wanted


class PostgresTransaction:
    """A transaction that holds the lock of a root account; see `Transaction`.

    `may_have_an_effect` as soon as the commit is sent.
    """

    def __init__(self, session: Session, root: str, loaded: Loaded, *, is_new: bool) -> None:
        self.loaded = loaded
        self.may_have_an_effect = False
        self._session = session
        self._root = root
        self._is_new = is_new

    async def commit(self, changes: Changes, committed: Callable[[], None]) -> bool:
        """Write all changes and commit; see `Transaction`.

        A commit without changes waits for the standbys as any other does, because the lock was a change: a replay
        acknowledges nothing that a fail-over could still lose.
        """
        if self._session.was_ended:
            # This service was held up, and PostgreSQL let others go on; nothing was sent.
            return False
        sent: list[tuple[Statement, Values]] = []
        if changes:
            parts, parameters = write_parameters(self._root, changes, self.loaded.roots[self._root].last_time)
            sent.append((statements.writing(parts), parameters))
        elif self._is_new:
            # A root that was only asked for is not there.
            sent.append((statements.REMOVE_ROOT, {"root": self._root}))
        self.may_have_an_effect = True
        try:
            *_, ended = await self._session.together(*sent, (statements.COMMIT, {}))
        except OTHERS_WERE_QUICKER:
            return False
        if ended.command_status != b"COMMIT":
            raise OutcomeUnknownError("PostgreSQL did not say that it has committed")
        committed()
        return True


async def begin(
    session: Session, wanted: Wanted, clock: Microseconds | None, most_due: int
) -> PostgresTransaction:
    """Lock the root that is wanted, making it if it is not there, and load. Raises as `Session.together` does."""
    (root,) = wanted.roots
    parameters = load_parameters(wanted, clock, most_due)
    lock_and_load: list[tuple[Statement, Values]] = [
        (statements.LOCK, parameters),
        (statements.LOAD, parameters),
    ]
    if wanted.counted:
        lock_and_load.append((statements.LOAD_ADMINISTERED, administered_parameters(wanted)))
    _, locked, *found = await session.together((statements.BEGIN, {}), *lock_and_load)
    is_new = False
    if not locked.ntuples:
        # Somebody else may make it at the same time, and change it. Only who has added it may remove it again.
        added, _, *found = await session.together((statements.ADD_ROOT, parameters), *lock_and_load)
        is_new = added.command_tuples == 1
    return PostgresTransaction(session, root, _loaded(found, wanted, most_due), is_new=is_new)


async def load(session: Session, wanted: Wanted, clock: Microseconds | None, most_due: int) -> Loaded:
    """Return what is wanted without a lock. Raises as `Session.together` does."""
    found = await session.together((statements.LOAD, load_parameters(wanted, clock, most_due)))
    return _loaded(found, wanted, most_due)


def _loaded(found: Sequence[PGresult], wanted: Wanted, most_due: int) -> Loaded:
    texts = [text for text in (each.get_value(0, 0) for each in found) if text is not None]
    if len(texts) < len(found):
        raise OutcomeUnknownError("PostgreSQL has loaded nothing")
    text, *administered = texts
    loaded = read_loaded(text, wanted, most_due)
    for each in administered:
        read_administered(each, wanted, loaded)
    return loaded
