"""Certificates and tokens of a deployment on one machine, for as long as nobody has made real ones.

The authority signs one certificate, and its key is never written: who trusts it trusts that certificate alone. The
key that signs tokens is kept, so that another analyst can get one.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gris_cli.data.errors import InputError
from gris_cli.data.private_files import private_directory, require_private, write_new

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

ISSUER = "gris"
AUDIENCE = "gris-gateway"
ALGORITHM = "ES256"
ROLES = "gris_roles"
ANALYST = "analyst"
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_RENEWED = datetime.timedelta(days=7)
"""What ends sooner is made anew."""


@dataclass(frozen=True)
class Person:
    """Somebody with a token: the name in it, and what it is kept as."""

    name: str
    file: str


@dataclass(frozen=True)
class Identity:
    """Where the files are; those in `credentials` are for clients."""

    folder: Path

    @property
    def credentials(self) -> Path:
        """What clients get: the authority, and of the tokens each its own."""
        return self.folder / "credentials"

    @property
    def authority(self) -> Path:
        """Whom clients trust."""
        return self.credentials / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The servers' certificate."""
        return self.folder / "gateway.pem"

    @property
    def key(self) -> Path:
        """Its private key."""
        return self.folder / "gateway.key"

    @property
    def issuer(self) -> Path:
        """By which the servers verify tokens."""
        return self.folder / "issuer.pem"

    @property
    def issuer_key(self) -> Path:
        """What signs tokens; anyone who has it is everybody."""
        return self.folder / "issuer.key"

    def token(self, person: Person) -> Path:
        """The token of somebody."""
        return self.credentials / f"{person.file}.token"


def make_identity(identity: Identity, people: tuple[Person, ...], days: int) -> tuple[list[Path], list[Path]]:
    """Make what is not there: a certificate for this machine, and a token for each of the people.

    Returns:
        What was written, and what was there.

    Raises:
        InputError: A file that is there cannot be used, or belongs to others that are missing.
    """
    private_directory(identity.folder)
    private_directory(identity.credentials)
    tls = (identity.key, identity.certificate, identity.authority)
    issuing = (identity.issuer_key, identity.issuer)
    tokens = [identity.token(each) for each in people]
    for group in (tls, issuing):
        _require_whole(group)
    for path in tokens:
        _require_signed(path, issuing[0])
    written = [] if tls[0].exists() else _write(tls, _certified(days))
    written += [] if issuing[0].exists() else _write(issuing, _issuing())
    for person, path in zip(people, tokens, strict=True):
        if not path.exists():
            written += _write((path,), (_token(identity, person, days),))
    there = [path for path in (*tls, *issuing, *tokens) if path not in written]
    return written, there


def remove_ending(identity: Identity, people: tuple[Person, ...]) -> None:
    """Remove certificates and tokens that end within a week, so that they are made anew.

    Raises:
        InputError: A file that is there cannot be used.
    """
    now = datetime.datetime.now(datetime.UTC)
    if identity.certificate.exists() and _end_of_certificate(identity.certificate) < now + _RENEWED:
        for path in (identity.authority, identity.certificate, identity.key):
            path.unlink(missing_ok=True)
    for path in map(identity.token, people):
        if path.exists() and _end_of_token(path) < now + _RENEWED:
            path.unlink()


def _require_whole(group: tuple[Path, ...]) -> None:
    """Refuse files of which others are missing: they belong together, and none is written over."""
    there = [path for path in group if path.exists() or path.is_symlink()]
    missing = [path.name for path in group if path not in there]
    if there and missing:
        names = ", ".join(str(path) for path in there)
        raise InputError(
            f"{names}: without {', '.join(missing)}; they are made together: remove what is left of them"
        )
    for path in there:
        require_private(path)


def _require_signed(token: Path, key: Path) -> None:
    if token.exists() or token.is_symlink():
        require_private(token)
        if not key.exists():
            raise InputError(f"{token}: without {key.name}, which has signed it; remove the token")


def _write(paths: tuple[Path, ...], contents: tuple[bytes, ...]) -> list[Path]:
    for path, content in zip(paths, contents, strict=True):
        if not write_new(path, content):
            raise InputError(f"{path} was written by another program at the same time: try again")
    return list(paths)


def _certified(days: int) -> tuple[bytes, bytes, bytes]:
    """Return the key, the certificate, and the authority that has signed it, as PEM."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding

    signing, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("gris", signing, signing, None, days)
    certificate = _certificate(_THIS_MACHINE[0], key, signing, authority, days)
    return _private(key), certificate.public_bytes(Encoding.PEM), authority.public_bytes(Encoding.PEM)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    signing: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate | None,
    days: int,
) -> x509.Certificate:
    """Return a certificate for this machine; without an authority, that of the authority itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of clients may be behind.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(
            x509.BasicConstraints(ca=authority is None, path_length=0 if authority is None else None),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
        .add_extension(_usage(signs=authority is None), critical=True)
    )
    if authority is not None:
        names = [_general_name(each) for each in _THIS_MACHINE]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signing, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _issuing() -> tuple[bytes, bytes]:
    """Return the key that signs tokens, and the one that verifies them, as PEM."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return _private(key), public


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _token(identity: Identity, person: Person, days: int) -> bytes:
    import jwt

    now = datetime.datetime.now(datetime.UTC)
    claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": person.name,
        "iat": now,
        "exp": now + datetime.timedelta(days=days),
        ROLES: [ANALYST],
    }
    try:
        return jwt.encode(claims, identity.issuer_key.read_bytes(), ALGORITHM).encode()
    except (jwt.PyJWTError, ValueError, TypeError):
        raise InputError(f"{identity.issuer_key}: expected the key that was made there") from None


def _end_of_certificate(path: Path) -> datetime.datetime:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    except ValueError:
        raise InputError(f"{path}: expected the certificate that was made there; remove it") from None


def _end_of_token(path: Path) -> datetime.datetime:
    import jwt

    try:
        claims = jwt.decode(path.read_text(encoding="ascii"), options={"verify_signature": False})
        return datetime.datetime.fromtimestamp(int(claims["exp"]), datetime.UTC)
    except (jwt.PyJWTError, ValueError, KeyError):
        raise InputError(f"{path}: expected the token that was made there; remove it") from None
