"""The schema of a ledger in Redis, and steps from the one before.

As soon as the version changes, and before anything else does, scripts of services on an older version are refused
(`schema.lua`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from redis.exceptions import RedisError

from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.schema_steps import steps_from

SCHEMA_VERSION = 14
SCHEMA_KEY = "gris:schema"
SCHEMA = str(SCHEMA_VERSION)
# The schema that is left, as long as not every step from it is done.
LEFT_KEY = "gris:schema:left"

# What makes a schema into the next one. No ledger of an older schema is in use. A step may be interrupted and begun
# again, and another service may already charge by then.
STEPS: dict[int, Callable[[Any], Awaitable[None]]] = {}


async def install(client: Any) -> None:
    """Give an empty Redis this schema, or a ledger for which there are steps.

    It may be interrupted and begun again.

    Raises:
        StoreUnusableError: The ledger has another schema.
        StoreUnavailableError: Redis has failed.
    """
    try:
        await client.set(SCHEMA_KEY, SCHEMA, nx=True)
        found = int(await client.get(SCHEMA_KEY))
        # A newer program's steps that were interrupted are its own affair.
        left = found if found > SCHEMA_VERSION else int(await client.get(LEFT_KEY) or found)
        if steps := steps_from("this Redis", left, SCHEMA_VERSION, STEPS):
            async with client.pipeline(transaction=True) as together:
                await together.set(LEFT_KEY, str(left), nx=True).set(SCHEMA_KEY, SCHEMA).execute()
            for step in steps:
                await step(client)
            await client.delete(LEFT_KEY)
    except (RedisError, OSError) as error:
        raise StoreUnavailableError(str(error)) from error


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
