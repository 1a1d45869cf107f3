"""Keys of a release store: what is written to a disk or a database is encrypted, and says nothing of who asked what.

- Each record is encrypted with AES-256-GCM under the key that writes, and names that key. What the record belongs to,
  such as its question and its account, is bound to it as associated data: one that was moved or changed is refused.
- Questions and accounts are stored as HMACs under an index key. The store holds that key, encrypted once for each key
  that has written; so a record is found whichever key encrypted it.

Losing the keys loses what is kept, and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gris_serving.key_files import KEY_BYTES, KeyFileError, read_key
from pinot_connector.errors import ReleaseStoreFailed

MAX_KEYS = 4
_NONCE_BYTES = 12


class StoreKeyError(ValueError):
    """A key file that cannot be used; the message never shows its content."""


@dataclass(frozen=True)
class StoreKey:
    """A secret of 32 bytes."""

    secret: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """The public name of the key, 16 hexadecimal characters; 256 bits of secret are not guessed from it."""
        return hashlib.sha256(_length_prefixed(b"gris/release-store-key-id/v1", self.secret)).hexdigest()[:16]

    def encrypt(self, content: bytes, bound: bytes) -> bytes:
        """Returns the content encrypted, with its nonce before it."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, content, bound)

    def decrypt(self, encrypted: bytes, bound: bytes) -> bytes:
        """Returns the content.

        Raises:
            ReleaseStoreFailed: it was encrypted under another key, is bound to something else, or was changed.
        """
        nonce, content = encrypted[:_NONCE_BYTES], encrypted[_NONCE_BYTES:]
        try:
            return self._cipher().decrypt(nonce, content, bound)
        except (InvalidTag, ValueError):
            raise ReleaseStoreFailed("a record of the release store is not what was written") from None

    def _cipher(self) -> AESGCM:
        secret = hmac.digest(self.secret, b"gris/release-store/encryption/v1", "sha256")
        return AESGCM(secret)


@dataclass(frozen=True)
class StoreKeys:
    """The key that records are written with, and earlier ones that are still read.

    Raises:
        StoreKeyError: a key is given twice, or too many are.
    """

    current: StoreKey
    previous: tuple[StoreKey, ...] = ()

    def __post_init__(self) -> None:
        if len(self.all) > MAX_KEYS:
            raise StoreKeyError(f"expected at most {MAX_KEYS - 1} previous keys of the release store")
        if len({key.key_id for key in self.all}) < len(self.all):
            raise StoreKeyError("expected every key of the release store once")

    @property
    def all(self) -> tuple[StoreKey, ...]:
        """All keys, the one that writes first."""
        return (self.current, *self.previous)

    def with_id(self, key_id: str) -> StoreKey | None:
        """Returns the key of this name."""
        return next((key for key in self.all if key.key_id == key_id), None)


class RecordCipher:
    """Encrypts records, and makes the names under which they are stored.

    Args:
        keys: the keys of the store.
        index_key: the 32 bytes that names are made with.
    """

    def __init__(self, keys: StoreKeys, index_key: bytes) -> None:
        self._keys = keys
        self._index_key = index_key

    @property
    def key_id(self) -> str:
        """The name of the key that writes."""
        return self._keys.current.key_id

    def name(self, kind: str, text: str) -> bytes:
        """Returns the name of a question or an account, 32 bytes."""
        return hmac.digest(self._index_key, _length_prefixed(kind.encode(), text.encode()), "sha256")

    def encrypt(self, content: bytes, *bound: bytes) -> bytes:
        """Returns a record of the current key, bound to what it belongs to."""
        return self._keys.current.encrypt(content, _length_prefixed(b"gris/release-store/record/v1", *bound))

    def decrypt(self, key_id: str, encrypted: bytes, *bound: bytes) -> bytes:
        """Returns the content of a record.

        Raises:
            ReleaseStoreFailed: its key is not there, or it is not what was written.
        """
        key = self._keys.with_id(key_id)
        if key is None:
            raise ReleaseStoreFailed(
                "a record of the release store has another key than those that are given"
            )
        return key.decrypt(encrypted, _length_prefixed(b"gris/release-store/record/v1", *bound))


def new_index_key() -> bytes:
    """Returns a new index key."""
    return secrets.token_bytes(KEY_BYTES)


def encrypted_index_key(index_key: bytes, key: StoreKey) -> bytes:
    """Returns an index key as a store holds it for one of its keys."""
    return key.encrypt(index_key, b"gris/release-store/index-key/v1")


def decrypted_index_key(encrypted: bytes, key: StoreKey) -> bytes:
    """Returns the index key that a store holds for one of its keys.

    Raises:
        ReleaseStoreFailed: it is not what was written.
    """
    return key.decrypt(encrypted, b"gris/release-store/index-key/v1")


def read_store_keys(current: Path, previous: Sequence[Path] = ()) -> StoreKeys:
    """Reads the keys of a release store: 32 bytes each, raw or as 64 hexadecimal characters.

    Raises:
        StoreKeyError: a file is missing, has another length, can be read by others than owner and group, or can be
            written by the group; or a key is given twice, or too many are.
    """
    return StoreKeys(_read(current), tuple(map(_read, previous)))


def _read(path: Path) -> StoreKey:
    try:
        return StoreKey(read_key(path))
    except KeyFileError as error:
        raise StoreKeyError(str(error)) from None


def _length_prefixed(*fields: bytes) -> bytes:
    return b"".join(len(each).to_bytes(8, "big") + each for each in fields)
