"""JSON Web Tokens: which ones are accepted.

A token counts only if it is signed by a key of its issuer under an algorithm that the configuration names, is meant for
this audience, comes from this issuer and has not expired. Only asymmetric algorithms can be named, so neither `none`
nor a public key taken for a shared secret is ever tried. The keys are in a file, or fetched from where the issuer
publishes them: at an address that the configuration pins, or at the one that the issuer's discovery document names.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from pydantic import AfterValidator, Field, model_validator

from gris_serving.documents import Strict
from gris_serving.https_client import checked_url
from gris_serving.instrumentation import NOTHING, Instrumentation
from gris_serving.public_keys import Algorithm, PublicKey, VerificationKey, keys_of_file
from gris_serving.published_keys import (
    DEFAULT_LIMITS,
    KeyAddress,
    PublishedKeys,
    RefreshLimits,
    discovery_url,
)
from gris_serving.reloading_files import ReloadingFiles

MAX_TOKEN_CHARACTERS = 8192
_MOST_VERIFIED = 1000

_OF_PUBLISHED_KEYS = frozenset(("ca_file", "keys_refresh_seconds", "keys_max_age_seconds"))


class JwtSettings(Strict):
    """Whose tokens are accepted, and where the issuer's keys are: exactly one of `key_file`, `keys_url`, `discover`.

    `key_file` holds one PEM public key or certificate, or a JWKS; at `keys_url` is a JWKS; with `discover` the issuer's
    discovery document says where. `ca_file` is the authority of that server (PEM), if not one of the system's.
    """

    key_file: str | None = None
    keys_url: Annotated[str, AfterValidator(checked_url)] | None = None
    discover: bool = False
    ca_file: str | None = None
    keys_refresh_seconds: int = Field(300, ge=30, le=3600)
    keys_max_age_seconds: int = Field(86_400, ge=3600, le=604_800)
    algorithms: list[Algorithm] = Field(min_length=1)
    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    leeway_seconds: int = Field(30, ge=0, le=300)

    @model_validator(mode="after")
    def _has_keys(self) -> JwtSettings:
        if (self.key_file is not None) + (self.keys_url is not None) + self.discover != 1:
            raise ValueError("expected exactly one of key_file, keys_url, discover: true")
        if self.key_file is not None and (surplus := sorted(_OF_PUBLISHED_KEYS & self.model_fields_set)):
            raise ValueError(f"{', '.join(surplus)}: expected only with keys_url or discover")
        if self.discover:
            self._require_discoverable()
        return self

    def _require_discoverable(self) -> None:
        try:
            checked_url(self.issuer)
        except ValueError as error:
            raise ValueError(f"issuer: {error}, for discover is true") from None
        if "?" in self.issuer:
            raise ValueError("issuer: expected no query, for discover is true")

    def key_address(self) -> KeyAddress:
        """Return where the keys are that are not in a file."""
        return KeyAddress(
            url=self.keys_url or discovery_url(self.issuer),
            discover=self.discover,
            issuer=self.issuer,
            ca_file=self.ca_file,
            refresh_seconds=self.keys_refresh_seconds,
            max_age_seconds=self.keys_max_age_seconds,
        )


class TokenError(Exception):
    """A token that is not accepted; the message says why and shows nothing of it."""


class _Verified(NamedTuple):
    """What a token says, its keys, and when it expires."""

    claims: Mapping[str, Any]
    keys: tuple[VerificationKey, ...]
    until: float


def is_or_lists(claimed: object, wanted: str) -> bool:
    """Return whether a claim is a text, or is a list with it: groups and roles come as both."""
    return claimed == wanted or (isinstance(claimed, list) and wanted in claimed)


class TokenVerifier:
    """Verifies tokens as the settings say. A key file is reloaded when it changes.

    Keys that are published are fetched once `start` is called, and no token is accepted before they are there.

    Args:
        settings: Which tokens are accepted.
        before: The verifier that this one replaces. Keys that it has from the same address stay in force.
        limits: The time-outs of fetching keys.

    Raises:
        SecurityError: The key file, or the file of authorities, cannot be used.
    """

    def __init__(
        self,
        settings: JwtSettings,
        *,
        before: TokenVerifier | None = None,
        limits: RefreshLimits = DEFAULT_LIMITS,
    ) -> None:
        self._settings = settings
        self.published = _published(settings, before, limits)
        """The issuer's server; None: its keys are in a file."""
        self._keys = _keys_in_file(settings) if self.published is None else self.published.value
        # A caller shows the same token with each call: its signature is verified once under the same keys.
        self._verified: dict[bytes, _Verified] = {}

    def start(self, instrumentation: Instrumentation = NOTHING) -> None:
        """Begin to fetch keys that are published, in the background, and report how that goes."""
        if self.published is not None:
            self.published.start(instrumentation)

    def claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token.

        Raises:
            TokenError: It is not accepted.
        """
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise TokenError(f"expected a token of at most {MAX_TOKEN_CHARACTERS} characters")
        try:
            return self._claims_once(token)
        except jwt.ExpiredSignatureError:
            raise TokenError("the token has expired") from None
        except jwt.InvalidAudienceError:
            raise TokenError("the token is for another audience") from None
        except jwt.InvalidIssuerError:
            raise TokenError("the token is from another issuer") from None
        # Older versions of PyJWT do not catch the errors of deep nesting and of endless numbers.
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError, UnsupportedAlgorithm):
            raise TokenError("the token is not valid") from None

    def _claims_once(self, token: str) -> Mapping[str, Any]:
        shown, keys = hashlib.sha256(token.encode()).digest(), self._keys()
        known = self._verified.get(shown)
        if known is not None and known.keys is keys and time.time() < known.until:
            return known.claims
        claims = self._claims(token)
        if len(self._verified) >= _MOST_VERIFIED:
            self._verified.clear()
        self._verified[shown] = _Verified(claims, keys, int(claims["exp"]) + self._settings.leeway_seconds)
        return claims

    def _claims(self, token: str) -> Mapping[str, Any]:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in self._settings.algorithms or "crit" in header:
            raise TokenError("the token is signed in a way that is not accepted here")
        claims: dict[str, Any] = jwt.decode(
            token,
            self._key(header.get("kid"), algorithm),
            algorithms=[algorithm],
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=self._settings.leeway_seconds,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _key(self, key_id: object, algorithm: str) -> PublicKey:
        keys = self._keys()
        usable = [each for each in keys if algorithm in each.algorithms]
        named = [each for each in usable if key_id is None or each.key_id in (None, key_id)]
        if len(named) == 1:
            return named[0].key
        if self.published is not None and all(each.key_id != key_id for each in keys):
            self.published.refresh_early()
        if not keys:
            raise TokenError("no token is accepted now: the keys of their issuer are not here")
        raise TokenError("the token is not signed by a key that is known here")


def _published(
    settings: JwtSettings, before: TokenVerifier | None, limits: RefreshLimits
) -> PublishedKeys | None:
    if settings.key_file is not None:
        return None
    address = settings.key_address()
    known = None if before is None else before.published
    return known if known is not None and known.address == address else PublishedKeys(address, limits)


def _keys_in_file(settings: JwtSettings) -> Callable[[], tuple[VerificationKey, ...]]:
    path = Path(settings.key_file or "")
    return ReloadingFiles("keys of tokens", [path], lambda: keys_of_file(path, settings.algorithms)).value
