"""The example `production` for the tests: TLS, tickets and a high-water mark, with the Redis and the Pinot of a trial.

What is marked "yours" there is replaced: images, policy, budgets, where the store and Pinot are, and who asks the
gateway. Its two volumes are those of the cluster's default storage class, which has to have ReadWriteMany; on a cluster
of one node they can be folders below GRIS_TEST_VOLUMES instead, which has to be on that node.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from deploy.kubernetes.chart import PRODUCTION, TRIAL, Values
from examples.certificates import Authority
from tests.kubernetes.cluster import Chart, Namespace, Volumes

CLAIMS = ("gateway-history", "ledger-mark")
CLIENT = "gris-gateway-client"
FOLDER = "/run/services"
SECRET = ("secret", "generic")


@dataclass(frozen=True)
class Production(Chart):
    """The chart with the values of `production`; an application shows the gateway's certificate."""

    example: Values = PRODUCTION
    volumes: Volumes = field(default_factory=lambda: Volumes(CLAIMS))
    secret: str | None = CLIENT
    shown: tuple[str, ...] = (
        *("--ca-file", f"{FOLDER}/ca.pem"),
        *("--certificate-file", f"{FOLDER}/client.pem"),
        *("--key-file", f"{FOLDER}/client.key"),
    )

    def install(self, namespace: Namespace, budgets: Path) -> None:
        """Make the Secrets, and install the chart."""
        self.make_secrets(namespace)
        super().install(namespace, budgets)

    def own(self, budgets: str, policy: str) -> dict[str, Any]:
        """Add the servers of a trial, and who asks the gateway there."""
        trial = yaml.safe_load(TRIAL.files[0].read_text())
        production = yaml.safe_load(yaml.safe_load(PRODUCTION.files[0].read_text())["budget"]["text"])
        demanded = json.dumps(production["charge_tickets"])
        own = super().own(f"charge_tickets: {demanded}\n{budgets}", policy)
        merge(own, {key: trial[key] for key in ("trial", "trialServers", "pinot")})
        merge(own, {"store": {key: trial["store"][key] for key in ("kind", "network")}})
        merge(own, {"gateway": trial["gateway"] | {"identity": {"jwt": None} | trial["gateway"]["identity"]}})
        for each in ("dpService", "budgetService"):
            merge(own, {each: {"resources": trial[each]["resources"]}})
        return own

    def make_secrets(self, namespace: Namespace) -> None:
        """Put what the services and the gateway show each other, and the ticket key, into Secrets."""
        made = self.folder / "secrets"
        made.mkdir()
        self.make_certificates(made)
        for name in ("dp-service", "budget-service"):
            given = made / name
            files = {"service.pem": given / f"{name}.pem", "service.key": given / f"{name}.key"}
            namespace.put(SECRET, f"gris-{name}-tls", **files, **{"ca.pem": given / "ca.pem"})
        client = {each: made / "client" / each for each in ("client.pem", "client.key", "ca.pem")}
        namespace.put(SECRET, CLIENT, **client)
        (made / "noise.key").write_bytes(namespace.decoded("gris-noise-key")["noise.key"])
        (made / "noise.key").chmod(0o400)
        namespace.put(SECRET, "gris-ticket-key", **{"ticket.key": ticket_key(made)})

    def make_certificates(self, folder: Path) -> None:
        """Write what the services and the gateway show each other."""
        make_certificates(folder, Authority.new())


def merge(values: dict[str, Any], more: dict[str, Any]) -> None:
    """Put more values among values, as helm does with another file of them."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            merge(values[key], value)
        else:
            values[key] = value


def make_certificates(folder: Path, authority: Authority) -> None:
    """Write certificates of both services, and of the gateway towards them."""
    for name in ("dp-service", "budget-service"):
        authority.issue(folder / name, name, [x509.DNSName(name)], ExtendedKeyUsageOID.SERVER_AUTH)
    identity = x509.UniformResourceIdentifier("spiffe://example.org/gris/gateway")
    authority.issue(folder / "client", "client", [identity], ExtendedKeyUsageOID.CLIENT_AUTH)


def ticket_key(folder: Path) -> Path:
    """Make the ticket key of the noise key in a folder, as docs/deploying.md does."""
    made = folder / "ticket.key"
    words = ["budget", "ticket-key", "--key-file", str(folder / "noise.key"), "--out", str(made)]
    subprocess.run([sys.executable, "-m", "gris_cli", *words], check=True, capture_output=True)
    return made
