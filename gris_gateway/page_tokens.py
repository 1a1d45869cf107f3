"""Page tokens: where the next page of a list begins, encrypted so that only this process can read it.

A position is the number of a row among those of all accounts: unencrypted it would reveal to every caller how much all
others ask. The key is new at each start, so a list that was half read before has to be read again.
"""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken

from gris_gateway.rpc_errors import RequestError


class PageTokens:
    """Encrypts positions and decrypts them again."""

    def __init__(self) -> None:
        self._cipher = Fernet(Fernet.generate_key())

    def token(self, position: int | None) -> str:
        """Return the token of a position, empty for none."""
        return "" if position is None else self._cipher.encrypt(str(position).encode()).decode()

    def position(self, token: str) -> int | None:
        """Return the position of a token, None for an empty one.

        Raises:
            RequestError: It is not a token of this process.
        """
        if not token:
            return None
        try:
            return int(self._cipher.decrypt(token))
        except (InvalidToken, ValueError):
            raise RequestError("page_token", "expected the next_page_token of the page before") from None
