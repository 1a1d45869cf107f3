"""Who calls: the names in the certificate of the connection, and the token that came with the call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

import grpc
from cryptography.x509 import (
    DNSName,
    DuplicateExtension,
    ExtensionNotFound,
    InvalidVersion,
    RFC822Name,
    SubjectAlternativeName,
    UniformResourceIdentifier,
    UnsupportedGeneralNameType,
    load_pem_x509_certificate,
)

from gris_serving.admitting import Sender
from gris_serving.tokens import TokenError

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

CERTIFICATE_KEY = "x509_pem_cert"
"""Where gRPC's authentication context has the certificate of the connection."""

CALLER_KEY = "gris-caller"
"""The metadata in which a gateway tells its callers apart: 32 hexadecimal characters that do not say who they are."""

_KINDS: Mapping[str, type[UniformResourceIdentifier] | type[DNSName] | type[RFC822Name]] = {
    "uri": UniformResourceIdentifier,
    "dns": DNSName,
    "email": RFC822Name,
}
_UNREADABLE = (ValueError, ExtensionNotFound, DuplicateExtension, InvalidVersion, UnsupportedGeneralNameType)
# Beyond that, the least recently used are parsed again.
_KNOWN_CERTIFICATES = 4096
_SCHEME = "bearer "
_CALLER = re.compile(r"[0-9a-f]{32}")


def sender_of(context: Context) -> Sender:
    """Return how the sender of a call identifies itself."""
    metadata = context.invocation_metadata() or ()
    # gRPC has texts for all names but those that end in "-bin".
    shown = (value for key, value in metadata if key == "authorization" and isinstance(value, str))
    return Sender(tuple(shown), next(iter(context.auth_context().get(CERTIFICATE_KEY, ())), None))


def certificate_names(sender: Sender) -> frozenset[str]:
    """Return the alternative names of the client's certificate, each with its kind: "uri:...", "dns:...", "email:...".

    The certificate was verified during the handshake. Once it has expired it has no names: connections last, and gRPC
    resumes TLS sessions without verifying anything again. The names are read from the certificate itself: those that
    gRPC passes on end at the first zero byte, so that "uri:app\\0.evil.example" would pass for "uri:app". A certificate
    whose names cannot be read has none. The kind is part of the name: an authority may let anyone choose an e-mail
    address that reads like another's URI.
    """
    if sender.certificate is None:
        return frozenset()
    names, expires_at = _names_in(sender.certificate)
    return names if datetime.now(UTC) <= expires_at else frozenset()


@lru_cache(_KNOWN_CERTIFICATES)
def _names_in(pem: bytes) -> tuple[frozenset[str], datetime]:
    """Return the names in a certificate, and until when it is valid."""
    try:
        certificate = load_pem_x509_certificate(pem)
        expires_at = certificate.not_valid_after_utc
        named = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except _UNREADABLE:
        return frozenset(), datetime.min.replace(tzinfo=UTC)
    names = (
        f"{kind}:{name}" for kind, of_kind in _KINDS.items() for name in named.get_values_for_type(of_kind)
    )
    return frozenset(names), expires_at


def bearer_token(sender: Sender) -> str | None:
    """Return the token of the sender, None if it has none.

    Raises:
        TokenError: The header is not one bearer token.
    """
    values = sender.authorization
    if not values:
        return None
    if len(values) > 1 or not values[0].lower().startswith(_SCHEME):
        raise TokenError("expected one authorization header, Bearer and a token")
    return values[0][len(_SCHEME) :].strip()


def caller_name(context: Context) -> str:
    """Return a name for who calls, to share out what all callers use: by certificate, or by host where there is none.

    A caller who asks for others, as a gateway does, tells these apart (`CALLER_KEY`).
    """
    names = certificate_names(sender_of(context))
    own = " ".join(sorted(names)) if names else context.peer().rpartition(":")[0]
    stated = [value for key, value in context.invocation_metadata() or () if key == CALLER_KEY]
    behalf = next((each for each in stated if isinstance(each, str) and _CALLER.fullmatch(each)), "")
    return f"{own} {behalf}"
