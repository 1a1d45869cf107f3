"""The schema of a ledger in Redis: a script of a program of another schema is refused (`schema.lua`)."""

from __future__ import annotations

from typing import Any

from redis.exceptions import RedisError

from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.interface import require_schema as require_own

SCHEMA_VERSION = 19
SCHEMA_KEY = "gris:schema"
SCHEMA = str(SCHEMA_VERSION)


async def install(client: Any) -> None:
    """Give an empty Redis this schema.

    Raises:
        StoreUnusableError: The ledger has another schema.
        StoreUnavailableError: Redis has failed.
    """
    try:
        await client.set(SCHEMA_KEY, SCHEMA, nx=True)
        found = int(await client.get(SCHEMA_KEY))
    except (RedisError, OSError) as error:
        raise StoreUnavailableError(str(error)) from error
    require_own("this Redis", found, SCHEMA_VERSION)


async def require_schema(client: Any) -> None:
    """Return if the ledger still has this program's schema, else raise StoreUnusableError.

    Raises StoreUnavailableError.
    """
    try:
        found = await client.get(SCHEMA_KEY)
    except (RedisError, OSError) as error:
        raise StoreUnavailableError(str(error)) from error
    if found is None:
        raise StoreUnusableError("this Redis was emptied while it was used: the ledger is gone")
    if found != SCHEMA:
        raise StoreUnusableError(
            f"this Redis was brought to schema {found} by another program; this one knows {SCHEMA_VERSION}"
        )
