"""Addresses of services, and the credentials for connections to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import grpc

from pinot_connector.errors import InvalidQuestion

REPLICATED = ("dns:", "ipv4:", "ipv6:")
"""How gRPC's own forms of an address begin, which may stand for replicas."""


@dataclass(frozen=True)
class Credentials:
    """Files for TLS and authentication: which authorities to trust, and what to present.

    Without `ca_file`, gRPC's default authorities are trusted. `certificate_file` (a PEM chain) and `key_file` (PEM) are
    presented if the server asks for a certificate; they are read when a connection is opened. The token in `token_file`
    is sent with every call and read again for each, so it may be renewed at any time. `token` returns one that is
    held in memory instead, as by a server that passes on the token of who asks it; it is called for every call.
    """

    ca_file: Path | str | None = None
    certificate_file: Path | str | None = None
    key_file: Path | str | None = None
    token_file: Path | str | None = None
    token: Callable[[], str] | None = field(default=None, repr=False)

    def for_channel(self) -> grpc.ChannelCredentials:
        """Returns credentials for a channel.

        Raises:
            InvalidQuestion: a file cannot be read, certificate and key are not given together, or there are two tokens.
        """
        if (self.certificate_file is None) != (self.key_file is None):
            raise InvalidQuestion("certificate_file", "expected certificate and key together, or neither")
        tls = grpc.ssl_channel_credentials(
            root_certificates=_content("ca_file", self.ca_file),
            private_key=_content("key_file", self.key_file),
            certificate_chain=_content("certificate_file", self.certificate_file),
        )
        if (token := self._token()) is None:
            return tls
        return grpc.composite_channel_credentials(
            tls, grpc.metadata_call_credentials(_Token(token), "gris-token")
        )

    def _token(self) -> Callable[[], str] | None:
        """Returns what returns the token of a call; None: none is sent."""
        if self.token_file is None:
            return self.token
        if self.token is not None:
            raise InvalidQuestion("token", "expected token_file or token, and not both")
        _content("token_file", self.token_file)
        path = Path(self.token_file)
        return lambda: path.read_text(encoding="ascii").strip()


@dataclass(frozen=True)
class Endpoint:
    """An address, "host:port", behind TLS."""

    address: str
    credentials: Credentials = Credentials()


Address: TypeAlias = str | Endpoint
"""The address of a service: "host:port" in plain text, for a trusted network, or an `Endpoint`."""


def require_target(target: str) -> None:
    """Refuses a list of addresses that gRPC would take for the name of one host.

    Raises:
        InvalidQuestion: the target has a comma and none of gRPC's forms for replicas.
    """
    if "," in target and not target.startswith(REPLICATED):
        raise InvalidQuestion(
            "address",
            f"expected HOST:PORT, or replicas as ipv4:IP:PORT,IP:PORT or dns:///NAME:PORT, got {target}",
        )


def named(address: Address) -> str:
    """Returns the text of an address as errors show it."""
    return address if isinstance(address, str) else address.address


def silent(where: str, why: str = "") -> str:
    """Returns what every error says of a service or an engine that does not answer, and why if that is known."""
    return f"no answer at {where} ({why})" if why else f"no answer at {where}"


class _Token(grpc.AuthMetadataPlugin):
    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def __call__(
        self,
        context: grpc.AuthMetadataContext,
        callback: Callable[[tuple[tuple[str, str], ...], Exception | None], None],
    ) -> None:
        try:
            token = self._token()
        except (OSError, ValueError):
            # gRPC puts the error's text into the status of the call.
            callback((), RuntimeError("the token file cannot be read"))
            return
        callback((("authorization", f"Bearer {token}"),), None)


def _content(field: str, path: Path | str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError:
        raise InvalidQuestion(field, f"expected a file that can be read, not {path}") from None
