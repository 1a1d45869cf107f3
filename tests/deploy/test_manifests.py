"""The manifests are what Kubernetes' API takes, and hold to what every pod and every policy of the project must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from budget_service.server.hosting import GRACE_SECONDS as BUDGET_GRACE
from deploy.kubernetes import validate
from deploy.kubernetes.validate import FOLDER, Manifest, faults, rendered, renderer, written
from dp_service.server.process import GRACE_SECONDS as DP_GRACE
from gris_gateway.limits import DEFAULT_LIMITS
from gris_serving.draining import connection_options

WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: wrong}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers: [{name: one, image: two, prots: []}]
"""


@cache
def described() -> tuple[Manifest, ...]:
    """Return the objects as they are written, for tests that only read them."""
    return tuple(written(FOLDER))


def pod_specs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the pods that are described, alone, in Deployments or in Jobs."""
    for manifest in described():
        if manifest.content["kind"] == "Pod":
            yield manifest.title, manifest.content["spec"]
        if manifest.content["kind"] in ("Deployment", "Job"):
            yield manifest.title, manifest.content["spec"]["template"]["spec"]


@pytest.mark.slow
def test_every_manifest_is_valid() -> None:
    """As written; `make check` renders the overlays too."""
    manifests = described()
    assert {"Deployment", "NetworkPolicy", "HorizontalPodAutoscaler"} <= {
        each.content["kind"] for each in manifests
    }
    assert list(faults(manifests)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WORKLOAD, "Additional properties are not allowed ('prots' was unexpected)"),
        ("{apiVersion: apps/v1, kind: Deploiment, metadata: {name: x}}", "there is no such kind"),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: http}]}}",
            "'http' is not of type",
        ),
    ],
)
def test_a_wrong_manifest_is_named_with_its_fault(text: str, said: str) -> None:
    """A key that does not exist, a kind that does not exist, and a value of another type."""
    (fault,) = faults([Manifest("file.yaml", yaml.safe_load(text))])
    assert fault.startswith("file.yaml: ")
    assert said in fault


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.skipif(renderer() is None, reason="needs kustomize or kubectl")
def test_every_overlay_can_be_rendered() -> None:
    """Both are whole: their own objects and the base's, in their namespace."""
    manifests = list(rendered(FOLDER))
    for source in ("rendered local", "rendered production"):
        found = [each.content for each in manifests if each.source == source]
        kinds = [each["kind"] for each in found]
        assert {"Namespace", "ServiceAccount", "Deployment", "PodDisruptionBudget"} <= set(kinds)
        assert {each["metadata"].get("namespace") for each in found if each["kind"] != "Namespace"} == {
            "gris"
        }


@pytest.mark.slow
def test_without_a_renderer_nothing_is_rendered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And the command says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(rendered(FOLDER)) == []
    assert validate.main() == 0


@pytest.mark.parametrize(("title", "spec"), list(pod_specs()))
def test_no_pod_has_rights(title: str, spec: Mapping[str, Any]) -> None:
    """What the standard `restricted` asks for, no token, and a limit on memory; the services can change no file."""
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
        # Pinot unpacks libraries into its own file system.
        assert container["securityContext"].get("readOnlyRootFilesystem", False) is (
            container["name"] != "pinot"
        )


def test_secrets_are_read_from_files_that_nobody_else_can_read() -> None:
    """No environment holds a secret, and no mode is wider than dp_service accepts for its key."""
    for _, spec in pod_specs():
        assert all("env" not in container and "envFrom" not in container for container in spec["containers"])
        secrets = [volume["secret"] for volume in spec.get("volumes", ()) if "secret" in volume]
        assert all(secret["defaultMode"] == 0o440 for secret in secrets)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "grace"),
    [("dp-service", DP_GRACE), ("budget-service", BUDGET_GRACE), ("gateway", DEFAULT_LIMITS.grace_seconds)],
)
def test_a_service_is_drained_before_it_is_killed(name: str, grace: float) -> None:
    """A pod is given longer than it drains and its last calls may run, and its successor is found before it leaves.

    A gateway's successor begins after it: both would have the file of releases.
    """
    (found,) = (each.content for each in described() if each.title.endswith(f": Deployment {name}"))
    pod = found["spec"]["template"]["spec"]
    options = dict(each.split("=") for each in pod["containers"][0]["args"] if "=" in each)
    drain = float(options["--drain-seconds"])
    assert drain + grace < pod["terminationGracePeriodSeconds"]
    by_turns, at_once = {"type": "Recreate"}, {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert found["spec"]["strategy"] == (by_turns if name == "gateway" else at_once)
    assert found["spec"]["minReadySeconds"] > 0
    # Connections live about half as long, and a client that lost one asks for names once a second.
    assert connection_options(drain)[0][1] < 1000 * drain - 5000
