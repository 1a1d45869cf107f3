"""What the configuration says of all that a gateway serves beside gRPC: addresses, TLS, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gris_serving.documents import Strict
from gris_serving.options import checked_address
from gris_serving.tls import TlsFiles


class Tls(Strict):
    """PEM files; with `client_ca` every caller must have a certificate of that authority."""

    certificate: str
    key: str
    client_ca: str | None = None

    def files(self) -> TlsFiles:
        """Return the paths."""
        client_ca = None if self.client_ca is None else Path(self.client_ca)
        return TlsFiles(Path(self.certificate), Path(self.key), client_ca)


class FaceSettings(Strict):
    """Where callers are served in another protocol than gRPC.

    Without `tls`, that of the gateway counts; `false` is plain text.
    """

    listen: Annotated[str, AfterValidator(checked_address)]
    tls: Tls | Literal[False] | None = None


class HttpSettings(FaceSettings):
    """Where callers are served over HTTP, and which requests are read: for `hosts`, and from pages of `origins`.

    Without `hosts`, names of this machine.
    """

    hosts: list[Annotated[str, Field(pattern=r"^[a-z0-9_.:\[\]-]+$")]] = Field(default_factory=list)
    origins: list[Annotated[str, Field(pattern="^https?://[^/]+$")]] = Field(default_factory=list)


class McpSettings(HttpSettings):
    """Where agents are served."""

    listen: Annotated[str, AfterValidator(checked_address)] = "127.0.0.1:50055"


class BrokerSettings(HttpSettings):
    """Where clients of Apache Pinot are served; those that ask for brokers get `address`.

    Without it they get the one by which they asked.
    """

    listen: Annotated[str, AfterValidator(checked_address)] = "127.0.0.1:50057"
    address: Annotated[str, AfterValidator(checked_address)] | None = None


class PostgresSettings(FaceSettings):
    """Where clients of PostgreSQL are served, by `per_account` connections of each account at a time.

    Questions about tables and columns are answered by a PostgreSQL of its own without rows, with the programs in the
    folder `catalogue`; without it, by those of this machine, if there are any; `false`: they are not answered.
    """

    listen: Annotated[str, AfterValidator(checked_address)] = "127.0.0.1:50058"
    catalogue: str | Literal[False] | None = None
    per_account: int = Field(default=100, ge=1, le=1000)
