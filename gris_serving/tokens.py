"""JSON Web Tokens: which ones are accepted.

A token counts only if it is signed by a key of the configured file under an algorithm that the configuration names, is
meant for this audience, comes from this issuer and has not expired. Only asymmetric algorithms can be named, so
neither `none` nor a public key taken for a shared secret is ever tried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate
from pydantic import Field

from gris_serving.documents import Strict
from gris_serving.reloading_files import ReloadingFiles, SecurityError, read_bytes

MAX_TOKEN_CHARACTERS = 8192
MIN_RSA_BITS = 2048

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"secp256r1": ("ES256",), "secp384r1": ("ES384",), "secp521r1": ("ES512",)}


class JwtSettings(Strict):
    """Whose tokens are accepted: `key_file` holds one PEM public key or certificate, or a JWKS."""

    key_file: str
    algorithms: list[Algorithm] = Field(min_length=1)
    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    leeway_seconds: int = Field(30, ge=0, le=300)


class TokenError(Exception):
    """A token that is not accepted; the message says why and shows nothing of it."""


@dataclass(frozen=True)
class _Key:
    """A key by its id (None: it has none), and the algorithms that it may be used with."""

    key_id: str | None
    key: PublicKey
    algorithms: tuple[str, ...]


class TokenVerifier:
    """Verifies tokens as the settings say. The key file is reloaded when it changes.

    Raises:
        SecurityError: The key file cannot be used.
    """

    def __init__(self, settings: JwtSettings) -> None:
        path = Path(settings.key_file)
        self._settings = settings
        self._keys = ReloadingFiles(
            "keys of tokens", [path], lambda: _fitting_keys(path, settings.algorithms)
        )

    def claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token.

        Raises:
            TokenError: It is not accepted.
        """
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise TokenError(f"expected a token of at most {MAX_TOKEN_CHARACTERS} characters")
        try:
            return self._claims(token)
        except jwt.ExpiredSignatureError:
            raise TokenError("the token has expired") from None
        except jwt.InvalidAudienceError:
            raise TokenError("the token is for another audience") from None
        except jwt.InvalidIssuerError:
            raise TokenError("the token is from another issuer") from None
        # Older versions of PyJWT do not catch the errors of deep nesting and of endless numbers.
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError, UnsupportedAlgorithm):
            raise TokenError("the token is not valid") from None

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
        usable = [each for each in self._keys.value() if algorithm in each.algorithms]
        named = [each for each in usable if key_id is None or each.key_id in (None, key_id)]
        if len(named) != 1:
            raise TokenError("the token is not signed by a key that is known here")
        return named[0].key


def _fitting_keys(path: Path, algorithms: Sequence[str]) -> tuple[_Key, ...]:
    """Return the keys of a file.

    Raises:
        SecurityError: The file cannot be used, or no token that it could verify would be accepted.
    """
    keys = _read_keys(path)
    if not any(each in key.algorithms for each in algorithms for key in keys):
        usable = sorted({each for key in keys for each in key.algorithms})
        raise SecurityError(
            f"{path}: its keys are for {', '.join(usable) or 'no algorithm'}; algorithms names only "
            f"{', '.join(algorithms)}"
        )
    return keys


def _read_keys(path: Path) -> tuple[_Key, ...]:
    content = read_bytes(path)
    try:
        if content.lstrip().startswith(b"{"):
            return _set_of_keys(path, content)
        return (_key(None, _pem_key(content)),)
    # An entry that is not a mapping has no `get`, and JSON may be nested deeper than Python can read.
    except (
        jwt.PyJWTError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        UnsupportedAlgorithm,
    ):
        raise SecurityError(
            f"{path}: expected a PEM public key or certificate, or a JWKS, of RSA (2048 bits or more), EC or Ed25519 "
            "keys, without private or shared ones"
        ) from None


def _pem_key(content: bytes) -> object:
    if b"BEGIN CERTIFICATE" in content:
        return load_pem_x509_certificate(content).public_key()
    return load_pem_public_key(content)


def _set_of_keys(path: Path, content: bytes) -> tuple[_Key, ...]:
    entries = [entry for entry in json.loads(content)["keys"] if entry.get("use", "sig") == "sig"]
    if not entries:
        # What a new deployment begins with: no token is accepted before the issuer's keys are there.
        raise SecurityError(
            f"{path}: a JWKS without a key for signatures: replace it by your issuer's public keys"
        )
    # A shared secret could be guessed, and anyone who holds a private key can sign for everyone.
    if any(entry.get("kty") == "oct" or "d" in entry for entry in entries):
        raise ValueError
    keys = tuple(_key(entry.get("kid"), jwt.PyJWK(entry).key, entry.get("alg")) for entry in entries)
    if len(keys) != len({key.key_id for key in keys}):
        raise ValueError
    return keys


def _key(key_id: str | None, key: object, algorithm: str | None = None) -> _Key:
    match key:
        case RSAPublicKey() if key.key_size >= MIN_RSA_BITS:
            algorithms: tuple[str, ...] = _RSA
        case EllipticCurvePublicKey():
            algorithms = _CURVES[key.curve.name]
        case Ed25519PublicKey():
            algorithms = ("EdDSA",)
        case _:
            raise ValueError
    return _Key(key_id, key, algorithms if algorithm is None else tuple({algorithm}.intersection(algorithms)))
