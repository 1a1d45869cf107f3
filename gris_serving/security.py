"""The options of a server about TLS and access, and what they result in.

A server that other machines can reach has TLS and an access file, or `--insecure` states that the network protects it.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import grpc

from gris_serving.authorisation import Authorisation, Callers, Methods, Role
from gris_serving.identity import Context
from gris_serving.instrumentation import Instrumentation
from gris_serving.listening import require_free
from gris_serving.options import address_option
from gris_serving.reloading_files import SecurityError
from gris_serving.tls import ServerTls, TlsFiles, is_loopback

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SecurityOptions:
    """The options of the command line: PEM files, an access file (`authorisation`), and the address of health alone."""

    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    access: Path | None = None
    insecure: bool = False
    health_listen: str | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> SecurityOptions:
        """Return the options of a parsed command line."""
        return cls(**{each.name: getattr(options, each.name) for each in fields(cls)})


def add_security_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `SecurityOptions.of` reads."""
    parser.add_argument("--tls-certificate", type=Path, help="the server's certificate chain (PEM)")
    parser.add_argument("--tls-key", type=Path, help="its private key (PEM)")
    parser.add_argument(
        "--tls-client-ca",
        type=Path,
        help="the authority that signs clients' certificates (PEM); every client must have one",
    )
    parser.add_argument("--access", type=Path, help="who has which role (YAML)")
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="listen beyond this machine without TLS, or admit anyone who reaches the address",
    )
    parser.add_argument(
        "--health-listen",
        type=address_option,
        help="HOST:PORT for health checks alone, in plain text, for probes that cannot speak TLS",
    )


class Security:
    """The credentials that a server listens with, and the interceptors before its methods.

    Args:
        options: The options of the command line.
        methods: The role that each method requires.

    Raises:
        SecurityError: Options do not belong together, or a file cannot be used.
    """

    def __init__(self, options: SecurityOptions, methods: Methods) -> None:
        self._options = options
        files = _tls_files(options)
        self._tls = None if files is None else ServerTls(files)
        self._methods = methods
        self._callers = None if options.access is None else Callers(options.access)
        if self._callers is not None and self._callers.wants_certificates and options.tls_client_ca is None:
            raise SecurityError("--access: roles of certificates need --tls-client-ca")

    def interceptors(
        self, instrumentation: Instrumentation, *, reads_first: bool = False
    ) -> Sequence[grpc.aio.ServerInterceptor]:
        """Return the interceptors of the server, and begin to fetch the keys of tokens where an issuer publishes them.

        Args:
            instrumentation: Records calls that are refused.
            reads_first: Whether requests may be read before their caller is known (see `Authorisation`). They are only
                where no stranger has a connection, because every client has a certificate.
        """
        if self._callers is None:
            return ()
        self._callers.start(instrumentation)
        reads_first = reads_first and self._options.tls_client_ca is not None
        return (Authorisation(self._methods, self._callers, instrumentation, reads_first=reads_first),)

    def regions(self, context: Context) -> frozenset[str] | None:
        """Return the names of the regions for which a caller may speak; None: callers do not show who they are.

        Raises:
            TokenError: The caller's token is not accepted.
        """
        return None if self._callers is None else self._callers.regions(context)

    def names(self, context: Context, role: Role | None) -> tuple[str, ...] | None:
        """Return the names by which a caller has a role, or all of them; None: callers do not show who they are.

        Raises:
            TokenError: The caller's token is not accepted.
        """
        return None if self._callers is None else self._callers.names(context, role)

    def bind(self, server: grpc.aio.Server, listen: str) -> int:
        """Let a server listen on HOST:PORT and return the port.

        Raises:
            SecurityError: Other machines could call, and no option permits that.
            ListeningError: The address is in use, or none of this machine.
            RuntimeError: GRPC cannot listen there for another reason.
        """
        self.require_safe(listen)
        require_free(listen)
        missing = [name for name, given in (("tls", self._tls), ("access", self._callers)) if given is None]
        if missing and not is_loopback(listen):
            warn_of_missing_protection(listen, missing)
        if self._tls is None:
            return server.add_insecure_port(listen)
        return server.add_secure_port(listen, self._tls.of_a_port())

    def require_safe(self, listen: str) -> None:
        """Check that the server may listen on HOST:PORT.

        Raises:
            SecurityError: Other machines could call, and no option permits that.
        """
        protected = self._tls is not None and self._callers is not None
        if not (protected or self._options.insecure or is_loopback(listen)):
            raise SecurityError(
                f"--listen {listen}: others can reach this address: give --tls-certificate, --tls-key and --access, or "
                "--insecure if the network keeps strangers away"
            )


def warn_of_missing_protection(listen: str, missing: Sequence[str]) -> None:
    """Log that others can reach an address without TLS, or without showing who they are, because the operator said so.

    Args:
        listen: HOST:PORT.
        missing: What it lacks: "tls", "access" or both.
    """
    fields = {"listen": listen, "missing": list(missing)}
    log.warning(
        "Only the network protects this address.", extra={"event": "protection.missing", "fields": fields}
    )


def _tls_files(options: SecurityOptions) -> TlsFiles | None:
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise SecurityError("expected both --tls-certificate and --tls-key, or neither")
    if options.tls_certificate is None or options.tls_key is None:
        if options.tls_client_ca is not None or options.access is not None:
            raise SecurityError("--tls-client-ca and --access need --tls-certificate and --tls-key")
        return None
    if options.tls_client_ca is not None and options.access is None:
        raise SecurityError("--tls-client-ca needs --access, which says what each client may do")
    return TlsFiles(options.tls_certificate, options.tls_key, options.tls_client_ca)
