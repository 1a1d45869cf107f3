"""Who sends a request: a token, alone or as the password of an account, or a certificate."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import replace

from gris_serving.admitting import Sender

_BASIC = "basic "


def sender_and_account(sender: Sender) -> tuple[Sender, str | None]:
    """Return a sender with a token in place of a user and a password, and the account that these name.

    Clients of Pinot know users and passwords (Basic): the account, such as `acme/ana`, and its token; no name, or `-`
    where a client needs one, is the caller's own account. Without a password it is the account of a certificate. Some
    leave out the padding. What is neither that nor a token stays as it is, and is refused where tokens are checked.

    >>> sender_and_account(Sender(("Basic YWNtZS9hbmE6dG9rZW4",)))
    (Sender(authorization=('Bearer token',), certificate=None), 'acme/ana')
    >>> sender_and_account(Sender(("Basic YWNtZS9hbmE6",)))
    (Sender(authorization=(), certificate=None), 'acme/ana')
    >>> sender_and_account(Sender(("Bearer token",)))
    (Sender(authorization=('Bearer token',), certificate=None), None)
    """
    shown = sender.authorization
    if len(shown) != 1 or not shown[0].lower().startswith(_BASIC):
        return sender, None
    encoded = shown[0][len(_BASIC) :].strip().rstrip("=")
    try:
        decoded = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return sender, None
    account, colon, token = decoded.partition(":")
    if not colon:
        return sender, None
    authorization = (f"Bearer {token}",) if token else ()
    return replace(sender, authorization=authorization), None if account in ("", "-") else account
