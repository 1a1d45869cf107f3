"""The configuration of the console, `console.yaml`.

    listen: 0.0.0.0:8443
    public_url: https://console.example.org
    tls: {certificate: server.pem, key: server.key}
    gateway: {address: "gris://gateway.example.org:8443", ca_file: ca.pem}
    identity:
      jwt: {discover: true, algorithms: [ES256], issuer: https://login.example.org, audience: https://gateway.example.org}
      login: {client_id: gris-console, client_secret_file: secret, resource: https://gateway.example.org}
      owners: {claim: gris_roles, equals: admin}
    owner:
      dp: {address: "dp:50051", ca_file: ca.pem}
      budget: {address: "budget:50052", ca_file: ca.pem}
      budget_admin: {address: "budget:50053", ca_file: ca.pem}

docs/console.md says what each key means.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from gris_console.openid import LogIn
from gris_console.services import OwnerAddresses, TokenSource
from gris_console.site import Site
from gris_serving.documents import Strict
from gris_serving.https_client import checked_url
from gris_serving.options import checked_address
from gris_serving.reloading_files import SecurityError
from gris_serving.tls import is_loopback
from gris_serving.tokens import JwtSettings
from pinot_connector.endpoints import Address, Credentials, Endpoint
from pinot_connector.errors import InvalidQuestion
from pinot_connector.gateway_client import gateway_address

_PORTS = {"http": 80, "https": 443}
DEFAULT_LISTEN = "127.0.0.1:50056"


def _origin(text: str) -> str:
    """Return the scheme and host of a URL that has nothing else."""
    try:
        split = urlsplit(text)
        port = split.port
    except ValueError:
        raise ValueError("expected https://HOST or https://HOST:PORT") from None
    surplus = (split.path.strip("/"), split.query, split.fragment, split.username, split.password)
    if split.scheme not in ("http", "https") or not split.hostname or any(surplus):
        raise ValueError("expected https://HOST or https://HOST:PORT")
    # Browsers leave out the port that a scheme has anyway.
    is_usual = port == _PORTS[split.scheme]
    return f"{split.scheme}://{split.netloc.lower().removesuffix(f':{port}') if is_usual else split.netloc.lower()}"


class Tls(Strict):
    """PEM files; with `client_ca` a browser without a certificate of that authority cannot connect."""

    certificate: str
    key: str
    client_ca: str | None = None


class ServiceAddress(Strict):
    """How a server is reached; what the console presents says which program calls, and never whose account."""

    address: str = Field(min_length=1)
    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None

    def credentials(self, token: TokenSource) -> Credentials:
        """Return the credentials of a call for the person whose token this is."""
        return Credentials(self.ca_file, self.certificate_file, self.key_file, token=token)

    def to_address(self, token: TokenSource) -> Address:
        """Return the address of a service; without TLS no token is sent."""
        if not self.tls and not any((self.ca_file, self.certificate_file, self.key_file)):
            return self.address
        return Endpoint(self.address, self.credentials(token))


class Owners(Strict):
    """Those whose claim `claim` is, or lists, `equals` see the owner's pages."""

    claim: str = Field(min_length=1)
    equals: str = Field(min_length=1)


class Identity(Strict):
    """Whose tokens let them in; `name_claim` says how a person is called on the pages."""

    jwt: JwtSettings
    login: LogIn | None = None
    owners: Owners | None = None
    name_claim: str = Field("sub", min_length=1)

    @model_validator(mode="after")
    def _login_is_found(self) -> Identity:
        if self.login is not None and not (self.jwt.discover and self.jwt.issuer.startswith("https://")):
            raise ValueError("login: expected jwt.discover: true, and an issuer by https://")
        return self


class OwnerServices(Strict):
    """Where the owner's pages find both services, and the administrator's address of the ledger."""

    dp: ServiceAddress
    budget: ServiceAddress
    budget_admin: ServiceAddress

    def addresses(self, token: TokenSource) -> OwnerAddresses:
        """Return the addresses as one person reaches them."""
        return OwnerAddresses(*(each.to_address(token) for each in (self.dp, self.budget, self.budget_admin)))


class ConsoleConfiguration(Strict):
    """A valid `console.yaml`."""

    gateway: ServiceAddress
    identity: Identity
    listen: Annotated[str, AfterValidator(checked_address)] = DEFAULT_LISTEN
    public_url: Annotated[str, AfterValidator(_origin)] | None = None
    tls: Tls | None = None
    insecure: bool = False
    owner: OwnerServices | None = None
    notice: str | None = Field(default=None, min_length=1, max_length=500)
    session_minutes: int = Field(default=480, ge=1, le=7 * 24 * 60)

    @model_validator(mode="after")
    def _owners_have_services(self) -> ConsoleConfiguration:
        if (self.owner is None) != (self.identity.owners is None):
            raise ValueError("expected owner and identity.owners together, or neither")
        return self

    @model_validator(mode="after")
    def _login_leads_back(self) -> ConsoleConfiguration:
        if self.identity.login is not None:
            try:
                checked_url(self.public_url or "")
            except ValueError:
                raise ValueError(
                    "public_url: expected with identity.login, by https:// (http:// only on this machine)"
                ) from None
        return self

    def require_protected(self) -> None:
        """Refuse a console whose log-ins others could read.

        Raises:
            SecurityError: A key is missing; the message names it.
        """
        if is_loopback(self.listen):
            return
        if self.tls is None and not self.insecure:
            raise SecurityError(
                "listen: others can reach this address: expected tls, or insecure: true where something before the "
                "console ends TLS"
            )
        if self.public_url is None or not self.public_url.startswith("https://"):
            raise SecurityError("public_url: expected the https:// address that browsers show")

    def gateway_address(self, token: TokenSource) -> Endpoint:
        """Return the gateway as one person reaches it.

        Raises:
            SecurityError: The address or a file cannot be used.
        """
        try:
            return gateway_address(self.gateway.address, self.gateway.credentials(token))
        except InvalidQuestion as error:
            raise SecurityError(f"gateway.address: {error.problem}") from None

    def require_readable(self) -> None:
        """Read every file of the connections once, so that a fault shows before anybody logs in.

        Raises:
            SecurityError: A file cannot be used; the message names its key.
        """
        self._require("gateway", self.gateway_address(_no_token))
        if self.owner is not None:
            found = self.owner.addresses(_no_token)
            for name, address in (("dp", found.dp), ("budget", found.budget), ("budget_admin", found.admin)):
                self._require(f"owner.{name}", address)

    def _require(self, key: str, address: Address) -> None:
        if isinstance(address, Endpoint):
            try:
                address.credentials.for_channel()
            except InvalidQuestion as error:
                raise SecurityError(f"{key}.{error.field}: {error.problem}") from None

    def site(self, port: int) -> Site:
        """Return where browsers find the console, once its port is known."""
        if self.public_url is not None:
            return Site(frozenset((self.public_url,)))
        return Site.on_this_machine(port, secure=self.tls is not None)


def _no_token() -> str:
    return ""


@dataclass(frozen=True)
class ListenOptions:
    """Where the console listens, and with which PEM files; without them in plain text."""

    address: str
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None

    @classmethod
    def of(cls, configuration: ConsoleConfiguration) -> ListenOptions:
        """Return what a configuration says."""
        tls = configuration.tls
        if tls is None:
            return cls(configuration.listen)
        client_ca = None if tls.client_ca is None else Path(tls.client_ca)
        return cls(configuration.listen, Path(tls.certificate), Path(tls.key), client_ca)
