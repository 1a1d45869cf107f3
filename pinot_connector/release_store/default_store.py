"""Which release store a client uses that is given none: one for all clients of the same services in this process.

Clients with stores of their own would each draw a release of the same question. Where rows have changed under one
version of the data, the second differs from the first, so that two accounts would learn that without noise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pinot_connector.endpoints import Address
from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store.interface import ReleaseStore
from pinot_connector.release_store.memory import MemoryReleaseStore

Services: TypeAlias = tuple[str, str]
"""The addresses of dp_service and budget_service."""

_lock = threading.Lock()
_stores: dict[Services, ReleaseStore] = {}
_openers: dict[Services, Callable[[], ReleaseStore]] = {}


@dataclass(frozen=True)
class ReleaseFile:
    """Where a release store is kept on this machine: in a SQLite file, encrypted.

    Attributes:
        file: The path of the store, created if there is none.
        key_file: The path of its key: 32 bytes, raw or as 64 hexadecimal characters, readable by nobody else.
        previous_key_files: Earlier keys, which records may still have.
    """

    file: Path | str
    key_file: Path | str
    previous_key_files: tuple[Path | str, ...] = ()

    def opened(self) -> ReleaseStore:
        """Opens the store; who opens it closes it.

        Raises:
            ReleaseStoreFailed: the store or a key cannot be used, or the extra `store` is not installed.
        """
        try:
            from pinot_connector.release_store.encryption import (  # noqa: PLC0415 - an extra
                StoreKeyError,
                read_store_keys,
            )
            from pinot_connector.release_store.sqlite import SqliteReleaseStore  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            raise ReleaseStoreFailed("a release store in a file needs pip install 'gris-dp[store]'") from None
        try:
            keys = read_store_keys(Path(self.key_file), [Path(each) for each in self.previous_key_files])
        except StoreKeyError as error:
            raise ReleaseStoreFailed(str(error)) from None
        return SqliteReleaseStore(self.file, keys)


def shared_store(dp: Address, budget: Address) -> ReleaseStore:
    """Returns the store that this process shares for these services. Nobody closes it but who has registered it.

    Raises:
        ReleaseStoreFailed: a store was registered for them that cannot be opened.
    """
    services = _text(dp), _text(budget)
    with _lock:
        if services not in _stores:
            _stores[services] = _openers.get(services, MemoryReleaseStore)()
        return _stores[services]


def register_store(services: Services, opener: Callable[[], ReleaseStore]) -> None:
    """Registers the store of services that have just started; it is opened for the first client that needs it."""
    with _lock:
        # Others may have had these addresses before.
        _stores.pop(services, None)
        _openers[services] = opener


def close_store(services: Services) -> None:
    """Closes the store that was registered for services that end."""
    with _lock:
        _openers.pop(services, None)
        store = _stores.pop(services, None)
    if store is not None:
        store.close_now()


def _text(address: Address) -> str:
    return address if isinstance(address, str) else address.address
