"""The overlay `several-gateways` for the tests: `production` with two gateways, and their PostgreSQL beside them.

GRIS_TEST_POSTGRES_IMAGE is the image of PostgreSQL, GRIS_TEST_POSTGRES_UID the number of its user.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import PODS, Namespace, Volumes
from tests.kubernetes.production import Production

NAME = "postgres"
PORT = 5432
# Of the overlay's own policies, the one that says where the database is.
_WHERE = "gateway-to-releases"


@dataclass(frozen=True)
class SeveralGateways(Production):
    """The overlay as docs/deploying.md has it; what was paid for is in a database."""

    overlay: Path = PODS / "overlays" / "several-gateways"
    volumes: Volumes = field(default_factory=lambda: Volumes(("ledger-mark",)))
    places: tuple[str, ...] = (*Production.places, _WHERE)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)

    def _make_secrets(self, namespace: Namespace) -> None:
        """Add the connection to the Secret that has the key already, and run the database."""
        super()._make_secrets(namespace)
        connection = self.folder / "connection"
        # Inside the tests' own namespace and for one run: without TLS, which a real one has.
        connection.write_text(
            f"host={NAME} port={PORT} dbname=releases user=gateway password={self.password} sslmode=disable"
        )
        key = self.folder / "releases.key"
        key.write_bytes(namespace.decoded("gris-releases")["releases.key"])
        given = {"releases.key": key, "connection": connection}
        namespace.put(("secret", "generic"), "gris-releases", **given)
        for each in self._database():
            namespace.kubectl("apply", "--filename=-", given=json.dumps(each))
        namespace.rolled_out(NAME)

    def uninstall(self, namespace: Namespace) -> None:
        """Remove the database as well."""
        for each in self._database():
            namespace.kubectl("delete", "--ignore-not-found", each["kind"], each["metadata"]["name"])
        super().uninstall(namespace)

    def _database(self) -> list[dict[str, Any]]:
        labels = {"app.kubernetes.io/name": NAME}
        return [
            _deployment(labels, self.password),
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": NAME},
                "spec": {"selector": labels, "ports": [{"port": PORT}]},
            },
            _policy(NAME, labels, ingress=[_opening("from", "gateway")]),
            _policy(_WHERE, {"app.kubernetes.io/name": "gateway"}, egress=[_opening("to", NAME)]),
        ]


def _deployment(labels: dict[str, str], password: str) -> dict[str, Any]:
    user = int(os.environ.get("GRIS_TEST_POSTGRES_UID", "999"))
    environment = {"POSTGRES_USER": "gateway", "POSTGRES_DB": "releases", "POSTGRES_PASSWORD": password}
    folders = {"data": "/data", "temporary": "/tmp", "socket": "/var/run/postgresql"}  # noqa: S108  (the pod's own)
    container = {
        "name": NAME,
        "image": os.environ.get("GRIS_TEST_POSTGRES_IMAGE", "postgres:16"),
        "env": [
            {"name": name, "value": value}
            for name, value in (environment | {"PGDATA": "/data/database"}).items()
        ],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 2},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in folders.items()],
    }
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": user,
                "runAsGroup": user,
                "fsGroup": user,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": name, "emptyDir": {}} for name in folders],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {"strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": template},
    }


def _policy(name: str, labels: dict[str, str], **rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {
            "podSelector": {"matchLabels": labels},
            "policyTypes": [each.capitalize() for each in rules],
            **rules,
        },
    }


def _opening(side: str, name: str) -> dict[str, Any]:
    return {
        side: [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}],
        "ports": [{"port": PORT, "protocol": "TCP"}],
    }
