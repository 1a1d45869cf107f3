"""Which store an address means."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from budget_service.ledger.values import Account, Limit
from budget_service.stores.interface import Committed, Store, StoreUnusableError, uncounted
from budget_service.stores.restoring import write_off
from budget_service.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from budget_service.stores.postgres import PostgresStore
    from budget_service.stores.redis import RedisStore

log = logging.getLogger(__name__)


async def open_store(
    address: str, *, allow_volatile: bool, mark: Path | None = None, committed: Committed = uncounted
) -> Store:
    """Open `sqlite:PATH`, `redis://...`, `rediss://...` or `postgresql://...`; a remote one with its `mark`.

    Raises StoreError.
    """
    if path := _sqlite_path(address):
        if mark is not None:
            raise StoreUnusableError(
                "a SQLite ledger has its mark beside it: --mark is for Redis and PostgreSQL"
            )
        return SqliteStore.open(path, allow_volatile=allow_volatile, committed=committed)
    store = await _open_remote(address, allow_volatile=allow_volatile, mark=mark, committed=committed)
    if mark is None:
        log.warning("without --mark, a backup of the store that was restored is not noticed")
    return store


async def confirm_restored(
    address: str,
    limit_of: Callable[[Account], Limit | None],
    named: Iterable[Account],
    *,
    allow_volatile: bool = False,
    mark: Path | None = None,
) -> int:
    """Put a restored ledger into use again: spend what is left, and begin its mark anew; return on how many levels.

    Raises StoreError.
    """
    if path := _sqlite_path(address):
        ledger = SqliteStore.open_restored(path)
        try:
            count = await write_off(ledger, limit_of, named)
            await ledger.confirm()
        finally:
            await ledger.close()
        return count
    if mark is None:
        raise StoreUnusableError("--confirm-restored needs the --mark of the services on this store")
    store = await _open_remote(address, allow_volatile=allow_volatile, mark=None, committed=uncounted)
    try:
        count = await write_off(store, limit_of, named)
        await store.confirm(mark)
    finally:
        await store.close()
    return count


def _sqlite_path(address: str) -> Path | None:
    path = address.removeprefix("sqlite:").strip() if address.startswith("sqlite:") else ""
    return Path(path) if path else None


async def _open_remote(
    address: str, *, allow_volatile: bool, mark: Path | None, committed: Committed
) -> RedisStore | PostgresStore:
    if address.startswith(("redis://", "rediss://")):
        try:
            from budget_service.stores.redis import RedisStore  # noqa: PLC0415 - the client is an extra
        except ModuleNotFoundError:
            raise StoreUnusableError("a Redis store needs `pip install gris-dp[redis]`") from None
        return await RedisStore.open(address, allow_volatile=allow_volatile, mark=mark, committed=committed)
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from budget_service.stores.postgres import PostgresStore  # noqa: PLC0415 - the client is an extra
        except ModuleNotFoundError:
            raise StoreUnusableError("a PostgreSQL store needs `pip install gris-dp[postgres]`") from None
        return await PostgresStore.open(
            address, allow_volatile=allow_volatile, mark=mark, committed=committed
        )
    raise StoreUnusableError("a store is sqlite:PATH, redis[s]://HOST:PORT/DB or postgresql://HOST:PORT/DB")
