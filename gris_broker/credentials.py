"""Who sends a request: a token, alone or as the password of an account."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence

_BASIC = "basic "


def bearer_and_account(authorization: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the values of the header Authorization as those of a token, and the account that they name.

    Clients of Pinot know users and passwords (Basic): the account, such as `acme/ana`, and its token; no name, or `-`
    where a client needs one, is the caller's own account. Some leave out the padding. What is neither that nor a token
    stays as it is, and is refused where tokens are checked.

    >>> bearer_and_account(["Basic YWNtZS9hbmE6dG9rZW4"])
    (['Bearer token'], 'acme/ana')
    >>> bearer_and_account(["Bearer token"])
    (['Bearer token'], None)
    """
    if len(authorization) != 1 or not authorization[0].lower().startswith(_BASIC):
        return list(authorization), None
    encoded = authorization[0][len(_BASIC) :].strip().rstrip("=")
    try:
        decoded = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return list(authorization), None
    account, colon, token = decoded.partition(":")
    named = None if account in ("", "-") else account
    return ([f"Bearer {token}"], named) if colon else (list(authorization), None)
