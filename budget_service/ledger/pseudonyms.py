"""The keyed pseudonyms that stand in the ledger for the names of accounts.

Below its root account, each level of an account stands under an id that is made of its name and of a key of its own.
The names are kept beside the ledger, one row each, and digests, journals and archives are over ids alone. So a name is
forgotten with its row: without the key, nobody can tell whether a name that they think of is the one behind an id.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode

from msgspec import Struct

from budget_service.ledger.values import Account

KEY_BYTES = 16
_ID_BYTES = 16
_ID = re.compile(r"~[A-Za-z0-9_-]{22}")


class NameRow(Struct, frozen=True, gc=False):
    """The name of a level, its path joined by slashes, with its id and the key, in hexadecimal, that binds the two."""

    name: str
    id: str
    key: str

    @staticmethod
    def made(name: str, key: bytes) -> NameRow:
        """Return the row of a name with a fresh key of `KEY_BYTES`."""
        return NameRow(name, pseudonym_of(name, key), key.hex())

    @property
    def is_bound(self) -> bool:
        """Whether the id is the one of this name and key."""
        try:
            return hmac.compare_digest(pseudonym_of(self.name, bytes.fromhex(self.key)), self.id)
        except ValueError:
            return False

    @property
    def level(self) -> Account:
        """The level by its names."""
        return Account.of_text(self.name)


def pseudonym_of(name: str, key: bytes) -> str:
    """Return the id of a level: its last segment in the ledger. It reveals nothing of the name without the key."""
    digest = hmac.digest(key, name.encode(), "sha256")[:_ID_BYTES]
    return f"~{urlsafe_b64encode(digest).decode().rstrip('=')}"


def is_pseudonym(segment: str) -> bool:
    """Return whether a segment has the form of an id."""
    return _ID.fullmatch(segment) is not None
