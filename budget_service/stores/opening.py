"""Opens the store that an address names."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from budget_service.ledger.values import Account, Limit
from budget_service.stores.interface import Committed, Store, StoreUnusableError, uncounted
from budget_service.stores.rollback_guard import Position
from budget_service.stores.sqlite.store import SqliteStore, mark_path
from budget_service.stores.write_off import write_off
from budget_service.tuning import DEFAULTS, Tuning

if TYPE_CHECKING:
    from budget_service.stores.postgres.store import PostgresStore
    from budget_service.stores.redis.store import RedisStore

NOTHING_LOST = (
    "this ledger is not behind its mark, so nothing is known to be lost, and nothing was done; if its mark was put "
    "back with it, add --spend-every-budget, which spends what is left of every open budget"
)

log = logging.getLogger(__name__)


def require_readable(address: str) -> None:
    """Return if a store's address can be read; nothing is opened. Raises StoreUnusableError, which shows none of it."""
    if not _sqlite_path(address):
        _remote(address).require_readable(address)


async def open_store(
    address: str,
    *,
    allow_volatile: bool,
    mark: Path | None = None,
    is_unguarded: bool = False,
    committed: Committed = uncounted,
    tuning: Tuning = DEFAULTS,
) -> Store:
    """Open a store.

    Args:
        address: `sqlite:PATH`, `redis[s]://...` or `postgresql://...`.
        allow_volatile: Accept a store that may lose charges when it dies, for tests.
        mark: The file of the high-water mark of a remote ledger.
        is_unguarded: No mark is wanted, and no warning that there is none.
        committed: Called after every commit.
        tuning: Time-outs and bounds.

    Raises:
        StoreError: The store cannot be reached, or must not be used as it is.
    """
    if path := _sqlite_path(address):
        if mark is not None or is_unguarded:
            raise StoreUnusableError(
                "a SQLite ledger has its mark beside it: --mark and --no-mark are for Redis and PostgreSQL"
            )
        return SqliteStore.open(path, allow_volatile=allow_volatile, committed=committed, tuning=tuning)
    store = await _remote(address).open(
        address, allow_volatile=allow_volatile, mark=mark, committed=committed, tuning=tuning
    )
    if mark is None and not is_unguarded:
        log.warning(
            "Without --mark, a backup of the store that was restored is not noticed; --no-mark accepts that.",
            extra={"event": "rollback_guard.missing"},
        )
    return store


async def confirm_restored(
    address: str,
    limit_of: Callable[[Account], Limit | None],
    named: Iterable[Account],
    *,
    actor: str,
    reason: str = "",
    allow_volatile: bool = False,
    mark: Path | None = None,
    though_nothing_is_lost: bool = False,
) -> int:
    """Put a restored ledger into use again: spend what is left, and write a new high-water mark.

    A ledger that is not behind its high-water mark has lost nothing as far as is known. It is changed only if
    `though_nothing_is_lost`. The journal names the `actor` and the `reason`.

    Returns:
        On how many levels something was spent.

    Raises:
        StoreError: The store failed, or nothing is known to be lost.
    """
    if mark is None and not _sqlite_path(address):
        raise StoreUnusableError("--confirm-restored needs the --mark of the services on this store")
    if not though_nothing_is_lost and await _is_sound(address, allow_volatile=allow_volatile, mark=mark):
        raise StoreUnusableError(NOTHING_LOST)
    async with _unguarded(address, allow_volatile=allow_volatile, mark=mark) as (store, path):
        count = await write_off(store, limit_of, named, actor=actor, reason=reason)
        await store.confirm(path)
    return count


async def renew_mark(address: str, stated: Position, *, allow_volatile: bool, mark: Path | None) -> None:
    """Write the lost high-water mark of a ledger anew, if the ledger stands exactly at the stated position.

    Raises:
        StoreError: The store failed, or the ledger stands elsewhere.
    """
    async with _unguarded(address, allow_volatile=allow_volatile, mark=mark) as (store, path):
        await store.renew_mark(path, stated)


@asynccontextmanager
async def _unguarded(
    address: str, *, allow_volatile: bool, mark: Path | None
) -> AsyncIterator[tuple[SqliteStore | RedisStore | PostgresStore, Path]]:
    """Open a store without looking at its high-water mark, and give the path of that too."""
    store: SqliteStore | RedisStore | PostgresStore
    if path := _sqlite_path(address):
        store, mark = SqliteStore.open_restored(path), mark_path(path)
    elif mark is None:
        raise StoreUnusableError("--renew-mark writes the file of --mark: name it")
    else:
        store = await _remote(address).open(address, allow_volatile=allow_volatile)
    try:
        yield store, mark
    finally:
        await store.close()


async def _is_sound(address: str, *, allow_volatile: bool, mark: Path | None) -> bool:
    """Return whether a service would open this ledger as it is; one that is not there is not made."""
    path = _sqlite_path(address)
    if path is not None and not path.exists():
        return False
    try:
        store = await open_store(address, allow_volatile=allow_volatile, mark=mark)
    except StoreUnusableError:
        # Other faults than the high-water mark are reported when the ledger is opened to be confirmed.
        return False
    await store.close()
    return True


def _sqlite_path(address: str) -> Path | None:
    path = address.removeprefix("sqlite:").strip() if address.startswith("sqlite:") else ""
    return Path(path) if path else None


def _remote(address: str) -> type[RedisStore] | type[PostgresStore]:
    if address.startswith(("redis://", "rediss://")):
        try:
            from budget_service.stores.redis.store import RedisStore  # noqa: PLC0415 - the client is an extra
        except ModuleNotFoundError:
            raise StoreUnusableError("a Redis store needs `pip install gris-dp[redis]`") from None
        return RedisStore
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from budget_service.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the client is an extra
        except ModuleNotFoundError:
            raise StoreUnusableError("a PostgreSQL store needs `pip install gris-dp[postgres]`") from None
        return PostgresStore
    raise StoreUnusableError("a store is sqlite:PATH, redis[s]://HOST:PORT/DB or postgresql://HOST:PORT/DB")
