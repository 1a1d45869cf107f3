"""The engines that hold an owner's data, opened by what the owner says of them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from gris_cli.data.errors import InputError
from pinot_connector.engines.base import Engine


def duckdb_engine(tables: dict[str, Path]) -> Engine:
    """Return an engine over files."""
    from pinot_connector.engines.duckdb import DuckDBEngine

    return DuckDBEngine(tables)


@dataclass(frozen=True)
class PinotAccess:
    """The credentials for a Pinot cluster, and the authority to trust; all of it optional."""

    authorization_file: Path | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None

    def authorization(self) -> str | None:
        """Return the header's value. It is read from a file because flags and environments can be seen by others."""
        if self.authorization_file is None:
            return None
        try:
            value = self.authorization_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            value = ""
        if not value.isprintable() or not value:
            raise InputError("expected a file with one line of ASCII", "pinot_authorization_file")
        return value

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context with the authority and certificate, None for the defaults."""
        if self.ca_file is None and self.certificate_file is None:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file)
        except (OSError, ssl.SSLError):
            raise InputError(
                "expected PEM files; that of the certificate holds the key too",
                "pinot_ca_file",
                "pinot_certificate_file",
            ) from None
        return context


@dataclass(frozen=True)
class PinotLoading:
    """How the engine finds out that Pinot's servers have loaded all new segments."""

    settle_seconds: float
    server_admin: bool = False
    server_admin_port: int | None = None


def pinot_engine(
    broker: str, controller: str, loading: PinotLoading, access: PinotAccess = PinotAccess()
) -> Engine:
    """Return an engine over a Pinot cluster."""
    if not broker or not controller:
        raise InputError(
            "expected the addresses of Pinot's broker and controller", "pinot_broker", "pinot_controller"
        )
    from pinot_connector.engines.pinot import PinotEngine

    try:
        return PinotEngine(
            broker=broker,
            controller=controller,
            authorization=access.authorization(),
            tls=access.tls(),
            **asdict(loading),
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def spark_engine(url: str, tables: Mapping[str, str]) -> Engine:
    """Return an engine over Spark, which is started or connected to."""
    from pinot_connector.engines.spark import SparkEngine

    return SparkEngine.at(url, tables)
