"""A store that cannot be opened yet: the service runs, says that it cannot serve, and tries again.

A service that ended instead would be started again and again by its supervisor, with pauses that grow to minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, cast

from budget_service.stores.interface import Store, StoreUnavailableError

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 10.0

log = logging.getLogger(__name__)


class DeferredStore:
    """Stands for a store until it is open; then its methods are those of the store.

    Before that each method raises StoreUnavailableError, as that of a store that cannot be reached.
    """

    def __init__(self) -> None:
        self._opened: Store | None = None

    @property
    def store(self) -> Store:
        """Return this, as the store that it will be."""
        return cast(Store, self)

    def put(self, store: Store) -> None:
        """Hand every later call to a store that is open."""
        self._opened = store

    def __getattr__(self, name: str) -> Any:
        """Return a method of the store by its name, so that none can be forgotten here."""
        return _unavailable if self._opened is None else getattr(self._opened, name)


async def opened_in_time(opening: Callable[[], Awaitable[Store]]) -> Store:
    """Return the store as soon as it can be opened; try again after pauses that grow to `LONGEST_PAUSE_SECONDS`.

    Raises:
        StoreUnusableError: It must not be used as it is, so that waiting would not help.
    """
    pause_seconds = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await opening()
        except StoreUnavailableError as error:
            fields = {"problem": str(error), "retry_seconds": pause_seconds}
            log.warning(
                "The store cannot be opened yet.", extra={"event": "store.not_opened", "fields": fields}
            )
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)


async def _unavailable(*_: object, **__: object) -> NoReturn:
    raise StoreUnavailableError("the store is not open yet")
