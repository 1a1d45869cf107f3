"""The manifests are what Kubernetes' API takes, and hold to what every pod and every policy of the project must."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from budget_service.server.hosting import GRACE_SECONDS as BUDGET_GRACE
from deploy.kubernetes import manifests, validate
from deploy.kubernetes.chart import ALL, helm
from deploy.kubernetes.manifests import FOLDER, path_of
from deploy.kubernetes.validate import Manifest, faults, manifests_in, written
from dp_service.server.process import GRACE_SECONDS as DP_GRACE
from gris_gateway.limits import DEFAULT_LIMITS
from gris_serving.draining import connection_options
from tests.deploy.manifests import made_by, objects
from tests.support.some import some

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
    """Those of the chart, and those that are written by hand."""
    found = described()
    assert {"Deployment", "NetworkPolicy", "HorizontalPodAutoscaler"} <= {
        each.content["kind"] for each in found
    }
    assert list(faults(found)) == []


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


def test_every_object_says_its_namespace() -> None:
    """So that no file shuts another one: the policy default-deny is about every pod of a namespace."""
    for values in ALL:
        found = [each for each in described() if each.source == path_of(values).name]
        assert {each.content["metadata"]["namespace"] for each in found} == {"gris"}


def test_a_file_says_what_it_is_and_what_it_needs() -> None:
    """Where it is from, what marks a user's own, and every Secret that its pods mount and that it does not have."""
    for values in ALL:
        text = path_of(values).read_text()
        head = text.partition("---\n")[0]
        assert "`make manifests` wrote this file" in head
        mounted = {
            volume["secret"]["secretName"]
            for each in described()
            if each.source == path_of(values).name and each.content["kind"] == "Deployment"
            for volume in each.content["spec"]["template"]["spec"].get("volumes", ())
            if "secret" in volume
        }
        assert all(name in head for name in mounted)
        assert "kind: Secret\n" not in text
        for line, before in zip(text.splitlines()[1:], text.splitlines(), strict=False):
            if line.strip().startswith("image: ") and "gris-pinot" not in line and "redis" not in line:
                assert "# yours: " in before


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_a_file_is_patched_as_documented(tmp_path: Path) -> None:
    """The kustomization of docs/deploying.md replaces an image, the policy and a network, and nothing else."""
    page = (FOLDER.parents[1] / "docs" / "deploying.md").read_text()
    text = page.partition("### Without Helm")[2].partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "kustomization.yaml").write_text(text)
    (tmp_path / "policy.yaml").write_text("tables: {}\n")
    shutil.copy(FOLDER / "production.yaml", tmp_path)
    made = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    before, after = objects(made_by("production")), objects(list(manifests_in("patched", made)))
    changed = {key for key, content in after.items() if content != before[key]}
    assert changed == {
        ("Deployment", "dp-service"),
        ("ConfigMap", "gris-policy"),
        ("NetworkPolicy", "budget-service-to-store"),
    }
    assert after["ConfigMap", "gris-policy"]["data"] == {"policy.yaml": "tables: {}\n"}
    assert "registry.mine/gris-dp-service:0.1.0" in made
    assert "cidr: 10.9.0.0/24" in made


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.skipif(helm() is None, reason="needs helm")
def test_a_file_that_the_chart_would_write_otherwise_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, with the command that writes it."""
    assert list(manifests.outdated()) == []
    shutil.copytree(
        FOLDER, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", "__pycache__")
    )
    monkeypatch.setattr(manifests, "FOLDER", tmp_path)
    changed = tmp_path / "regions.yaml"
    changed.write_text(changed.read_text().replace("replicas: 3", "replicas: 4"))
    assert validate.main() == 1
    assert capsys.readouterr().err == "regions.yaml is not what the chart makes: run `make manifests`\n"


@pytest.mark.slow
def test_without_helm_the_files_are_checked_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the command says what to install; the one that writes them fails."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert validate.main() == 0
    assert "install Helm" in capsys.readouterr().out
    assert manifests.main() == 1
    assert "install Helm" in capsys.readouterr().err


@pytest.mark.parametrize(("title", "spec"), list(pod_specs()))
def test_no_pod_has_rights(title: str, spec: Mapping[str, Any]) -> None:
    """What the standard `restricted` asks for, no token, and a limit on memory; the services can change no file."""
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in some(spec["containers"]):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
        # Pinot unpacks libraries into its own file system.
        assert container["securityContext"].get("readOnlyRootFilesystem", False) is (
            container["name"] != "pinot"
        )


def test_secrets_are_read_from_files_that_nobody_else_can_read() -> None:
    """No environment holds a secret, and no mode is wider than dp_service accepts for its key."""
    secrets = []
    for _, spec in some(pod_specs()):
        for container in some(spec["containers"]):
            assert {"env", "envFrom"}.isdisjoint(container)
        secrets += [volume["secret"] for volume in spec.get("volumes", ()) if "secret" in volume]
    assert {secret["defaultMode"] for secret in secrets} == {0o440}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "grace"),
    [("dp-service", DP_GRACE), ("budget-service", BUDGET_GRACE), ("gateway", DEFAULT_LIMITS.grace_seconds)],
)
def test_a_service_is_drained_before_it_is_killed(name: str, grace: float) -> None:
    """A pod is given longer than it drains and its last calls may run, and its successor is found before it leaves.

    A gateway's successor begins after it: both would have the file of releases.
    """
    (found,) = (each.content for each in described() if each.title == f"production.yaml: Deployment {name}")
    pod = found["spec"]["template"]["spec"]
    options = dict(each.split("=") for each in pod["containers"][0]["args"] if "=" in each)
    drain = float(options["--drain-seconds"])
    assert drain + grace < pod["terminationGracePeriodSeconds"]
    by_turns, at_once = {"type": "Recreate"}, {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert found["spec"]["strategy"] == (by_turns if name == "gateway" else at_once)
    assert found["spec"]["minReadySeconds"] > 0
    # Connections live about half as long, and a client that lost one asks for names once a second.
    assert connection_options(drain)[0][1] < 1000 * drain - 5000
