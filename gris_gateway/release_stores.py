"""Opens the release store that a configuration names."""

from __future__ import annotations

from pathlib import Path

from gris_gateway.configuration import GatewayConfiguration, ReleaseSettings
from gris_serving.reloading_files import SecurityError
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore
from pinot_connector.release_store.encryption import StoreKeyError, StoreKeys, read_store_keys
from pinot_connector.release_store.receipts import ReceiptLimits


def store_keys_of(releases: ReleaseSettings) -> StoreKeys | None:
    """Return the keys of the store, None if it is in memory.

    Raises:
        SecurityError: A key file cannot be used.
    """
    if releases.key_file is None:
        return None
    try:
        return read_store_keys(Path(releases.key_file), [Path(each) for each in releases.previous_key_files])
    except StoreKeyError as error:
        raise SecurityError(f"releases.key_file: {error}") from None


def connection_of(releases: ReleaseSettings) -> str | None:
    """Return what the store's database is reached by, None if there is none.

    Raises:
        SecurityError: The file cannot be used.
    """
    if releases.connection_file is None:
        return None
    try:
        connection = Path(releases.connection_file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        connection = ""
    if not connection or not connection.isprintable():
        raise SecurityError("releases.connection_file: expected a file with one line")
    return connection


def release_store_of(configuration: GatewayConfiguration) -> ReleaseStore:
    """Open the release store.

    Raises:
        SecurityError: A file cannot be used, or an extra is not installed.
        ReleaseStoreFailed: The store cannot be used.
    """
    kept, releases = configuration.history, configuration.releases
    limits = ReceiptLimits(kept.retention_days, kept.per_account, kept.megabytes)
    keys, connection = store_keys_of(releases), connection_of(releases)
    if keys is None:
        return MemoryReleaseStore(limits)
    if connection is None:
        from pinot_connector.release_store.sqlite import SqliteReleaseStore  # noqa: PLC0415

        return SqliteReleaseStore(str(releases.file), keys, limits)
    try:
        from pinot_connector.release_store.postgres import PostgresReleaseStore  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise SecurityError(
            f"releases: PostgreSQL needs the package {error.name}: see the extras of gris-dp"
        ) from None
    return PostgresReleaseStore(connection, keys, limits)
