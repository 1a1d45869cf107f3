"""TLS of a server: its certificate, the authority it trusts, and new files without a restart.

Files are checked for changes on each handshake. Open connections are not affected.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import grpc
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import load_pem_x509_certificates

from gris_serving.reloading_files import ReloadingFiles, SecurityError, read_bytes

log = logging.getLogger(__name__)

_Certificates: TypeAlias = grpc.ServerCertificateConfiguration


@dataclass(frozen=True)
class TlsFiles:
    """PEM files: the server's certificate chain, its key, and the authority that signs clients' certificates.

    With `client_ca` a client without a certificate of that authority cannot connect; without it clients send none.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None


class ServerTls:
    """What the ports of a server speak TLS with.

    Raises:
        SecurityError: A file cannot be used; the message names it.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._requires_clients = files.client_ca is not None
        self._reloading = ReloadingFiles("TLS", _paths(files), lambda: _configuration(files))

    def of_a_port(self) -> grpc.ServerCredentials:
        """Return credentials for one port, and only one: new connections use the files as they are then."""
        in_force = self._reloading.value()
        # The types of gRPC do not know that it takes None.
        replacements: Any = _Replacements(self._reloading, in_force)
        credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
            in_force, replacements, require_client_authentication=self._requires_clients
        )
        return credentials


class _Replacements:
    """Gives one port of gRPC its new certificates: nothing as long as there are none.

    gRPC frees what a port used so far as soon as it is given anything, and does not wait for another thread that has
    asked before and is about to use it: the process would crash. It asks on one thread at a time. So while a thread
    waits here no other can ask, and those that have asked before are through by then.
    """

    SECONDS = 0.25

    def __init__(self, reloading: ReloadingFiles[_Certificates], given: _Certificates) -> None:
        self._reloading = reloading
        self._given = given

    def __call__(self) -> _Certificates | None:
        if (in_force := self._reloading.value()) is self._given:
            return None
        time.sleep(self.SECONDS)
        self._given = in_force
        return in_force


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the same for a server of Python's own TLS: a context whose connections use the files as they are then.

    Raises:
        SecurityError: A file cannot be used; the message names it.
    """
    reloading = ReloadingFiles("TLS", _paths(files), lambda: _context(files))
    context = reloading.value()

    # It is called for every connection, also for those that name no host.
    def use_present_files(connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        connection.context = reloading.value()

    context.sni_callback = use_present_files
    return context


def require_usable(authority: Path | None, certificate: Path | None, key: Path | None) -> None:
    """Check the files of a client's credentials: gRPC itself accepts anything, and fails later.

    Raises:
        SecurityError: A file cannot be used; the message names it.
    """
    if authority is not None:
        _certificates(authority, read_bytes(authority))
    if certificate is not None and key is not None:
        _require_pair(TlsFiles(certificate, key), read_bytes(certificate), read_bytes(key))


def verified_certificate(transport: asyncio.BaseTransport) -> bytes | None:
    """Return the certificate (PEM) that the peer of a connection has shown, and the handshake has verified.

    None: TLS asks for none here, or there is no TLS.
    """
    connection = transport.get_extra_info("ssl_object")
    shown = None if connection is None else connection.getpeercert(binary_form=True)
    return None if shown is None else ssl.DER_cert_to_PEM_cert(shown).encode()


def is_loopback(listen: str) -> bool:
    """Return whether only programs on this machine can reach an address, HOST:PORT."""
    host = listen.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _paths(files: TlsFiles) -> list[Path]:
    return [files.certificate, files.key, *([files.client_ca] if files.client_ca else [])]


def _context(files: TlsFiles) -> ssl.SSLContext:
    # Checked as they are for gRPC, with the same messages.
    _configuration(files)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(files.certificate, files.key)
        if files.client_ca is not None:
            context.load_verify_locations(files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
            # A session that is resumed verifies no certificate again, not against another authority and not its dates.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.num_tickets = 0
    except (OSError, ssl.SSLError):
        raise SecurityError(f"{files.certificate}: expected files that TLS can use") from None
    return context


def _configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    chain, key = read_bytes(files.certificate), read_bytes(files.key)
    _require_pair(files, chain, key)
    authority = None
    if files.client_ca is not None:
        authority = read_bytes(files.client_ca)
        _certificates(files.client_ca, authority)
    return grpc.ssl_server_certificate_configuration([(key, chain)], authority)


def _require_pair(files: TlsFiles, chain: bytes, key: bytes) -> None:
    """Refuse a key of another certificate: with gRPC every handshake would fail without a message."""
    certified = _certificates(files.certificate, chain)
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SecurityError(f"{files.key}: expected a PEM private key without a password") from None
    if private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != certified:
        raise SecurityError(f"{files.key}: expected the key of the certificate {files.certificate}")
    _warn_of_readers(files.key)


def _warn_of_readers(key: Path) -> None:
    """Warn of a private key that everybody on the machine may read; many orchestrators mount secrets so."""
    if key.stat().st_mode & stat.S_IRWXO:
        log.warning(
            "A private key can be read by everybody on this machine: use mode 0400 or 0440.",
            extra={"event": "key.readable", "fields": {"file": str(key)}},
        )


def _certificates(path: Path, content: bytes) -> bytes:
    """Return the public key of the first certificate in a file."""
    try:
        first = load_pem_x509_certificates(content)[0]
        return first.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        raise SecurityError(f"{path}: expected PEM certificates") from None
