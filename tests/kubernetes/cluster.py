"""A deployment of the chart in a namespace of its own, with the example of values that GRIS_TEST_DEPLOYMENT names.

It is `trial`, `production`, `several-gateways` or `regions`.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from deploy.kubernetes.chart import CHART, TRIAL, Values
from deploy.kubernetes.chart import run as helm
from tests.support.paths import ROOT

CONFIGURATION = ("configmap",)
FOLDER = ROOT / "deploy" / "kubernetes"
NAMESPACE = "gris-test"
VOLUMES = "GRIS_TEST_VOLUMES"
STORAGE_CLASS = "gris-test"
"""Of the volumes below GRIS_TEST_VOLUMES; no class of this name has to exist."""
RELEASES = ("gateway-history",)
TIMEOUT_SECONDS = 300


class KubectlError(AssertionError):
    """A command of kubectl failed; the text is what it and its program say."""


def kubectl(*arguments: str, given: str | None = None) -> str:
    """Run kubectl on the cluster of KUBECONFIG and return what it prints; raises KubectlError."""
    command = [os.environ.get("KUBECTL", "kubectl"), *arguments]
    # A command that waits itself ends first, and says what it has waited for.
    seconds = TIMEOUT_SECONDS + 60
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode != 0:
        raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    # Deprecated fields, pods that the namespace will refuse, objects that were made in another way.
    if "apply" in arguments and "Warning:" in done.stderr:
        raise KubectlError(f"kubectl {' '.join(arguments)} warns: {done.stderr[-2000:]}")
    return done.stdout


@dataclass(frozen=True)
class Namespace:
    """One namespace of the cluster."""

    name: str

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Run kubectl in this namespace."""
        return kubectl("--namespace", self.name, *arguments, given=given)

    def get(self, *arguments: str) -> Any:
        """Return what `kubectl get` finds."""
        return json.loads(self.kubectl("get", "--output", "json", *arguments))

    def pods(self, name: str) -> list[Any]:
        """Return the pods of a service that are not about to end."""
        found = self.get("pods", "--selector", f"app.kubernetes.io/name={name}")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def put(self, kind: Sequence[str], name: str, **files: Path) -> None:
        """Make a Secret or ConfigMap of files, by their keys, or replace it."""
        sources = [f"--from-file={key}={path}" for key, path in files.items()]
        made = self.kubectl("create", *kind, name, *sources, "--dry-run=client", "--output=yaml")
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", given=made)

    def decoded(self, name: str) -> dict[str, bytes]:
        """Return what is in a Secret."""
        return {key: base64.b64decode(value) for key, value in self.get("secret", name)["data"].items()}

    def wait_for(self, *arguments: str) -> None:
        """Wait for a condition of something."""
        self.kubectl("wait", f"--timeout={TIMEOUT_SECONDS}s", *arguments)

    def rolled_out(self, *names: str) -> None:
        """Wait until these Deployments are as they should be."""
        for name in names:
            self.kubectl("rollout", "status", f"deployment/{name}", f"--timeout={TIMEOUT_SECONDS}s")

    def python(self, pod: str, *arguments: str) -> str:
        """Run Python in a pod of one of the project's images."""
        return self.kubectl("exec", pod, "--", "python", *arguments)


@dataclass(frozen=True)
class Volumes:
    """Volumes for these claims in folders of the node, below GRIS_TEST_VOLUMES; none where it is not set."""

    claims: tuple[str, ...]
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def make(self) -> None:
        """Make them."""
        for each in self._described():
            folder = Path(each["spec"]["hostPath"]["path"])
            folder.mkdir(parents=True, exist_ok=True)
            # A folder of a node belongs to root, and fsGroup changes nothing there.
            folder.chmod(0o777)
            kubectl("apply", "--filename=-", given=json.dumps(each))

    def remove(self) -> None:
        """Remove them and what is in them."""
        for each in self._described():
            kubectl("delete", "--ignore-not-found", "persistentvolume", each["metadata"]["name"])
            shutil.rmtree(each["spec"]["hostPath"]["path"], ignore_errors=True)

    def _described(self) -> Iterator[dict[str, Any]]:
        if (volumes := os.environ.get(VOLUMES)) is None:
            return
        for claim in self.claims:
            # Of this run alone: the mark of an earlier one is that of another ledger, and rightly refused.
            yield volume(claim, Path(volumes) / f"{NAMESPACE}-{self.run}-{claim}")


def volume(claim: str, folder: Path) -> dict[str, Any]:
    """Return a PersistentVolume in a folder of the node, for one claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{NAMESPACE}-{claim}"},
        "spec": {
            "capacity": {"storage": "16Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "storageClassName": STORAGE_CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": NAMESPACE, "name": claim},
            "hostPath": {"path": str(folder)},
        },
    }


@dataclass(frozen=True)
class Chart:
    """The chart with the values of one of its examples and some of the tests' own, as docs/chart.md has it.

    Applications show the services the files of `secret`, if any; `shown` are the options of the command line that name
    them. The namespace has the chart's other Secrets already.
    """

    folder: Path
    example: Values = TRIAL
    secret: str | None = None
    shown: tuple[str, ...] = ()
    volumes: Volumes = field(default_factory=lambda: Volumes(RELEASES))

    def install(self, namespace: Namespace, budgets: Path) -> None:
        """Install the chart with the example policy and a budget file; return before the pods run."""
        self.volumes.make()
        (self.folder / "budget.yaml").write_text(budgets.read_text())
        self.change_policy(namespace, ROOT / "examples" / "policy.yaml")

    def change_policy(self, namespace: Namespace, policy: Path) -> None:
        """Install or upgrade the release."""
        given = self.values((self.folder / "budget.yaml").read_text(), policy.read_text())
        place = ("gris", str(CHART), f"--namespace={namespace.name}")
        helm("upgrade", "--install", *place, *given.arguments())

    def uninstall(self, namespace: Namespace) -> None:
        """Uninstall the release, after which nothing is left of it but its volumes."""
        helm("uninstall", "gris", f"--namespace={namespace.name}", "--wait")
        left = namespace.get(_KINDS, "--selector=app.kubernetes.io/part-of=gris")["items"]
        assert {each["metadata"]["name"] for each in left} == set(self.volumes.claims)
        namespace.kubectl("delete", "persistentvolumeclaim", *self.volumes.claims)
        self.volumes.remove()

    def values(self, budgets: str, policy: str) -> Values:
        """Return the values of the example with the tests' own, which are written to a file."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(self.own(budgets, policy)))
        return Values("tried", [*self.example.files, file])

    def own(self, budgets: str, policy: str) -> dict[str, Any]:
        """Return the values that are the tests' own."""
        prefix, tag = _images()
        return {
            "images": {"prefix": prefix, "tag": tag},
            "trialServers": {"redisImage": redis_image(), "pinotImage": ":".join(image("pinot"))},
            "policy": {"text": policy},
            "budget": {"text": budgets},
            "store": {"mark": volume_class()},
            "gateway": {"volume": volume_class()},
            "regions": {"volume": volume_class()},
        }


_KINDS = (
    "deployments,services,serviceaccounts,configmaps,networkpolicies,poddisruptionbudgets,"
    "horizontalpodautoscalers,persistentvolumeclaims"
)


def image(name: str) -> tuple[str, str]:
    """Return name and tag of an image: those of `make images`, or what GRIS_TEST_IMAGES (PREFIX:TAG) says."""
    prefix, tag = _images()
    return f"{prefix}-{name}", tag


def _images() -> tuple[str, str]:
    prefix, _, tag = os.environ.get("GRIS_TEST_IMAGES", "gris:local").rpartition(":")
    return prefix, tag


def volume_class() -> dict[str, str]:
    """Return the values of a volume that say where it is from."""
    return {"storageClass": STORAGE_CLASS if VOLUMES in os.environ else ""}


def redis_image() -> str:
    """Return name and tag of the image of Redis."""
    return os.environ.get("GRIS_TEST_REDIS_IMAGE", "redis:7-bookworm")


def pod(
    name: str,
    component: str,
    *command: str,
    folders: Mapping[str, str] | None = None,
    secret: str | None = None,
    like: str = "application",
) -> str:
    """Return a pod `like` one of deploy/kubernetes which runs Python.

    `folders` are ConfigMaps and where they go; `secret` is what it shows to the services.
    """
    made: dict[str, Any] = yaml.safe_load((FOLDER / f"{like}.yaml").read_text())
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/component": component}
    made["metadata"] = {"name": name, "labels": labels}
    made["spec"]["restartPolicy"] = "Never"
    (container,) = made["spec"]["containers"]
    container |= {"image": ":".join(image("tools")), "command": ["python", *command]}
    for each, path in (folders or {}).items():
        container["volumeMounts"].append({"name": each, "mountPath": path})
        made["spec"]["volumes"].append({"name": each, "configMap": {"name": each}})
    if secret is not None:
        container["volumeMounts"].append({"name": "services", "mountPath": "/run/services"})
        made["spec"]["securityContext"]["fsGroup"] = 10001
        made["spec"]["volumes"].append(
            {"name": "services", "secret": {"secretName": secret, "defaultMode": 0o440}}
        )
    # JSON is YAML.
    return json.dumps(made)
