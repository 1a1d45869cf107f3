"""The overlay `production` for the tests: TLS, tickets and a high-water mark, with the Redis and the Pinot of `local`.

What is marked "yours" there is replaced: images, policy, budgets, where the store and Pinot are, and who asks the
gateway. Its two volumes are those of the cluster's default storage class, which has to have ReadWriteMany; on a cluster
of one node they can be folders below GRIS_TEST_VOLUMES instead, which has to be on that node.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from examples.certificates import Authority
from tests.kubernetes.cluster import (
    NAMESPACE,
    PODS,
    ROOT,
    Namespace,
    Volumes,
    claims_without_class,
    image,
    kubectl,
    kustomization,
)

PRODUCTION = PODS / "overlays" / "production"
CLAIMS = ("gateway-history", "ledger-mark")
CLIENT = "gris-gateway-client"
FOLDER = "/run/services"
IMAGES = ("dp-service", "budget-service", "gateway")
# The two policies of the overlay that say where the store and Pinot are.
PLACES = ("budget-service-to-store", "application-to-pinot")


@dataclass(frozen=True)
class Production:
    """The overlay `production`, as docs/deploying.md has it; an application shows the gateway's certificate."""

    folder: Path
    overlay: Path = PRODUCTION
    volumes: Volumes = field(default_factory=lambda: Volumes(CLAIMS))
    places: tuple[str, ...] = PLACES
    beside: tuple[str, ...] = PLACES
    secret: str | None = CLIENT
    shown: tuple[str, ...] = (
        *("--ca-file", f"{FOLDER}/ca.pem"),
        *("--certificate-file", f"{FOLDER}/client.pem"),
        *("--key-file", f"{FOLDER}/client.key"),
    )

    def install(self, namespace: Namespace, budgets: Path) -> None:
        """Make Secrets and volumes, and apply the overlay, with the store and Pinot beside it."""
        self._make_secrets(namespace)
        self.volumes.make()
        self.write(budgets, ROOT / "examples" / "policy.yaml")
        self._apply()

    def write(self, budgets: Path, policy: Path) -> None:
        """Write a kustomization of the overlay with what is the tests' own."""
        write(self.overlay, self.folder, budgets, policy)

    def change_policy(self, namespace: Namespace, policy: Path) -> None:
        """Change the file and apply the overlay."""
        (self.folder / "policy.yaml").write_text(policy.read_text())
        self._apply()

    def uninstall(self, namespace: Namespace) -> None:
        """Remove every object; the namespace is one of them."""
        kubectl("delete", "--ignore-not-found", "--filename=-", given=self._rendered())
        self.volumes.remove()

    def make_certificates(self, folder: Path) -> None:
        """Write what the services and the gateway show each other."""
        make_certificates(folder, Authority.new())

    def _apply(self) -> None:
        kubectl("apply", "--filename=-", given=self._rendered())

    def _rendered(self) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(self.objects())})

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield what `write` has described, with Redis and Pinot, and where these are, from the overlay `local`."""
        beside = self.folder / "beside"
        beside.mkdir(exist_ok=True)
        for each in yaml.safe_load_all(kubectl("kustomize", str(self.folder))):
            if each["metadata"]["name"] not in self.places:
                yield each
        for each in yaml.safe_load_all(kubectl("kustomize", str(kustomization(beside)))):
            if each["metadata"]["name"] in ("redis", "pinot", *self.beside):
                yield each

    def _make_secrets(self, namespace: Namespace) -> None:
        made = self.folder / "secrets"
        made.mkdir()
        self.make_certificates(made)
        for name in ("dp-service", "budget-service"):
            given = made / name
            files = {"service.pem": given / f"{name}.pem", "service.key": given / f"{name}.key"}
            namespace.put(("secret", "generic"), f"gris-{name}-tls", **files, **{"ca.pem": given / "ca.pem"})
        client = {each: made / "client" / each for each in ("client.pem", "client.key", "ca.pem")}
        namespace.put(("secret", "generic"), CLIENT, **client)
        (made / "noise.key").write_bytes(namespace.decoded("gris-noise-key")["noise.key"])
        (made / "noise.key").chmod(0o400)
        namespace.put(("secret", "generic"), "gris-ticket-key", **{"ticket.key": ticket_key(made)})


def make_certificates(folder: Path, authority: Authority) -> None:
    """Write certificates of both services, and of the gateway towards them."""
    for name in ("dp-service", "budget-service"):
        authority.issue(folder / name, name, [x509.DNSName(name)], ExtendedKeyUsageOID.SERVER_AUTH)
    identity = x509.UniformResourceIdentifier("spiffe://example.org/gris/gateway")
    authority.issue(folder / "client", "client", [identity], ExtendedKeyUsageOID.CLIENT_AUTH)


def ticket_key(folder: Path) -> Path:
    """Make the ticket key of the noise key in a folder, as docs/deploying.md does."""
    made = folder / "ticket.key"
    words = ["ticket-key", "--key-file", str(folder / "noise.key"), "--out", str(made)]
    subprocess.run([sys.executable, "-m", "gris_cli", *words], check=True, capture_output=True)
    return made


def write(overlay: Path, folder: Path, budgets: Path, policy: Path) -> None:
    """Write a kustomization of an overlay with what is the tests' own."""
    demanded = yaml.safe_load((PRODUCTION / "budget.yaml").read_text())["charge_tickets"]
    (folder / "budget.yaml").write_text(f"charge_tickets: {json.dumps(demanded)}\n{budgets.read_text()}")
    (folder / "policy.yaml").write_text(policy.read_text())
    gateway = yaml.safe_load((overlay / "gateway.yaml").read_text())
    example = yaml.safe_load((ROOT / "examples" / "gateway.yaml").read_text())
    (folder / "gateway.yaml").write_text(
        json.dumps(gateway | {key: example[key] for key in ("tls", "engine", "identity")})
    )
    cpu = "/spec/template/spec/containers/0/resources/requests/cpu"
    patches = [{"target": {"kind": "Deployment"}, "patch": f"- {{op: replace, path: {cpu}, value: 50m}}"}]
    patches += claims_without_class()
    document = {
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(overlay, folder.resolve())],
        "images": [
            {"name": f"registry.example/gris-{name}", "newName": image(name)[0], "newTag": image(name)[1]}
            for name in IMAGES
        ],
        "configMapGenerator": [
            {"name": f"gris-{name}", "namespace": "gris", "behavior": "replace", "files": [f"{name}.yaml"]}
            for name in ("policy", "budget", "gateway")
        ],
        "generatorOptions": {"disableNameSuffixHash": True},
        "patches": patches,
    }
    (folder / "kustomization.yaml").write_text(json.dumps(document))
