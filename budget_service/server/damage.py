"""Tells a damaged ledger from a wrong request, and reports it.

What a store holds was valid when it was written. If it cannot be read now, the store is at fault, never the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from budget_service.ledger.values import Account, InvalidFieldError
from budget_service.server.failure_detector import FailureDetector
from budget_service.stores.interface import (
    OutcomeUnknownError,
    Store,
    StoreDamagedError,
)


@contextmanager
def reading_ledger(table: str, key: str) -> Iterator[None]:
    """Raise StoreDamagedError where a value of the ledger is not allowed; the names are for who has no better ones."""
    try:
        yield
    except InvalidFieldError as error:
        raise StoreDamagedError(table, key) from error


class ReportingStore:
    """A store whose damage the failure detector hears of; its methods are those of the store."""

    def __init__(self, store: Store, detector: FailureDetector) -> None:
        self._store = store
        self._detector = detector

    @property
    def store(self) -> Store:
        """Return this as a store."""
        return cast(Store, self)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return a method of the store by its name, so that none can be forgotten here."""
        method = getattr(self._store, name)

        async def reported(*arguments: Any, **named: Any) -> Any:
            try:
                return await method(*arguments, **named)
            except StoreDamagedError as error:
                self._detector.damaged(error)
                raise
            except InvalidFieldError as error:
                damage = StoreDamagedError(name, _key(arguments))
                self._detector.damaged(damage)
                # A store that reads its own answer may have made the change before.
                raise (OutcomeUnknownError(str(damage)) if name == "apply" else damage) from error

        return reported


def _key(arguments: tuple[Any, ...]) -> str:
    """Return the account, or the name of the root, that a method of a store is about."""
    first = getattr(arguments[0], "account", arguments[0]) if arguments else ""
    return first.text if isinstance(first, Account) else str(first)
