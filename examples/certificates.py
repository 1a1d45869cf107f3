"""Certificates for trying the gateway: its own, Ana's, who has an account, and Eve's, who has none.

    python -m examples.certificates --folder certificates

Below the folder each of `gateway`, `ana` and `eve` has a folder with what it needs: its certificate, its key, and
`ca.pem`, the authority that all three trust. The authority's key is not kept, so nobody can sign more; for other
certificates delete the folder. Files that exist already are kept.

    python -m examples.certificates --folder certificates --regions eu us

This makes those of a home of budgets, in `home`, and of regions that borrow from it, each in a folder of its name.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=365)
CLOCKS_DIFFER = timedelta(hours=1)
# Compose's name of the gateway, that of a Service in Kubernetes from inside the namespace, and this machine's.
GATEWAYS = ("gateway", "gateway.gris", "gateway.gris.svc", "localhost")
CALLERS = ("ana", "eve")
HOMES = ("home", "localhost")

_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True)
class Authority:
    """Signs certificates, as long as the process lives."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls) -> Authority:
        """Return a new authority."""
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("Gris' example authority")
        builder = _begun(name, name, key.public_key())
        signs = x509.BasicConstraints(ca=True, path_length=0)
        return cls(key, builder.add_extension(signs, critical=True).sign(key, hashes.SHA256()))

    def issue(
        self, folder: Path, name: str, shown: Sequence[x509.GeneralName], use: x509.ObjectIdentifier
    ) -> None:
        """Write a new key, its certificate for the names, and this authority's own certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _begun(_name(name), self.certificate.subject, key.public_key())
        for extension in (
            x509.SubjectAlternativeName(shown),
            x509.ExtendedKeyUsage([use]),
            x509.BasicConstraints(ca=False, path_length=None),
        ):
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        folder.mkdir()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _write(folder / f"{name}.key", private, mode=0o400)
        _write(folder / f"{name}.pem", certificate.public_bytes(Encoding.PEM), mode=0o444)
        _write(folder / "ca.pem", self.certificate.public_bytes(Encoding.PEM), mode=0o444)


def make(folder: Path) -> None:
    """Write certificates and keys below a folder that exists; raises OSError where that cannot be done."""
    if (folder / "gateway").exists():
        return
    authority = Authority.new()
    for caller in CALLERS:
        identity = x509.UniformResourceIdentifier(f"spiffe://gris.example/{caller}")
        authority.issue(folder / caller, caller, [identity], _CLIENT)
    authority.issue(folder / "gateway", "gateway", [x509.DNSName(each) for each in GATEWAYS], _SERVER)


def make_regions(folder: Path, regions: Sequence[str]) -> None:
    """Write certificates and keys of a home and its regions; raises OSError where that cannot be done."""
    if (folder / "home").exists():
        return
    authority = Authority.new()
    for region in regions:
        identity = x509.UniformResourceIdentifier(f"spiffe://gris.example/region/{region}")
        authority.issue(folder / region, region, [identity], _CLIENT)
    authority.issue(folder / "home", "home", [x509.DNSName(each) for each in HOMES], _SERVER)


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + LIFE)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _write(path: Path, content: bytes, *, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser("python -m examples.certificates")
    parser.add_argument("--folder", type=Path, required=True, help="a folder that exists")
    parser.add_argument("--regions", nargs="+", metavar="NAME", help="for a home and these regions instead")
    chosen = parser.parse_args()
    if chosen.regions:
        make_regions(chosen.folder, chosen.regions)
    else:
        make(chosen.folder)


if __name__ == "__main__":
    main()
