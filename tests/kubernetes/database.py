"""A PostgreSQL in the tests' namespace, without a volume and without TLS.

GRIS_TEST_POSTGRES_IMAGE is its image, GRIS_TEST_POSTGRES_UID the number of its user.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.kubernetes.cluster import Namespace

NAME = "postgres"
PORT = 5432
_LABELS = {"app.kubernetes.io/name": NAME}
PEERS = [{"podSelector": {"matchLabels": _LABELS}}]
"""Where it is, as peers of a NetworkPolicy."""


@dataclass(frozen=True)
class Database:
    """A database that the pods of one name reach, by their own policies."""

    client: str
    database: str
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)

    def make(self, namespace: Namespace) -> None:
        """Make it and wait until it runs."""
        for each in self._objects():
            namespace.kubectl("apply", "--filename=-", given=json.dumps(each))
        namespace.rolled_out(NAME)

    def remove(self, namespace: Namespace) -> None:
        """Remove it with what it holds."""
        for each in self._objects():
            namespace.kubectl("delete", "--ignore-not-found", each["kind"], each["metadata"]["name"])

    def _objects(self) -> list[dict[str, Any]]:
        return [
            self._deployment(_LABELS),
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": NAME},
                "spec": {"selector": _LABELS, "ports": [{"port": PORT}]},
            },
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": NAME},
                "spec": {
                    "podSelector": {"matchLabels": _LABELS},
                    "policyTypes": ["Ingress"],
                    "ingress": [
                        {
                            "from": [
                                {"podSelector": {"matchLabels": {"app.kubernetes.io/name": self.client}}}
                            ],
                            "ports": [{"port": PORT, "protocol": "TCP"}],
                        }
                    ],
                },
            },
        ]

    def _deployment(self, labels: dict[str, str]) -> dict[str, Any]:
        user = int(os.environ.get("GRIS_TEST_POSTGRES_UID", "999"))
        environment = {
            "POSTGRES_USER": self.client,
            "POSTGRES_DB": self.database,
            "POSTGRES_PASSWORD": self.password,
        }
        folders = {"data": "/data", "temporary": "/tmp", "socket": "/var/run/postgresql"}  # noqa: S108  (the pod's own)
        container = {
            "name": NAME,
            "image": os.environ.get("GRIS_TEST_POSTGRES_IMAGE", "postgres:16"),
            "env": [
                {"name": name, "value": value}
                for name, value in (environment | {"PGDATA": "/data/database"}).items()
            ],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 2},
            # Without a share of its own a busy node lets it wait for longer than its clients do.
            "resources": {"requests": {"cpu": "500m", "memory": "128Mi"}},
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
            "spec": {
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }
