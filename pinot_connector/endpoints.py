"""Where a service is, and how both ends of the line to it prove themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import grpc

from pinot_connector.errors import InvalidQuestion


@dataclass(frozen=True)
class Credentials:
    """Whom to trust behind an address and what to show there; all of it PEM files or a token's.

    Without `ca_file` the authorities count that gRPC trusts by default. `certificate_file` (a chain) and `key_file` are
    shown if the other side asks for a certificate; they are read when a connection is opened. The token in
    `token_file` goes with every call and is read for each, so it may be renewed at any time.
    """

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    token_file: Path | None = None

    def for_channel(self) -> grpc.ChannelCredentials:
        """Returns credentials for a channel.

        Raises:
            InvalidQuestion: a file cannot be read, or certificate and key are not given together.
        """
        if (self.certificate_file is None) != (self.key_file is None):
            raise InvalidQuestion("certificate_file", "expected certificate and key together, or neither")
        line = grpc.ssl_channel_credentials(
            root_certificates=_content("ca_file", self.ca_file),
            private_key=_content("key_file", self.key_file),
            certificate_chain=_content("certificate_file", self.certificate_file),
        )
        if self.token_file is None:
            return line
        _content("token_file", self.token_file)
        return grpc.composite_channel_credentials(
            line, grpc.metadata_call_credentials(_Token(self.token_file), "gris-token")
        )


@dataclass(frozen=True)
class Endpoint:
    """An address, "host:port", behind TLS."""

    address: str
    credentials: Credentials = Credentials()


Address: TypeAlias = str | Endpoint
"""Where a service is: "host:port" in plain text, for a trusted network, or an `Endpoint`."""


class _Token(grpc.AuthMetadataPlugin):
    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(
        self,
        context: grpc.AuthMetadataContext,
        callback: Callable[[tuple[tuple[str, str], ...], Exception | None], None],
    ) -> None:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            # gRPC puts the error's text into the status of the call.
            callback((), RuntimeError("the token file cannot be read"))
            return
        callback((("authorization", f"Bearer {token}"),), None)


def _content(field: str, path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError:
        raise InvalidQuestion(field, f"expected a file that can be read, not {path}") from None
