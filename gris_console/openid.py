"""The console as a client of an OpenID provider: the authorization code flow with PKCE.

People log in at the provider, which sends their browser back with a code. The console exchanges the code for the token
that the gateway accepts. Only the code is ever in a browser, and nobody can use it who does not have the verifier.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from oauthlib.common import add_params_to_uri, generate_token
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient
from pydantic import Field, field_validator

from gris_serving.documents import Strict
from gris_serving.https_client import FetchError, SentForm
from gris_serving.published_keys import PublishedKeys
from gris_serving.reloading_files import ReloadingFiles, SecurityError, read_bytes
from gris_serving.tokens import TokenError, TokenVerifier

CALLBACK = "/login/callback"
# Codes that are exchanged at a time: a provider that is slow keeps no more threads.
MOST_EXCHANGES = 16
# Of one source: a stranger may send made-up codes.
MOST_OF_SOURCE = 4
WAITING_SECONDS = 5.0
_LENGTH = 64
_ERROR = re.compile("[a-z_]{1,40}")


class Failure(StrEnum):
    """Why a log-in at the provider let nobody in, as addresses of pages say it."""

    NOT_BEGUN = "not_begun"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    UNEXPECTED = "unexpected"
    TOKEN = "token"  # noqa: S105 - no secret


class LogInError(Exception):
    """A log-in at the provider lets nobody in; the message is for the log, and shows nothing that was sent."""

    def __init__(self, failure: Failure, problem: str) -> None:
        super().__init__(problem)
        self.failure = failure


def _secret() -> str:
    return str(generate_token(_LENGTH))


@dataclass(frozen=True)
class Attempt:
    """What binds the answer of the provider to one log-in of one browser. The verifier stays on this server."""

    state: str = field(default_factory=_secret, repr=False)
    nonce: str = field(default_factory=_secret, repr=False)
    verifier: str = field(default_factory=_secret, repr=False)


class LogIn(Strict):
    """How people log in at the issuer of tokens by their browser: what it knows the console by, and is asked for.

    Without a secret the console is a public client. `resource` says which server a token is for (RFC 8707), where the
    provider does not know that by the scopes.
    """

    client_id: str = Field(min_length=1)
    client_secret_file: str | None = None
    name: str = Field("your organisation's account", min_length=1, max_length=80)
    scopes: list[Annotated[str, Field(pattern=r"^[!#-\[\]-~]+$")]] = Field(["openid"])
    resource: str | None = Field(None, min_length=1)

    @field_validator("scopes")
    @classmethod
    def _has_id_token(cls, scopes: list[str]) -> list[str]:
        if "openid" not in scopes:
            raise ValueError("expected openid among them")
        return scopes


class OpenIdClient:
    """Sends people to the provider, and takes the token of who comes back.

    Args:
        settings: What the provider knows this console by.
        verifier: Accepts the provider's tokens.
        published: The provider.
        public_url: Where browsers find this console.

    Raises:
        SecurityError: The file of the secret cannot be used.
    """

    def __init__(
        self, settings: LogIn, verifier: TokenVerifier, published: PublishedKeys, public_url: str
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._verifier = verifier
        self._published = published
        self._public_url = public_url
        self._redirect_uri = public_url + CALLBACK
        self._turns = asyncio.Semaphore(MOST_EXCHANGES)
        self._of_sources = WeakValueDictionary[str, asyncio.Semaphore]()
        # By default there are only as many threads as the machine has processors, and four.
        self._threads = ThreadPoolExecutor(MOST_EXCHANGES)
        paths = [] if settings.client_secret_file is None else [Path(settings.client_secret_file)]
        self._secret = ReloadingFiles("secret of the log-in", paths, lambda: [*map(_read_secret, paths)])

    def address(self, attempt: Attempt) -> str:
        """Return where a browser goes to log in.

        Raises:
            LogInError: The provider has not said where.
        """
        client = WebApplicationClient(self._settings.client_id)
        return str(
            client.prepare_request_uri(
                self._endpoint("authorization_endpoint"),
                redirect_uri=self._redirect_uri,
                scope=" ".join(self._settings.scopes),
                state=attempt.state,
                nonce=attempt.nonce,
                code_challenge=client.create_code_challenge(attempt.verifier, "S256"),
                code_challenge_method="S256",
                resource=self._settings.resource,
            )
        )

    def log_out_address(self) -> str:
        """Return where people log out at the provider too; empty: nowhere. No token is in it, so it may ask them."""
        try:
            endpoint = self._endpoint("end_session_endpoint")
        except LogInError:
            return ""
        back = ("post_logout_redirect_uri", f"{self._public_url}/sign-in")
        return str(add_params_to_uri(endpoint, [("client_id", self._settings.client_id), back]))

    async def token(self, attempt: Attempt, answer: Mapping[str, str], source: str = "") -> str:
        """Return the token for what the provider has answered to an attempt by the browser that made it.

        Args:
            attempt: The attempt.
            answer: What the provider has answered.
            source: Where that browser is; empty: not known, so that no bound of its own holds.

        Raises:
            LogInError: There is none.
        """
        self._require_issuer(answer.get("iss"))
        if "error" in answer:
            raise LogInError(Failure.REFUSED, f"the provider refused: {_word(answer['error'])}")
        if not answer.get("code"):
            raise LogInError(Failure.UNEXPECTED, "the provider sent no code")
        async with self._turn(source):
            loop = asyncio.get_running_loop()
            granted = await loop.run_in_executor(self._threads, self._granted, attempt, answer["code"])
        self._require_meant(granted.get("id_token"), attempt.nonce)
        token = granted.get("access_token")
        if not isinstance(token, str) or str(granted.get("token_type")).lower() != "bearer":
            raise LogInError(Failure.UNEXPECTED, "the provider gave no bearer token")
        return token

    @asynccontextmanager
    async def _turn(self, source: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it while the block runs. Raises LogInError."""
        own = self._of_sources.setdefault(source, asyncio.Semaphore(MOST_OF_SOURCE))
        async with AsyncExitStack() as had:
            try:
                async with asyncio.timeout(WAITING_SECONDS):
                    for each in (own, self._turns) if source else (self._turns,):
                        await had.enter_async_context(each)
            except TimeoutError:
                raise LogInError(Failure.UNREACHABLE, "too many codes are being exchanged") from None
            yield

    def _require_issuer(self, stated: str | None) -> None:
        """Refuse what another provider has sent (RFC 9207); older ones do not say who they are."""
        document = self._published.document()
        is_stated = (
            stated is not None or document.get("authorization_response_iss_parameter_supported") is True
        )
        if is_stated and stated != self._published.address.issuer:
            raise LogInError(Failure.UNEXPECTED, "the answer is not from the issuer")

    def _granted(self, attempt: Attempt, code: str) -> Mapping[str, Any]:
        """Exchange a code, once."""
        client = WebApplicationClient(self._settings.client_id)
        body = client.prepare_request_body(
            code=code,
            redirect_uri=self._redirect_uri,
            code_verifier=attempt.verifier,
            resource=self._settings.resource,
        )
        endpoint = self._endpoint("token_endpoint")
        try:
            content = self._published.send(endpoint, SentForm(*self._authenticated(body)))
        except FetchError as error:
            raise LogInError(Failure.UNREACHABLE, f"the code could not be exchanged: {error}") from None
        try:
            granted: Mapping[str, Any] = client.parse_request_body_response(content.decode())
        except OAuth2Error as error:
            problem = f"the provider did not exchange the code: {_word(error.error)}"
            raise LogInError(Failure.UNEXPECTED, problem) from None
        except Exception:
            # Whatever a provider sends, its text is in no log.
            raise LogInError(Failure.UNEXPECTED, "the provider's tokens cannot be read") from None
        return granted

    def _authenticated(self, body: str) -> tuple[str, Mapping[str, str]]:
        """Return a form and its headers with the secret of this console, as the provider takes it."""
        secrets = self._secret.value()
        if not secrets:
            return body, {}
        methods = self._published.document().get("token_endpoint_auth_methods_supported")
        if isinstance(methods, list) and "client_secret_basic" not in methods:
            return f"{body}&client_secret={quote(secrets[0], safe='')}", {}
        pair = ":".join(quote(each, safe="") for each in (self._settings.client_id, secrets[0]))
        return body, {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    def _require_meant(self, id_token: Any, nonce: str) -> None:
        """Refuse an ID token that was not made for this log-in: another one's answer was put in its place."""
        try:
            shown = id_token if isinstance(id_token, str) else ""
            claims = self._verifier.claims(shown, audience=self._settings.client_id)
        except TokenError as error:
            raise LogInError(Failure.UNEXPECTED, f"ID token: {error}") from None
        if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
            raise LogInError(Failure.UNEXPECTED, "ID token: expected the nonce of this log-in")
        if claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise LogInError(Failure.UNEXPECTED, "ID token: it was issued to another client (azp)")

    def _endpoint(self, name: str) -> str:
        try:
            return self._published.endpoint(name)
        except FetchError:
            problem = f"no discovery document that names {name} is here"
            raise LogInError(Failure.UNREACHABLE, problem) from None


def _word(error: object) -> str:
    """Return the code of an error, such as `access_denied`, if it is none of a stranger's texts."""
    return error if isinstance(error, str) and _ERROR.fullmatch(error) else "unknown"


def _read_secret(path: Path) -> str:
    try:
        secret = read_bytes(path).decode("ascii").strip()
    except ValueError:
        secret = ""
    if not secret:
        raise SecurityError(f"{path}: expected the secret of this console at the provider, in ASCII")
    return secret
