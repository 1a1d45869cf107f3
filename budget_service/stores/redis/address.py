"""The address of a Redis, and the pools of connections that are made with it."""

from __future__ import annotations

from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from budget_service.stores.interface import StoreUnusableError

CONNECT_TIMEOUT_SECONDS = 1.0

UNREADABLE_ADDRESS = (
    "the address of Redis cannot be read: it is redis://USER:PASSWORD@HOST:PORT/DB, the port is a number, and "
    "characters such as # / ? @ : [ ] % in the password are percent-encoded (# is %23)"
)


def connection_pool(
    address: str, connections: int, answer_seconds: float, *, ends_silence: bool = True
) -> BlockingConnectionPool:
    """Return a pool of an address. Raises StoreUnusableError, which shows no part of it."""
    try:
        parts = urlsplit(address)
        if "#" in address or "@" in parts.path + parts.query:
            # The password ends too soon there, and what is left of it would be taken for a host or a port.
            raise StoreUnusableError(UNREADABLE_ADDRESS)
        return BlockingConnectionPool.from_url(
            address,
            max_connections=connections,
            timeout=answer_seconds,
            socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
            socket_timeout=answer_seconds if ends_silence else None,
            decode_responses=True,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError:
        # What the library says quotes the address, and a piece of the password that it took for a port.
        raise StoreUnusableError(UNREADABLE_ADDRESS) from None
