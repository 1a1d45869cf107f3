"""The manifests are what Kubernetes' API takes, and hold to what every pod and every policy of the project must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from budget_service.server.hosting import GRACE_SECONDS as BUDGET_GRACE
from deploy.kubernetes.chart import ALL
from deploy.kubernetes.validate import Manifest, faults, written
from dp_service.server.process import GRACE_SECONDS as DP_GRACE
from gris_gateway.limits import DEFAULT_LIMITS
from gris_serving.draining import connection_options
from tests.deploy.manifests import made_by
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


pytestmark = pytest.mark.usefixtures("starts_processes")


@cache
def described() -> tuple[Manifest, ...]:
    """Return the objects of every example and those that are written by hand, for tests that only read them."""
    return (*written(), *(each for values in ALL for each in made_by(values.name)))


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
    """So that none shuts another one: the policy default-deny is about every pod of a namespace."""
    for values in ALL:
        assert {each.content["metadata"]["namespace"] for each in made_by(values.name)} == {"gris"}


def test_no_pod_has_rights() -> None:
    """What the standard `restricted` asks for, no token, and a limit on memory; the services can change no file."""
    for title, spec in some(pod_specs()):
        assert spec["automountServiceAccountToken"] is False, title
        assert spec["securityContext"]["runAsNonRoot"] is True, title
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, title
        for container in some(spec["containers"]):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False, title
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, title
            assert "memory" in container["resources"]["limits"], title
            # Pinot unpacks libraries into its own file system.
            assert container["securityContext"].get("readOnlyRootFilesystem", False) is (
                container["name"] != "pinot"
            ), title


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
    (found,) = (each.content for each in described() if each.title == f"production: Deployment {name}")
    pod = found["spec"]["template"]["spec"]
    options = dict(each.split("=") for each in pod["containers"][0]["args"] if "=" in each)
    drain = float(options["--drain-seconds"])
    assert drain + grace < pod["terminationGracePeriodSeconds"]
    by_turns, at_once = {"type": "Recreate"}, {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert found["spec"]["strategy"] == (by_turns if name == "gateway" else at_once)
    assert found["spec"]["minReadySeconds"] > 0
    # Connections live about half as long, and a client that lost one asks for names once a second.
    assert connection_options(drain)[0][1] < 1000 * drain - 5000
