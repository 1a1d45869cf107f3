"""The overlay `regions` for the tests: `production` as the home of a budget, on a PostgreSQL, and its two regions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from examples.certificates import Authority
from tests.kubernetes.cluster import PODS, Namespace, Volumes
from tests.kubernetes.database import NAME, PORT, Database
from tests.kubernetes.production import CLAIMS, PLACES, Production, make_certificates

OVERLAY = PODS / "overlays" / "regions"
REGIONS = ("eu", "us")
_WHERE = "budget-service-to-store"


@dataclass(frozen=True)
class Regions(Production):
    """The overlay as docs/deploying.md has it; the ledger of the home is in a database."""

    overlay: Path = OVERLAY
    volumes: Volumes = field(
        default_factory=lambda: Volumes((*CLAIMS, *(f"ledger-{each}" for each in REGIONS)))
    )
    database: Database = field(default_factory=lambda: Database("budget-service", _WHERE, "gris"))
    beside: tuple[str, ...] = tuple(each for each in PLACES if each != _WHERE)

    def write(self, budgets: Path, policy: Path) -> None:
        """Write the kustomization, where the home lends and the regions have the same accounts."""
        super().write(budgets, policy)
        home = self.folder / "budget.yaml"
        (self.folder / "region-budget.yaml").write_text(home.read_text())
        lent = yaml.safe_load((OVERLAY / "budget.yaml").read_text())["leases"]
        home.write_text(f"leases: {json.dumps(lent)}\n{home.read_text()}")
        document = json.loads((self.folder / "kustomization.yaml").read_text())
        document["configMapGenerator"] += [
            {
                "name": f"gris-region-budget-{each}",
                "namespace": "gris",
                "behavior": "replace",
                "files": ["budget.yaml=region-budget.yaml"],
            }
            for each in REGIONS
        ]
        (self.folder / "kustomization.yaml").write_text(json.dumps(document))

    def _make_secrets(self, namespace: Namespace) -> None:
        """Put the home's address in the place of Redis', give each region what it shows, and run the database."""
        super()._make_secrets(namespace)
        address = self.folder / "address"
        user = f"{self.database.client}:{self.database.password}"
        address.write_text(f"postgresql://{user}@{NAME}:{PORT}/{self.database.database}")
        namespace.put(("secret", "generic"), "gris-store", address=address)
        for each in REGIONS:
            made = self.folder / "secrets" / each
            files = {
                name: made / "service" / f"region-{each}{name[-4:]}"
                for name in ("service.pem", "service.key")
            }
            files |= {name: made / "client" / name for name in ("region.pem", "region.key", "ca.pem")}
            namespace.put(("secret", "generic"), f"gris-region-{each}-tls", **files)
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
