"""Tokens: the right ones are believed, and no forged one is."""

from __future__ import annotations

import base64
import json
import logging
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from gris_serving.reloading_files import SecurityError
from gris_serving.tokens import JwtSettings, TokenError, TokenVerifier
from tests.support.log_events import logged_events
from tests.support.pki import ISSUER, Issuer

AUDIENCE = "gris"


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    """An issuer of tokens."""
    return Issuer(tmp_path)


def verifier(
    issuer: Issuer, algorithms: list[str] | None = None, key_file: Path | None = None
) -> TokenVerifier:
    """Return a verifier of the issuer's tokens."""
    settings = {
        "key_file": str(key_file or issuer.key_file),
        "algorithms": algorithms or ["ES256"],
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "leeway_seconds": 5,
    }
    return TokenVerifier(JwtSettings.model_validate(settings))


def base64url(content: bytes) -> str:
    """Return content as tokens hold it."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token without a signature."""
    return ".".join(base64url(json.dumps(part).encode()) for part in (header, claims)) + "."


def test_a_sound_token_is_believed(issuer: Issuer) -> None:
    """Issuer, audience, signature and time are right."""
    assert "ana" == verifier(issuer).claims(issuer.token(AUDIENCE, sub="ana"))["sub"]


def test_a_token_that_was_believed_expires(issuer: Issuer) -> None:
    """Under five seconds of leeway."""
    end = int(time.time()) + 1
    token, believing = issuer.token(AUDIENCE, sub="ana", exp=end - 5), verifier(issuer)
    assert believing.claims(token)["sub"] == "ana"
    time.sleep(max(0.0, end + 0.05 - time.time()))
    with pytest.raises(TokenError, match="expired"):
        believing.claims(token)


def test_a_token_that_was_believed_is_verified_again_under_other_keys(issuer: Issuer, tmp_path: Path) -> None:
    """Its key is replaced in the file."""
    token, believing = issuer.token(AUDIENCE, sub="ana"), verifier(issuer)
    assert believing.claims(token)["sub"] == "ana"
    other = tmp_path / "other"
    other.mkdir()
    issuer.key_file.write_bytes(Issuer(other).key_file.read_bytes())
    with pytest.raises(TokenError, match="not valid"):
        believing.claims(token)


@pytest.mark.parametrize(
    ("claims", "complaint"),
    [
        ({"exp": 1}, "expired"),
        ({"exp": timedelta(seconds=-6)}, "expired"),
        ({"exp": None}, "not valid"),
        ({"exp": "tomorrow"}, "not valid"),
        ({"exp": [2**60]}, "not valid"),
        ({"nbf": timedelta(minutes=10)}, "not valid"),
        ({"aud": "somebody else"}, "another audience"),
        ({"aud": None}, "not valid"),
        ({"aud": AUDIENCE.upper()}, "another audience"),
        ({"iss": "https://login.example.org.evil"}, "another issuer"),
        ({"iss": None}, "not valid"),
    ],
)
def test_wrong_claims_are_refused(issuer: Issuer, claims: dict[str, Any], complaint: str) -> None:
    """Each says why, in words that hold no piece of the token; times are from now on."""
    now = int(time.time())
    claims = {
        name: now + int(each.total_seconds()) if isinstance(each, timedelta) else each
        for name, each in claims.items()
    }
    # The audience is a positional argument of `token`; a claim of that name replaces it.
    with pytest.raises(TokenError, match=complaint) as refused:
        verifier(issuer).claims(issuer.token(AUDIENCE, sub="marker", **claims))
    assert "marker" not in str(refused.value)


def test_a_clock_may_be_late_by_the_leeway(issuer: Issuer) -> None:
    """A token that expired three seconds ago still counts under five seconds of leeway."""
    token = issuer.token(AUDIENCE, exp=int(time.time()) - 3)
    assert AUDIENCE == verifier(issuer).claims(token)["aud"]


def test_a_token_without_a_signature_is_refused(issuer: Issuer) -> None:
    """`none` in any spelling, and a sound token that lost its signature."""
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 300}
    forged = [unsigned({"alg": alg}, claims) for alg in ("none", "None", "NONE", "nOnE", "", "ES256")]
    forged += [unsigned({}, claims), unsigned({"alg": ["ES256"]}, claims), unsigned({"alg": None}, claims)]
    forged.append(issuer.token(AUDIENCE).rpartition(".")[0] + ".")
    for token in forged:
        with pytest.raises(TokenError):
            verifier(issuer).claims(token)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_no_shared_secret(issuer: Issuer, algorithm: str) -> None:
    """A token signed by HMAC with the public key's own bytes is refused, and HMAC cannot be configured."""
    header, body, _ = issuer.token(AUDIENCE).split(".")
    header = base64url(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
    digest = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}[algorithm]
    import hmac  # noqa: PLC0415 - the forger's tool

    signature = base64url(hmac.digest(issuer.public_pem, f"{header}.{body}".encode(), digest))
    with pytest.raises(TokenError):
        verifier(issuer).claims(f"{header}.{body}.{signature}")
    with pytest.raises(ValueError, match="algorithms"):
        verifier(issuer, [algorithm])


def test_another_key_another_algorithm_and_a_changed_body_are_refused(issuer: Issuer) -> None:
    """Only the configured key under a configured algorithm, over exactly these claims."""
    stranger = issuer.token(AUDIENCE, key=ec.generate_private_key(ec.SECP256R1()))
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    header, _, signature = issuer.token(AUDIENCE).split(".")
    body = issuer.token(AUDIENCE, sub="admin").split(".")[1]
    for token in (
        stranger,
        issuer.token(AUDIENCE, key=rsa_key, algorithm="RS256"),
        f"{header}.{body}.{signature}",
    ):
        with pytest.raises(TokenError):
            verifier(issuer, ["ES256", "RS256"]).claims(token)


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "é.é.é",
        "\x00",
        "x" * 10_000,
        "e30.e30.e30",
        "[].[].[]",
        f"{base64url(b'[' * 5800)}.e30.",
    ],
)
def test_garbage_is_refused(issuer: Issuer, token: str) -> None:
    """Nothing but a TokenError comes of what is no token."""
    with pytest.raises(TokenError):
        verifier(issuer).claims(token)


def test_a_key_is_used_only_as_configured(tmp_path: Path) -> None:
    """An RSA key could verify RS256 too; only the algorithm that the configuration names is tried."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = tmp_path / "rsa.pem"
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    issuer = Issuer(tmp_path)
    checking = verifier(issuer, ["PS256"], path)
    assert checking.claims(issuer.token(AUDIENCE, key=key, algorithm="PS256"))
    with pytest.raises(TokenError):
        checking.claims(issuer.token(AUDIENCE, key=key, algorithm="RS256"))


def test_unknown_critical_extensions_are_refused(issuer: Issuer) -> None:
    """RFC 7515 4.1.11: what must be understood and is not makes the token invalid."""
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 300}
    token = jwt.encode(claims, issuer.key, "ES256", headers={"crit": ["exp"], "exp": now})
    with pytest.raises(TokenError):
        verifier(issuer).claims(token)


def test_keys_of_a_set_are_found_by_their_id_and_rotated_without_a_restart(tmp_path: Path) -> None:
    """Two keys are believed during a rotation; once the old one is taken out its tokens are not."""
    old, new = Issuer(tmp_path, key_id="old"), Issuer(tmp_path, key_id="new")
    keys = tmp_path / "keys.jwks"
    keys.write_text(json.dumps({"keys": [old.jwk(), new.jwk()]}))
    checking = verifier(old, key_file=keys)
    assert checking.claims(old.token(AUDIENCE))
    assert checking.claims(new.token(AUDIENCE))
    with pytest.raises(TokenError):
        # The id of one key over the signature of the other.
        checking.claims(old.token(AUDIENCE, key=new.key))
    keys.write_text(json.dumps({"keys": [new.jwk()]}))
    assert checking.claims(new.token(AUDIENCE))
    with pytest.raises(TokenError):
        checking.claims(old.token(AUDIENCE))


def test_a_token_without_an_id_needs_a_set_with_one_key(tmp_path: Path) -> None:
    """Trying key after key would let a forger choose."""
    named, nameless = Issuer(tmp_path, key_id="named"), Issuer(tmp_path)
    keys = tmp_path / "keys.jwks"
    keys.write_text(json.dumps({"keys": [named.jwk(), Issuer(tmp_path, key_id="other").jwk()]}))
    with pytest.raises(TokenError):
        verifier(named, key_file=keys).claims(nameless.token(AUDIENCE, key=named.key))


def test_a_spoilt_key_file_changes_nothing(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    """The keys that were read stay in force, and the log names the file."""
    checking = verifier(issuer)
    issuer.key_file.write_text("half a ke")
    with caplog.at_level(logging.ERROR):
        assert checking.claims(issuer.token(AUDIENCE))
    ((event, fields),) = logged_events(caplog)
    assert (event, fields["files"]) == ("files.kept", "keys of tokens")
    assert str(issuer.key_file) in fields["problem"]


def unusable(tmp_path: Path) -> dict[str, bytes]:
    """Return contents of key files that must be refused."""
    private = ec.generate_private_key(ec.SECP256R1())
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()  # noqa: S505 - that is what is tested
    entry = Issuer(tmp_path, key_id="a").jwk()
    return {
        "a private key": private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "a private JWK": json.dumps(
            {"keys": [json.loads(jwt.algorithms.ECAlgorithm.to_jwk(private))]}
        ).encode(),
        "a shared secret": json.dumps({"keys": [entry, {"kty": "oct", "k": "AAAA", "kid": "b"}]}).encode(),
        "two keys of one id": json.dumps({"keys": [entry, entry]}).encode(),
        "a short key": short.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "no key": b'{"keys": []}',
        "another use": json.dumps({"keys": [entry | {"use": "enc"}]}).encode(),
        "no set": b"{}",
        "half a set": b'{"keys": [{"kty": "EC"}]}',
        "keys that are texts": b'{"keys": ["AAAA"]}',
        "endless lists": b'{"keys": ' + b"[" * 100_000,
        "nothing": b"",
    }


@pytest.mark.parametrize("name", ["a private key", "a private JWK", "a shared secret", "two keys of one id", "nothing",
                                  "a short key", "no key", "another use", "no set", "half a set",
                                  "keys that are texts", "endless lists"])  # fmt: skip
def test_a_key_file_that_is_not_safe_is_refused(tmp_path: Path, name: str) -> None:
    """The error names the file and shows none of it."""
    path = tmp_path / "keys"
    path.write_bytes(unusable(tmp_path)[name])
    with pytest.raises(SecurityError, match=str(path)) as refused:
        verifier(Issuer(tmp_path), key_file=path)
    assert "AAAA" not in str(refused.value)


def test_certificates_and_edwards_keys_serve_too(tmp_path: Path) -> None:
    """An Ed25519 key in PEM verifies EdDSA."""
    key = ed25519.Ed25519PrivateKey.generate()
    path = tmp_path / "ed.pem"
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    issuer = Issuer(tmp_path)
    checking = verifier(issuer, ["EdDSA"], path)
    assert checking.claims(issuer.token(AUDIENCE, key=key, algorithm="EdDSA"))


@pytest.mark.parametrize("algorithms", [["RS256"], ["ES384"], ["EdDSA", "PS512"]])
def test_a_key_that_no_accepted_algorithm_fits_is_refused_at_once(
    issuer: Issuer, algorithms: list[str]
) -> None:
    """Every token would be refused later; which algorithms the keys are for is named."""
    with pytest.raises(SecurityError, match=f"its keys are for ES256; algorithms names only {algorithms[0]}"):
        verifier(issuer, algorithms)


def test_one_algorithm_that_fits_is_enough(issuer: Issuer) -> None:
    """The others may be for keys to come."""
    assert "ana" == verifier(issuer, ["RS256", "ES256"]).claims(issuer.token(AUDIENCE, sub="ana"))["sub"]
