"""The example `several-gateways` for the tests: `production` with two gateways, and their PostgreSQL beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from deploy.kubernetes.chart import SEVERAL, Values
from tests.kubernetes.cluster import Namespace, Volumes
from tests.kubernetes.database import NAME, PEERS, PORT, Database
from tests.kubernetes.production import SECRET, Production, merge


@dataclass(frozen=True)
class SeveralGateways(Production):
    """The chart with these values; what was paid for is in a database."""

    example: Values = SEVERAL
    volumes: Volumes = field(default_factory=lambda: Volumes(("ledger-mark",)))
    database: Database = field(default_factory=lambda: Database("gateway", "releases"))

    def own(self, budgets: str, policy: str) -> dict[str, Any]:
        """Say where the database is."""
        own = super().own(budgets, policy)
        merge(own, {"gateway": {"releases": {"network": {"to": PEERS}}}})
        return own

    def make_secrets(self, namespace: Namespace) -> None:
        """Add the connection to the Secret that has the key already, and run the database."""
        super().make_secrets(namespace)
        connection = self.folder / "connection"
        # Inside the tests' own namespace and for one run: without TLS, which a real one has.
        connection.write_text(
            f"host={NAME} port={PORT} dbname=releases user=gateway password={self.database.password} sslmode=disable"
        )
        key = self.folder / "releases.key"
        key.write_bytes(namespace.decoded("gris-releases")["releases.key"])
        namespace.put(SECRET, "gris-releases", **{"releases.key": key, "connection": connection})
        self.database.make(namespace)

    def uninstall(self, namespace: Namespace) -> None:
        """Remove the database as well."""
        self.database.remove(namespace)
        super().uninstall(namespace)
