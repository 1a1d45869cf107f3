"""The overlay `several-gateways` for the tests: `production` with two gateways, and their PostgreSQL beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.kubernetes.cluster import PODS, Namespace, Volumes
from tests.kubernetes.database import NAME, PORT, Database
from tests.kubernetes.production import Production

# Of the overlay's own policies, the one that says where the database is.
_WHERE = "gateway-to-releases"


@dataclass(frozen=True)
class SeveralGateways(Production):
    """The overlay as docs/deploying.md has it; what was paid for is in a database."""

    overlay: Path = PODS / "overlays" / "several-gateways"
    volumes: Volumes = field(default_factory=lambda: Volumes(("ledger-mark",)))
    places: tuple[str, ...] = (*Production.places, _WHERE)
    database: Database = field(default_factory=lambda: Database("gateway", _WHERE, "releases"))

    def _make_secrets(self, namespace: Namespace) -> None:
        """Add the connection to the Secret that has the key already, and run the database."""
        super()._make_secrets(namespace)
        connection = self.folder / "connection"
        # Inside the tests' own namespace and for one run: without TLS, which a real one has.
        connection.write_text(
            f"host={NAME} port={PORT} dbname=releases user=gateway password={self.database.password} sslmode=disable"
        )
        key = self.folder / "releases.key"
        key.write_bytes(namespace.decoded("gris-releases")["releases.key"])
        given = {"releases.key": key, "connection": connection}
        namespace.put(("secret", "generic"), "gris-releases", **given)
        self.database.make(namespace)

    def uninstall(self, namespace: Namespace) -> None:
        """Remove the database as well."""
        self.database.remove(namespace)
        super().uninstall(namespace)
