"""Opens the tables of a release store: makes them, finds the index key, and writes old records with the current key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store import statements
from pinot_connector.release_store.database import Database, Execute
from pinot_connector.release_store.encryption import (
    RecordCipher,
    StoreKeys,
    decrypted_index_key,
    encrypted_index_key,
    new_index_key,
)

BATCH = 100


def opened(database: Database, keys: StoreKeys) -> RecordCipher:
    """Opens a database, and returns what encrypts its records.

    Raises:
        ReleaseStoreFailed: it holds something else, or was written with keys that are not given.
    """
    cipher = database.run(lambda execute: _prepared(execute, database, keys))
    for rewrite in (_rewritten_releases, _rewritten_payments, _rewritten_receipts):
        while database.run(_batch(rewrite, cipher)):
            pass
    database.run(lambda execute: _forget_unused_keys(execute, keys))
    return cipher


def _prepared(execute: Execute, database: Database, keys: StoreKeys) -> RecordCipher:
    # Several gateways may open it at the same time.
    database.lock(execute)
    if not database.has_tables(execute):
        for statement in statements.TABLES:
            execute(statement.replace("{bytes}", database.bytes_type).replace("{id}", database.id_type), {})
    return _cipher(execute, keys)


def _cipher(execute: Execute, keys: StoreKeys) -> RecordCipher:
    ((version,),) = execute(statements.SCHEMA_VERSION, {})
    if version != statements.VERSION:
        raise ReleaseStoreFailed(
            f"the release store has version {version}; this program knows version {statements.VERSION}"
        )
    used = {key_id for (key_id,) in execute(statements.KEY_IDS, {})}
    if any(keys.with_id(key_id) is None for key_id in used):
        raise ReleaseStoreFailed("the release store was written with a key that is not given")
    index_key = _index_key(execute, keys)
    encrypted = encrypted_index_key(index_key, keys.current)
    execute(statements.ADD_INDEX_KEY, {"key_id": keys.current.key_id, "index_key": encrypted})
    return RecordCipher(keys, index_key)


def _index_key(execute: Execute, keys: StoreKeys) -> bytes:
    held = {key_id: bytes(encrypted) for key_id, encrypted in execute(statements.INDEX_KEYS, {})}
    for key in keys.all:
        if key.key_id in held:
            return decrypted_index_key(held[key.key_id], key)
    if held:
        raise ReleaseStoreFailed("the release store was written with a key that is not given")
    return new_index_key()


def _batch(rewrite: Callable[[Execute, RecordCipher], int], cipher: RecordCipher) -> Callable[[Execute], int]:
    return lambda execute: rewrite(execute, cipher)


def _rewritten_releases(execute: Execute, cipher: RecordCipher) -> int:
    rows = execute(statements.OTHER_RELEASES, _others(cipher))
    for query, key_id, content in rows:
        renewed = _renewed(cipher, key_id, content, b"release", bytes(query))
        execute(statements.REWRITE_RELEASE, {**renewed, "query": query})
    return len(rows)


def _rewritten_payments(execute: Execute, cipher: RecordCipher) -> int:
    rows = execute(statements.OTHER_PAYMENTS, _others(cipher))
    for query, account, key_id, content in rows:
        renewed = _renewed(cipher, key_id, content, b"payment", bytes(query), bytes(account))
        execute(statements.REWRITE_PAYMENT, {**renewed, "query": query, "account": account})
    return len(rows)


def _rewritten_receipts(execute: Execute, cipher: RecordCipher) -> int:
    rows = execute(statements.OTHER_RECEIPTS, _others(cipher))
    for position, account, query, key_id, content in rows:
        bound = b"" if query is None else bytes(query)
        renewed = _renewed(cipher, key_id, content, b"receipt", bytes(account), bound)
        execute(statements.REWRITE_RECEIPT, {**renewed, "id": position})
    return len(rows)


def _others(cipher: RecordCipher) -> dict[str, Any]:
    return {"key_id": cipher.key_id, "most": BATCH}


def _renewed(cipher: RecordCipher, key_id: str, content: bytes, *bound: bytes) -> dict[str, Any]:
    decrypted = cipher.decrypt(key_id, bytes(content), *bound)
    return {"key_id": cipher.key_id, "content": cipher.encrypt(decrypted, *bound)}


def _forget_unused_keys(execute: Execute, keys: StoreKeys) -> None:
    """Removes the index key of keys that are not given any more: no record has them."""
    for key_id, _ in execute(statements.INDEX_KEYS, {}):
        if keys.with_id(key_id) is None:
            execute(statements.REMOVE_INDEX_KEY, {"key_id": key_id})
