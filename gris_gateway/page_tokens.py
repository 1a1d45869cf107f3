"""Where the pages of a list begin, told to callers as words that only this process can read.

A place is the number of a row among those of all accounts: in the open it would tell every caller how much all others
ask. The key is made anew at each start, and a list that was half read then is begun again.
"""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken

from gris_gateway.rpc_errors import RequestError


class PageTokens:
    """Seals places and reads them again."""

    def __init__(self) -> None:
        self._cipher = Fernet(Fernet.generate_key())

    def token(self, position: int | None) -> str:
        """Return the token of a place, empty for none."""
        return "" if position is None else self._cipher.encrypt(str(position).encode()).decode()

    def position(self, token: str) -> int | None:
        """Return the place of a token, None for an empty one.

        Raises:
            RequestError: it is no token of this process.
        """
        if not token:
            return None
        try:
            return int(self._cipher.decrypt(token))
        except (InvalidToken, ValueError):
            raise RequestError("page_token", "expected the next_page_token of the page before") from None
