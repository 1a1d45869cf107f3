"""The configuration of the gateway, `gateway.yaml`.

    listen: 0.0.0.0:8443
    tls: {certificate: server.pem, key: server.key, client_ca: clients.pem}
    dp: {address: dp:50051, ca_file: ca.pem, certificate_file: app.pem, key_file: app.key}
    budget: {address: budget:50052, ca_file: ca.pem, certificate_file: app.pem, key_file: app.key}
    engine:
      pinot: {broker: https://broker:8099, controller: https://controller:9000, authorization_file: pinot.auth}
    identity:
      certificates:
        "uri:spiffe://example.org/analyst/ana": [app, acme, ana]
      jwt:
        key_file: issuer.jwks
        algorithms: [ES256]
        issuer: https://login.example.org
        audience: gris-gateway
        accounts:
          - {claim: org, equals: acme, prefix: [app, acme], append: sub}
    audiences:
      - {accounts: [app, acme], audience: advertiser, values: {advertiser: "account[1]"}}
    releases: {file: /var/lib/gris/releases.sqlite, key_file: releases.key}
    history: {retention_days: 35}
    mcp: {listen: 0.0.0.0:8444, hosts: [gateway.example.org]}
    page:
      listen: unix:/run/gris/page.sock
      address: https://ask.example.org
      proxy: {header: X-Forwarded-User, account: [app, acme]}
    limits: {per_second: 50, burst: 200, concurrent: 32, waiting: 64}
    timeouts: {engine: 45, budget_silence: 0.2}

`engine` names one engine: `pinot`, or `duckdb` with the file of each table. `docs/gateway-reference.md` says what each
key means.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from gris_gateway.accounts import MAX_SEGMENTS, Prefix
from gris_gateway.face_settings import (
    BrokerSettings,
    FaceSettings,
    HttpSettings,
    McpSettings,
    PostgresSettings,
    Tls,
)
from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits
from gris_gateway.page_settings import PageSettings
from gris_gateway.rate_limits import CallerLimits
from gris_serving.authorisation import CertificateName
from gris_serving.documents import Strict
from gris_serving.options import LARGEST_PORT, checked_address, is_port
from gris_serving.reloading_files import SecurityError
from gris_serving.tls import is_loopback, require_usable
from gris_serving.tokens import JwtSettings
from pinot_connector.channels import Timeouts
from pinot_connector.endpoints import Address, Credentials, Endpoint, require_target
from pinot_connector.errors import InvalidQuestion

_QUESTION = Timeouts()


def _target(text: str) -> str:
    """Return a service's address in one of gRPC's forms, with its ports checked; gRPC resolves the names."""
    try:
        require_target(text)
    except InvalidQuestion as error:
        raise ValueError(error.problem) from None
    for each in text.rpartition("/")[2].split(","):
        _, colon, port = each.rpartition(":")
        if colon and not is_port(port):
            raise ValueError(f"expected a port from 0 to {LARGEST_PORT}")
    return text


def _url(text: str) -> str:
    try:
        _ = urlsplit(text).port
    except ValueError:
        raise ValueError(f"expected a URL with a port from 0 to {LARGEST_PORT}") from None
    return text


Url = Annotated[str, AfterValidator(_url)]


class Service(Strict):
    """The address of a service; with `tls` or any file the connection has TLS."""

    address: Annotated[str, Field(min_length=1), AfterValidator(_target)]
    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    token_file: str | None = None

    def to_address(self) -> Address:
        """Return the address as the connector takes it."""
        files = (self.ca_file, self.certificate_file, self.key_file, self.token_file)
        if not self.tls and not any(files):
            return self.address
        return Endpoint(self.address, Credentials(*files))

    def require_readable(self, key: str) -> None:
        """Check the files.

        Raises:
            SecurityError: A file cannot be used; the message names its key below `key`.
        """
        address = self.to_address()
        if isinstance(address, Endpoint):
            try:
                address.credentials.for_channel()
            except InvalidQuestion as error:
                raise SecurityError(f"{key}.{error.field}: {error.problem}") from None
            try:
                require_usable(*map(_path, (self.ca_file, self.certificate_file, self.key_file)))
            except SecurityError as error:
                raise SecurityError(f"{key}: {error}") from None


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


class Pinot(Strict):
    """A Pinot cluster; `authorization_file` holds the header's value, `certificate_file` a certificate with its key."""

    broker: Url
    controller: Url
    authorization_file: str | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    server_admin: bool = False
    server_admin_port: int | None = Field(default=None, ge=1, le=LARGEST_PORT)
    settle_seconds: float = Field(default=60.0, ge=0, le=86_400)


class EngineChoice(Strict):
    """Exactly one engine."""

    pinot: Pinot | None = None
    duckdb: Annotated[dict[str, str], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> EngineChoice:
        if (self.pinot is None) == (self.duckdb is None):
            raise ValueError("expected one of pinot, duckdb")
        return self


class CertificateRule(Strict):
    """The account of a certificate; a list of segments alone is a rule with no other keys.

    Only with `accounts_below` may its holder name accounts below that one.
    """

    account: Prefix
    accounts_below: bool = False

    @model_validator(mode="before")
    @classmethod
    def _may_be_short(cls, rule: object) -> object:
        return {"account": rule} if isinstance(rule, list) else rule


class AccountRule(Strict):
    """Tokens whose claim `claim` is, or lists, `equals` have the account `prefix`, and below it the claim `append`.

    Only with `accounts_below` may their callers name accounts below that one.
    """

    claim: str = Field(min_length=1)
    equals: str
    prefix: Prefix
    append: str | None = Field(None, min_length=1)
    accounts_below: bool = False

    @model_validator(mode="after")
    def _leaves_room(self) -> AccountRule:
        if self.append is not None and len(self.prefix) == MAX_SEGMENTS:
            raise ValueError(f"prefix: an account has at most {MAX_SEGMENTS} segments, append included")
        return self


class Tokens(JwtSettings):
    """Whose tokens are accepted, and which account each has: the first rule that matches counts."""

    accounts: list[AccountRule] = Field(min_length=1)


_SEGMENTS = frozenset(f"account[{number}]" for number in range(MAX_SEGMENTS))


def _named_segment(text: str) -> str:
    """Return the name of a segment of the caller's account."""
    if text not in _SEGMENTS:
        raise ValueError(f"expected account[0] to account[{MAX_SEGMENTS - 1}], got {text[:40]!r}")
    return text


class AudienceRule(Strict):
    """The audience of the policy that an account, and all below it, is of.

    `values` gives the names in it segments of the caller's own account, counted from 0: `account[1]`.
    """

    accounts: Prefix
    audience: str = Field(min_length=1)
    values: dict[str, Annotated[str, AfterValidator(_named_segment)]] = Field(default_factory=dict)

    @property
    def segments(self) -> dict[str, int]:
        """The place of each value in the account."""
        return {name: int(text[len("account[") : -1]) for name, text in self.values.items()}


class IdentityRules(Strict):
    """How callers are identified."""

    certificates: dict[CertificateName, CertificateRule] = Field(default_factory=dict)
    jwt: Tokens | None = None

    @model_validator(mode="after")
    def _lets_somebody_in(self) -> IdentityRules:
        if not self.certificates and self.jwt is None:
            raise ValueError("expected certificates, jwt or both: nobody could call")
        return self


class HistorySettings(Strict):
    """How results are listed, from the release store."""

    retention_days: int = Field(default=35, ge=1, le=3660)
    per_account: int = Field(default=1000, ge=1, le=100_000)
    megabytes: int = Field(default=1024, ge=16, le=1_000_000)


class ReleaseSettings(Strict):
    """Where releases are kept, encrypted: in a SQLite `file`, or in the PostgreSQL database of `connection_file`.

    Without either they are kept in memory.
    """

    file: str | None = None
    connection_file: str | None = None
    key_file: str | None = None
    previous_key_files: list[str] = Field(default_factory=list, max_length=3)

    @model_validator(mode="after")
    def _is_encrypted(self) -> ReleaseSettings:
        if self.file is not None and self.connection_file is not None:
            raise ValueError("expected one of file, connection_file")
        if (self.file is None and self.connection_file is None) != (self.key_file is None):
            raise ValueError("expected key_file with file or connection_file, and only then")
        if self.previous_key_files and self.key_file is None:
            raise ValueError("previous_key_files: expected key_file too")
        return self


class LimitSettings(Strict):
    """The limits of one caller: calls a second on average, calls at once after a pause, calls under way and waiting."""

    per_second: float = Field(default=50.0, gt=0, le=10_000)
    burst: int = Field(default=200, ge=1, le=10_000)
    concurrent: int = Field(default=32, ge=1, le=10_000)
    waiting: int = Field(default=64, ge=0, le=10_000)

    def of_a_caller(self) -> CallerLimits:
        """Return the limits."""
        return CallerLimits(self.per_second, self.burst, self.concurrent, self.waiting)


class TimeoutSettings(Strict):
    """How long the parts of a question may take, and how long the gateway waits for others, all in seconds."""

    dp: float = Field(default=_QUESTION.dp, ge=0.1, le=600)
    engine: float = Field(default=_QUESTION.engine, ge=0.1, le=600)
    budget_attempt: float = Field(default=_QUESTION.budget_attempt, ge=0.05, le=60)
    budget: float = Field(default=_QUESTION.budget, ge=0.05, le=600)
    budget_silence: float = Field(default=_QUESTION.budget_silence, ge=0.05, le=60)
    budget_held: float = Field(default=_QUESTION.budget_held, ge=0, le=3600)
    reservation: int = Field(default=_QUESTION.reservation, ge=1, le=600)
    data_version: float = Field(default=_QUESTION.data_version, ge=0, le=60)
    account_open: float = Field(default=_QUESTION.account_open, ge=0, le=60)
    caller: float = Field(default=DEFAULT_LIMITS.caller_timeout_seconds, ge=1, le=3600)
    handshake: float = Field(default=DEFAULT_LIMITS.handshake_seconds, ge=1, le=120)
    unfinished: float = Field(default=DEFAULT_LIMITS.slowest_call_seconds, ge=1, le=86_400)
    grace: float = Field(default=DEFAULT_LIMITS.grace_seconds, ge=0, le=3600)
    health_interval: float = Field(default=DEFAULT_LIMITS.health_interval_seconds, ge=0.1, le=3600)
    health: float = Field(default=DEFAULT_LIMITS.health_timeout_seconds, ge=0.1, le=60)

    @model_validator(mode="after")
    def _fit_together(self) -> TimeoutSettings:
        if self.reservation <= self.engine:
            raise ValueError(
                "reservation: expected longer than engine: it holds the budget while the engine runs"
            )
        if self.budget_attempt > self.budget:
            raise ValueError("budget_attempt: expected at most budget, which bounds all attempts of a charge")
        return self

    def of_a_question(self) -> Timeouts:
        """Return the time-outs of the connector."""
        return Timeouts(
            dp=self.dp,
            engine=self.engine,
            budget_attempt=self.budget_attempt,
            budget=self.budget,
            budget_silence=self.budget_silence,
            budget_held=self.budget_held,
            reservation=self.reservation,
            data_version=self.data_version,
            account_open=self.account_open,
        )

    def applied_to(self, limits: GatewayLimits) -> GatewayLimits:
        """Return limits with the time-outs that the configuration states."""
        names = {
            "caller": "caller_timeout_seconds",
            "handshake": "handshake_seconds",
            "unfinished": "slowest_call_seconds",
            "grace": "grace_seconds",
            "health_interval": "health_interval_seconds",
            "health": "health_timeout_seconds",
        }
        stated = names.keys() & self.model_fields_set
        return replace(limits, **{names[key]: getattr(self, key) for key in stated})


class GatewayConfiguration(Strict):
    """A valid `gateway.yaml`."""

    dp: Service
    budget: Service
    engine: EngineChoice
    identity: IdentityRules
    audiences: list[AudienceRule] = Field(default_factory=list, min_length=1)
    listen: Annotated[str, AfterValidator(checked_address)] = "127.0.0.1:50054"
    tls: Tls | None = None
    insecure: bool = False
    reflection: bool = False
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    history: HistorySettings = HistorySettings()
    releases: ReleaseSettings = ReleaseSettings()
    mcp: McpSettings | None = None
    broker: BrokerSettings | None = None
    postgres: PostgresSettings | None = None
    page: PageSettings | None = None
    limits: LimitSettings = LimitSettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    reserve_first: bool = True

    def require_protected(self) -> None:
        """Refuse a gateway that could not identify its callers, or whose tokens and results others could read.

        Raises:
            SecurityError: A key is missing; the message names it.
        """
        if self.identity.certificates and (self.tls is None or self.tls.client_ca is None):
            raise SecurityError("identity.certificates: expected tls with client_ca")
        if self.tls is None and not self.insecure and not is_loopback(self.listen):
            raise SecurityError(
                "listen: others can reach this address: expected tls, or insecure: true where something before the "
                "gateway ends TLS"
            )
        for name, settings in self.faces.items():
            self._require_protected_face(name, settings)

    @property
    def faces(self) -> dict[str, FaceSettings]:
        """What is served beside gRPC, by the keys that describe it."""
        settings: dict[str, FaceSettings | None] = {
            "mcp": self.mcp,
            "broker": self.broker,
            "postgres": self.postgres,
            "page": self.page,
        }
        return {name: each for name, each in settings.items() if each is not None}

    def tls_of(self, settings: FaceSettings) -> Tls | None:
        """Return the TLS of an address."""
        if isinstance(settings, PageSettings) and settings.is_unix:
            return None
        if settings.tls is None:
            return self.tls
        return settings.tls or None

    def _require_protected_face(self, name: str, settings: FaceSettings) -> None:
        tls = self.tls_of(settings)
        if isinstance(settings, PageSettings):
            is_over_tcp = settings.proxy is not None and not settings.is_unix
            if is_over_tcp and (tls is None or tls.client_ca is None):
                raise SecurityError(f"{name}.tls: expected client_ca: by its certificate the proxy is known")
            return
        by_certificate = bool(self.identity.certificates) and tls is not None and tls.client_ca is not None
        if self.identity.jwt is None and not by_certificate:
            raise SecurityError(
                f"{name}: expected identity.jwt, or tls with client_ca: nobody could be known here"
            )
        if is_loopback(settings.listen):
            return
        if tls is None and not self.insecure:
            raise SecurityError(
                f"{name}.listen: others can reach this address: expected tls, or insecure: true where something before "
                "the gateway ends TLS"
            )
        if isinstance(settings, HttpSettings) and not settings.hosts:
            raise SecurityError(f"{name}.hosts: expected the names by which callers reach this address")
