"""Which role each method requires, and who has it.

    certificates:                               # names in clients' certificates, each with its kind
      "uri:spiffe://example.org/gris/app": [spend, read]
      "dns:ops.example.org": [read, admin]
      "dns:ledger.eu.example.org": [spend, read, "region:eu"]
    jwt:                                        # or tokens, whose claim lists roles
      key_file: /etc/gris/issuer.jwks           # or keys_url, or discover: true
      algorithms: [ES256]
      issuer: https://login.example.org
      audience: gris-budget
      roles_claim: gris_roles

A caller has every role that one of its names has, or that its token lists. A method without a role is refused. The role
`region:NAME` is that of one region, and lets its caller speak for no other one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import grpc
from pydantic import AfterValidator, Field, model_validator

from gris_serving.admission import (
    Admission,
    Handler,
    Surrounding,
    decoded_once_admitted,
    read_once_admitted,
    refuse,
)
from gris_serving.documents import Strict, read_content
from gris_serving.identity import Context, bearer_token, certificate_names, sender_of
from gris_serving.instrumentation import Instrumentation
from gris_serving.reloading_files import ReloadingFiles, read_bytes
from gris_serving.slow_callers import SlowCallerError, SlowCallerLimit, refuse_slow, with_timeout
from gris_serving.tokens import JwtSettings, TokenError, TokenVerifier

# How long a call of health or reflection may wait for its caller, and how many of them may be sending a request. Anyone
# may call these methods, and a request that is half sent takes memory up to the server's limit.
OPEN_CALL_SECONDS = 60.0
OPEN_READERS = 24


class Role(StrEnum):
    """What a caller may do: `SPEND` releases and charges, `READ` changes nothing, `ADMIN` sets limits and audits.

    `REGION` borrows budgets from a home ledger and says what was charged from them. Nobody has it for all regions: a
    caller's role is `region:NAME`.
    """

    SPEND = "spend"
    READ = "read"
    ADMIN = "admin"
    REGION = "region"


# The names of regions are those that a region's configuration may have.
_ONE_REGION = re.compile(rf"{Role.REGION}:([a-z0-9-]{{1,32}})")


def _known_role(name: str) -> str:
    if name in (Role.SPEND, Role.READ, Role.ADMIN) or _ONE_REGION.fullmatch(name):
        return name
    raise ValueError("expected spend, read, admin, or region:NAME, where NAME is the region's")


RoleName = Annotated[str, AfterValidator(_known_role)]
CertificateName = Annotated[str, Field(pattern="^(uri|dns|email):.")]


class RoleTokens(JwtSettings):
    """Tokens whose claim `roles_claim` lists roles; anything else that it lists is ignored."""

    roles_claim: str = Field("gris_roles", min_length=1)


class Access(Strict):
    """A valid access file."""

    certificates: dict[CertificateName, list[RoleName]] = Field(default_factory=dict)
    jwt: RoleTokens | None = None

    @model_validator(mode="after")
    def _lets_somebody_in(self) -> Access:
        if not self.certificates and self.jwt is None:
            raise ValueError("expected certificates, jwt or both: nobody could call")
        return self


@dataclass(frozen=True)
class Methods:
    """The role that each method ("/package.Service/Method") requires, and the domain of their errors."""

    domain: str
    roles: Mapping[str, Role]


class Callers:
    """Who has which role, by an access file that is reloaded when it changes.

    Raises:
        SecurityError: The file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._verifier: TokenVerifier | None = None
        self._instrumentation: Instrumentation | None = None
        self._access = ReloadingFiles("access", [path], lambda: self._read(path))

    def start(self, instrumentation: Instrumentation) -> None:
        """Begin to fetch the keys of tokens, if their issuer publishes them, also of access files to come."""
        self._instrumentation = instrumentation
        if (verifier := self._access.value().verifier) is not None:
            verifier.start(instrumentation)

    def _read(self, path: Path) -> _Opened:
        access = read_content(read_bytes(path), str(path), Access)
        # Keys that have been fetched from the same address outlive a change of the file.
        verifier = None if access.jwt is None else TokenVerifier(access.jwt, before=self._verifier)
        if verifier is not None and self._instrumentation is not None:
            verifier.start(self._instrumentation)
        self._verifier = verifier
        return _Opened(access, verifier)

    @property
    def wants_certificates(self) -> bool:
        """Whether names in certificates have roles."""
        return bool(self._access.value().access.certificates)

    def roles(self, context: Context) -> frozenset[str] | None:
        """Return the roles of a caller, None if it has neither certificate nor token.

        Raises:
            TokenError: Its token is not accepted.
        """
        opened, sender = self._access.value(), sender_of(context)
        names = certificate_names(sender)
        token = bearer_token(sender) if opened.verifier is not None else None
        if not names and token is None:
            return None
        listed = [opened.access.certificates.get(name, ()) for name in names]
        return frozenset(role for roles in listed for role in roles) | opened.roles_of(token)

    def names(self, context: Context, role: Role | None) -> tuple[str, ...]:
        """Return the names by which a caller has a role: of its certificate, and `sub:` with the subject of its token.

        Args:
            context: The call.
            role: The role; None: all names, whatever roles they have.

        Raises:
            TokenError: Its token is not accepted.
        """
        opened, sender = self._access.value(), sender_of(context)
        listed = opened.access.certificates
        shown = sorted(certificate_names(sender))
        named = [each for each in shown if role is None or role in listed.get(each, ())]
        token = bearer_token(sender) if opened.verifier is not None else None
        return (*named, *opened.subjects_of(token, role))

    def regions(self, context: Context) -> frozenset[str]:
        """Return the names of the regions for which a caller may speak.

        Raises:
            TokenError: Its token is not accepted.
        """
        return _regions(self.roles(context) or frozenset())


@dataclass(frozen=True)
class _Opened:
    access: Access
    verifier: TokenVerifier | None

    def roles_of(self, token: str | None) -> frozenset[str]:
        return self._listed(self._claims(token))

    def subjects_of(self, token: str | None, role: Role | None) -> tuple[str, ...]:
        """Return the subject of a token that has a role, with its kind; none if the token does not say whose it is."""
        claims = self._claims(token)
        subject = claims.get("sub")
        is_named = isinstance(subject, str) and subject.strip()
        return (f"sub:{subject}",) if is_named and (role is None or role in self._listed(claims)) else ()

    def _claims(self, token: str | None) -> Mapping[str, Any]:
        return {} if token is None or self.verifier is None else self.verifier.claims(token)

    def _listed(self, claims: Mapping[str, Any]) -> frozenset[str]:
        listed = claims.get(self.access.jwt.roles_claim) if self.access.jwt is not None else None
        return (
            frozenset(each for each in listed if isinstance(each, str))
            if isinstance(listed, list)
            else frozenset()
        )


class Authorisation(Admission):
    """Admits a call if its caller has the role that the method requires.

    Args:
        methods: The role that each method requires.
        callers: Who has which role.
        instrumentation: Records calls that are not admitted.
        reads_first: Whether requests are read, but not decoded, before their caller is known. It makes calls quicker
            and is meant for servers that take small messages only.
    """

    def __init__(
        self, methods: Methods, callers: Callers, instrumentation: Instrumentation, *, reads_first: bool
    ) -> None:
        super().__init__(instrumentation)
        self._methods = methods
        self._callers = callers
        self._reads_first = reads_first
        self._open_readers = SlowCallerLimit(OPEN_READERS)

    def surrounded(self, handler: Handler, admitted: Surrounding) -> Handler:
        """Return a handler that does the same inside `admitted`."""
        surround = decoded_once_admitted if self._reads_first else read_once_admitted
        return surround(handler, admitted)

    def opened(self, handler: Handler) -> Handler:
        """Return the handler of an open method, for which few callers at a time may be sending a request."""
        return with_timeout(handler, self._open_to_all, OPEN_CALL_SECONDS, self._open_readers)

    @asynccontextmanager
    async def _open_to_all(self, context: Context) -> AsyncIterator[None]:
        try:
            yield
        except SlowCallerError as error:
            await refuse_slow(context, error, self._methods.domain)

    @asynccontextmanager
    async def admitted(self, method: str, context: Context) -> AsyncIterator[None]:
        """Surround a call; end it with UNAUTHENTICATED or PERMISSION_DENIED if it is not admitted."""
        refused = partial(refuse, context, domain=self._methods.domain)
        try:
            roles = self._callers.roles(context)
        except TokenError as error:
            await refused(grpc.StatusCode.UNAUTHENTICATED, str(error), reason="TOKEN_REFUSED")
        if roles is None:
            message = "expected a certificate or a token that says who calls"
            await refused(grpc.StatusCode.UNAUTHENTICATED, message, reason="CALLER_UNKNOWN")
        wanted = self._methods.roles.get(method)
        if wanted is None or not _has(wanted, roles):
            message = f"this method asks for the role {wanted}" if wanted else "nobody may call this method"
            await refused(grpc.StatusCode.PERMISSION_DENIED, message, reason="ROLE_MISSING")
        yield


def _has(wanted: Role, roles: frozenset[str]) -> bool:
    # Which region a caller speaks for is in the request, so the method itself compares it.
    return bool(_regions(roles)) if wanted is Role.REGION else wanted in roles


def _regions(roles: frozenset[str]) -> frozenset[str]:
    return frozenset(found[1] for each in roles if (found := _ONE_REGION.fullmatch(each)))


def methods_of(service: str, names: Iterable[str], role: Role) -> dict[str, Role]:
    """Return the same role for several methods of a service."""
    return {f"/{service}/{name}": role for name in names}
