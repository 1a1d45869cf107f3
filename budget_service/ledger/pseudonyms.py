"""The keyed pseudonyms that stand in the ledger for the names of accounts.

Below its root account, each level of an account stands under an id that is made of its name and of a key of its own;
so does, below the account, a person who asks for more budget for it.
The names are kept beside the ledger, one row each, and digests, journals and archives are over ids alone. So a name is
forgotten with its row: without the key, nobody can tell whether a name that they think of is the one behind an id.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from msgspec import Struct

from budget_service.ledger.values import PSEUDONYM, Account

KEY_BYTES = 16
_ID_BYTES = 16
_ID = re.compile(rf"(?<!\S){PSEUDONYM.pattern}(?![^\s,])")
# No path has two slashes in a row.
PERSON = "//"
ASKED_BY = " (asked for by "
"""What is between the reason for a limit that was asked for, and who has asked."""


def bounds_below(name: str) -> tuple[str, str]:
    """Return what all names below one come after, and before, in the order of their bytes: persons and levels."""
    return f"{name}/", f"{name}0"


class NameRow(Struct, frozen=True, gc=False):
    """The name of a level, its path joined by slashes, with its id and the key, in hexadecimal, that binds the two.

    The name of a person is that of the account that they asked for, and behind two slashes their own.
    """

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
    def person(self) -> str:
        """The name of a person; empty for a level."""
        return self.name.partition(PERSON)[2]

    @property
    def level(self) -> Account:
        """The level by its names."""
        return Account.of_text(self.name)


def pseudonym_of(name: str, key: bytes) -> str:
    """Return the id of a level: its last segment in the ledger. It reveals nothing of the name without the key."""
    digest = hmac.digest(key, name.encode(), "sha256")[:_ID_BYTES]
    return f"~{urlsafe_b64encode(digest).decode().rstrip('=')}"


def ids_in(text: str) -> list[str]:
    """Return the ids that stand in a text as words."""
    return _ID.findall(text)


def with_persons(text: str, rows: Mapping[str, NameRow]) -> str:
    """Return a text with the names of persons in the place of their ids, where there are rows of them."""
    return _ID.sub(lambda found: rows[found[0]].person if found[0] in rows else found[0], text)
