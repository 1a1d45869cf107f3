"""Which store an address means."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from budget_service.ledger.values import Account, Limit
from budget_service.stores import sqlite_restore
from budget_service.stores.interface import Committed, Store, StoreUnusableError, uncounted
from budget_service.stores.sqlite import SqliteStore


async def open_store(address: str, *, allow_volatile: bool, committed: Committed = uncounted) -> Store:
    """Open `sqlite:PATH`, `redis://...`, `rediss://...` or `postgresql://...`. Raises StoreError."""
    if address.startswith("sqlite:") and (path := address.removeprefix("sqlite:").strip()):
        return SqliteStore.open(Path(path), allow_volatile=allow_volatile, committed=committed)
    if address.startswith(("redis://", "rediss://")):
        return await _open_redis(address, allow_volatile, committed)
    if address.startswith(("postgresql://", "postgres://")):
        return await _open_postgres(address, allow_volatile, committed)
    raise StoreUnusableError("a store is sqlite:PATH, redis[s]://HOST:PORT/DB or postgresql://HOST:PORT/DB")


def confirm_restored(
    address: str, limit_of: Callable[[Account], Limit | None], named: Iterable[Account]
) -> int:
    """Put a restored ledger into use again; see `sqlite_restore`. Raises StoreUnusableError."""
    if not address.startswith("sqlite:"):
        raise StoreUnusableError("only a SQLite ledger knows that it was restored")
    return sqlite_restore.confirm_restored(Path(address.removeprefix("sqlite:").strip()), limit_of, named)


async def _open_redis(address: str, allow_volatile: bool, committed: Committed) -> Store:
    try:
        from budget_service.stores.redis import RedisStore  # noqa: PLC0415 - the client is an extra
    except ModuleNotFoundError:
        raise StoreUnusableError("a Redis store needs `pip install gris-dp[redis]`") from None
    return await RedisStore.open(address, allow_volatile=allow_volatile, committed=committed)


async def _open_postgres(address: str, allow_volatile: bool, committed: Committed) -> Store:
    try:
        from budget_service.stores.postgres import PostgresStore  # noqa: PLC0415 - the client is an extra
    except ModuleNotFoundError:
        raise StoreUnusableError("a PostgreSQL store needs `pip install gris-dp[postgres]`") from None
    return await PostgresStore.open(address, allow_volatile=allow_volatile, committed=committed)
