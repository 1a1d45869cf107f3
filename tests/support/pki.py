"""An authority for tests, what it signs, and an issuer of tokens."""

from __future__ import annotations

import datetime
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from pinot_connector.endpoints import Credentials

ISSUER = "https://login.example.org"
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Signs certificates and writes them to a folder."""

    ca: trustme.CA
    folder: Path

    @classmethod
    def new(cls, folder: Path) -> Authority:
        """Return a new authority; its own certificate is in ca.pem."""
        ca = trustme.CA()
        ca.cert_pem.write_to_path(folder / "ca.pem")
        return cls(ca, folder)

    @property
    def ca_file(self) -> Path:
        """Whom both sides trust."""
        return self.folder / "ca.pem"

    def server(self, name: str = "server") -> tuple[Path, Path]:
        """Write a certificate for 127.0.0.1 and localhost; return the paths of certificate and key."""
        issued = self.ca.issue_cert("127.0.0.1", "localhost")
        return self._written(name, issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes())

    def client(
        self,
        *names: x509.GeneralName,
        file: str = "client",
        extension: x509.ExtensionType | None = None,
        valid_for: datetime.timedelta = DAY,
    ) -> Credentials:
        """Write a certificate with these alternative names, or one extension, and return credentials that show it."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        authority = x509.load_pem_x509_certificate(self.ca.cert_pem.bytes())
        signer: Any = load_pem_private_key(self.ca.private_key_pem.bytes(), None)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, file)]))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + valid_for)
        )
        if names:
            extension = x509.SubjectAlternativeName(names)
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(signer, hashes.SHA256())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        shown, kept = self._written(file, certificate.public_bytes(Encoding.PEM), private)
        return Credentials(self.ca_file, shown, kept)

    def _written(self, name: str, certificate: bytes, key: bytes) -> tuple[Path, Path]:
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        for path, content in zip(paths, (certificate, key), strict=True):
            path.write_bytes(content)
            path.chmod(0o600)
        return paths


def uri(name: str) -> x509.GeneralName:
    """Return an alternative name of kind URI."""
    return x509.UniformResourceIdentifier(name)


def dns(name: str) -> x509.GeneralName:
    """Return an alternative name of kind DNS."""
    return x509.DNSName(name)


def email(name: str) -> x509.GeneralName:
    """Return an alternative name of kind e-mail."""
    return x509.RFC822Name(name)


class Issuer:
    """Signs tokens; its public key is in a file that services read."""

    def __init__(self, folder: Path, *, key_id: str | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.key_id = key_id
        self.public_pem = self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.key_file = folder / "issuer.pem"
        self.key_file.write_bytes(self.public_pem)
        self.folder = folder

    def jwk(self) -> dict[str, Any]:
        """Return the public key as a JWK."""
        entry: dict[str, Any] = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return entry | ({} if self.key_id is None else {"kid": self.key_id})

    def token(self, audience: str, *, key: Any = None, algorithm: str = "ES256", **claims: Any) -> str:
        """Return a token; claims that are None are left out."""
        now = int(time.time())
        content = {"iss": ISSUER, "aud": audience, "iat": now, "exp": now + 300, **claims}
        return jwt.encode(
            {name: value for name, value in content.items() if value is not None},
            key or self.key,
            algorithm,
            headers=None if self.key_id is None else {"kid": self.key_id},
        )

    def token_file(self, audience: str, name: str = "token", **claims: Any) -> Path:
        """Write a token to a file."""
        path = self.folder / name
        path.write_text(self.token(audience, **claims) + "\n")
        return path
