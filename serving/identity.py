"""Who calls: the names in the certificate of the connection, and the token that came with the call."""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc

from serving.tokens import TokenError

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_PROPERTIES = {"peer_uri": "uri", "peer_dns": "dns", "peer_email": "email"}
_SCHEME = "bearer "


def certificate_names(context: Context) -> frozenset[str]:
    """Return the alternative names of the client's certificate, each with its kind: "uri:...", "dns:...", "email:...".

    gRPC has verified the certificate during the handshake. The kind is part of the name: an authority may let anybody
    choose an e-mail address that reads like another's URI.
    """
    properties = context.auth_context()
    return frozenset(
        f"{kind}:{name.decode('utf-8', 'replace')}"
        for key, kind in _PROPERTIES.items()
        for name in properties.get(key, ())
    )


def bearer_token(context: Context) -> str | None:
    """Return the token of the call, None if it has none.

    Raises:
        TokenError: the header is not one bearer token.
    """
    values = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
    if not values:
        return None
    if len(values) > 1 or not isinstance(values[0], str) or not values[0].lower().startswith(_SCHEME):
        raise TokenError("expected one authorization header, Bearer and a token")
    return values[0][len(_SCHEME) :].strip()
