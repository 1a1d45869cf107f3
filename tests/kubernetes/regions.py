"""The example `regions` for the tests: `production` as the home of a budget, on a PostgreSQL, and its two regions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from deploy.kubernetes.chart import REGIONS as EXAMPLE
from deploy.kubernetes.chart import Values
from examples.certificates import Authority
from tests.kubernetes.cluster import Namespace, Volumes
from tests.kubernetes.database import NAME, PEERS, PORT, Database
from tests.kubernetes.production import CLAIMS, SECRET, Production, make_certificates, merge

REGIONS = ("eu", "us")


@dataclass(frozen=True)
class Regions(Production):
    """The chart with these values; the ledger of the home is in a database."""

    example: Values = EXAMPLE
    volumes: Volumes = field(
        default_factory=lambda: Volumes((*CLAIMS, *(f"ledger-{each}" for each in REGIONS)))
    )
    database: Database = field(default_factory=lambda: Database("budget-service", "gris"))

    def own(self, budgets: str, policy: str) -> dict[str, Any]:
        """Say where the home's database is; the home lends, and the regions have the same accounts."""
        own = super().own(budgets, policy)
        known = own["budget"]["text"]
        lent = yaml.safe_load(yaml.safe_load(EXAMPLE.files[-1].read_text())["budget"]["text"])["leases"]
        merge(own, {"budget": {"text": f"leases: {json.dumps(lent)}\n{known}"}, "regions": {"budget": known}})
        merge(own, {"store": {"kind": "postgresql", "network": {"to": PEERS}}})
        return own

    def make_secrets(self, namespace: Namespace) -> None:
        """Put the home's address in the place of Redis', give each region what it shows, and run the database."""
        super().make_secrets(namespace)
        address = self.folder / "address"
        user = f"{self.database.client}:{self.database.password}"
        address.write_text(f"postgresql://{user}@{NAME}:{PORT}/{self.database.database}")
        namespace.put(SECRET, "gris-store", address=address)
        for each in REGIONS:
            made = self.folder / "secrets" / each
            files = {
                name: made / "service" / f"region-{each}{name[-4:]}"
                for name in ("service.pem", "service.key")
            }
            files |= {name: made / "client" / name for name in ("region.pem", "region.key", "ca.pem")}
            namespace.put(SECRET, f"gris-region-{each}-tls", **files)
        self.database.make(namespace)

    def make_certificates(self, folder: Path) -> None:
        """Add those of the regions: one for applications, one for the home."""
        authority = Authority.new()
        make_certificates(folder, authority)
        for each in REGIONS:
            (folder / each).mkdir()
            name = f"region-{each}"
            server = ExtendedKeyUsageOID.SERVER_AUTH
            authority.issue(folder / each / "service", name, [x509.DNSName(name)], server)
            identity = x509.UniformResourceIdentifier(f"spiffe://example.org/gris/region/{each}")
            authority.issue(folder / each / "client", "region", [identity], ExtendedKeyUsageOID.CLIENT_AUTH)

    def uninstall(self, namespace: Namespace) -> None:
        """Remove the database as well."""
        self.database.remove(namespace)
        super().uninstall(namespace)
