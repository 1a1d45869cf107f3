"""Page tokens: where the next page of a list begins, encrypted so that only this process can read it.

A position is the number of a row among those of all accounts: unencrypted it would reveal to every caller how much all
others ask. A token holds the account whose list it goes on with, and is refused for any other. The key is new at each
start, so a list that was half read before has to be read again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken

from gris_gateway.rpc_errors import RequestError


class PageTokens:
    """Encrypts positions and decrypts them again."""

    def __init__(self) -> None:
        self._cipher = Fernet(Fernet.generate_key())

    def token(self, account: Sequence[str], position: int | None) -> str:
        """Return the token of a position in the list of an account, empty for none."""
        if position is None:
            return ""
        return self._cipher.encrypt(json.dumps([position, *account]).encode()).decode()

    def position(self, account: Sequence[str], token: str) -> int | None:
        """Return the position of a token in the list of an account, None for an empty one.

        Raises:
            RequestError: It is not a token of this process for that account.
        """
        if not token:
            return None
        try:
            position, *of_account = json.loads(self._cipher.decrypt(token))
        except (InvalidToken, ValueError):
            raise _unusable() from None
        if of_account != list(account):
            raise _unusable()
        return int(position)


def _unusable() -> RequestError:
    return RequestError("page_token", "expected the next_page_token of the page before")
