"""Public keys of tokens, as PEM or as a JWK set: which of them are safe to verify with, and under which algorithms.

A private or a shared key spoils its whole set: anyone who can read it can sign for everyone. So do two keys of one id,
and a key that is too short. A key of another kind, which may be for algorithms to come, is left out (RFC 7517, 5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate

from gris_serving.reloading_files import SecurityError, read_bytes

MIN_RSA_BITS = 2048
MAX_KEYS = 100

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"secp256r1": ("ES256",), "secp384r1": ("ES384",), "secp521r1": ("ES512",)}
# What a JWK says of a key that is known here: its kind and its curve.
_KINDS = (("RSA", None), ("EC", "P-256"), ("EC", "P-384"), ("EC", "P-521"), ("OKP", "Ed25519"))
# An entry that is not a mapping has no `get`, and JSON may be nested deeper than Python can read.
_UNREADABLE = (
    jwt.PyJWTError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    UnsupportedAlgorithm,
)


@dataclass(frozen=True)
class VerificationKey:
    """A key by its id (None: it has none), and the algorithms that it may be used with."""

    key_id: str | None
    key: PublicKey
    algorithms: tuple[str, ...]


def keys_of_file(path: Path, algorithms: Sequence[str]) -> tuple[VerificationKey, ...]:
    """Return the keys of a file: one PEM public key or certificate, or a JWK set.

    Raises:
        SecurityError: The file cannot be used, or no token that it could verify would be accepted.
    """
    content = read_bytes(path)
    keys = keys_of_set(content, str(path)) if content.lstrip().startswith(b"{") else _pem_keys(content, path)
    if not keys:
        # What a new deployment begins with: no token is accepted before the issuer's keys are there.
        raise SecurityError(
            f"{path}: a JWKS without a key for signatures: replace it by your issuer's public keys"
        )
    if not any(each in key.algorithms for each in algorithms for key in keys):
        usable = sorted({each for key in keys for each in key.algorithms})
        raise SecurityError(
            f"{path}: its keys are for {', '.join(usable) or 'no algorithm'}; algorithms names only "
            f"{', '.join(algorithms)}"
        )
    return keys


def keys_of_set(content: bytes, source: str) -> tuple[VerificationKey, ...]:
    """Return the keys for signatures of a JWK set, of which there may be none.

    Args:
        content: The set.
        source: Where it comes from, for the error.

    Raises:
        SecurityError: It is none, or it is not safe to use any key of it.
    """
    try:
        entries = json.loads(content)["keys"]
        # A shared secret could be guessed, and anyone who holds a private key can sign for everyone.
        if len(entries) > MAX_KEYS or any(entry.get("kty") == "oct" or "d" in entry for entry in entries):
            raise ValueError
        signing = (entry for entry in entries if entry.get("use", "sig") == "sig")
        keys = tuple(map(_jwk, filter(_is_known, signing)))
        if len(keys) != len({key.key_id for key in keys}):
            raise ValueError
    except _UNREADABLE:
        raise _refused(source) from None
    return keys


def _is_known(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("kty"), entry.get("crv")
    return kind in _KINDS and entry.get("alg") in (None, *get_args(Algorithm))


def _jwk(entry: dict[str, Any]) -> VerificationKey:
    return _key(entry.get("kid"), jwt.PyJWK(entry).key, entry.get("alg"))


def _pem_keys(content: bytes, path: Path) -> tuple[VerificationKey, ...]:
    try:
        if b"BEGIN CERTIFICATE" in content:
            return (_key(None, load_pem_x509_certificate(content).public_key()),)
        return (_key(None, load_pem_public_key(content)),)
    except _UNREADABLE:
        raise _refused(str(path)) from None


def _refused(source: str) -> SecurityError:
    return SecurityError(
        f"{source}: expected a PEM public key or certificate, or a JWKS, of RSA (2048 bits or more), EC or Ed25519 "
        f"keys, at most {MAX_KEYS}, without private or shared ones"
    )


def _key(key_id: str | None, key: object, algorithm: str | None = None) -> VerificationKey:
    match key:
        case RSAPublicKey() if key.key_size >= MIN_RSA_BITS:
            algorithms: tuple[str, ...] = _RSA
        case EllipticCurvePublicKey():
            algorithms = _CURVES[key.curve.name]
        case Ed25519PublicKey():
            algorithms = ("EdDSA",)
        case _:
            raise ValueError
    return VerificationKey(
        key_id, key, algorithms if algorithm is None else tuple({algorithm}.intersection(algorithms))
    )
