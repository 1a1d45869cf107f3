"""Both services, the gateway, Redis and Pinot on the cluster of KUBECONFIG, in a namespace for the tests alone.

Only `deploy/kubernetes/test.sh` collects what is here; it sets GRIS_TEST_KUBERNETES. It takes the chart
with the example of values that GRIS_TEST_DEPLOYMENT names: `trial`, which is the default, `production`,
`several-gateways`, or `regions` for the tests of regions alone. The images must be where the cluster finds
them: those of `make images` under the tag `local`, or those that GRIS_TEST_IMAGES names (PREFIX:TAG).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.compose.prepare import prepare
from examples import certificates
from tests.kubernetes.application import BUDGETS
from tests.kubernetes.cluster import (
    FOLDER,
    NAMESPACE,
    Chart,
    Namespace,
    kubectl,
    pod,
)
from tests.kubernetes.production import Production
from tests.kubernetes.regions import Regions
from tests.kubernetes.several_gateways import SeveralGateways
from tests.support.paths import ROOT
from tests.support.rings import needs

SLEEP = "import signal; signal.sigwait({signal.SIGTERM})"
SECRET = ("secret", "generic")
CHOSEN = "GRIS_TEST_DEPLOYMENT"
collect_ignore = [
    path.name
    for path in Path(__file__).parent.glob("test_*.py")
    # Beside its regions that is `production`, which the other tests are run on.
    if "GRIS_TEST_KUBERNETES" not in os.environ
    or (path.stem == "test_regions") is not (os.environ.get(CHOSEN) == "regions")
]
KNOWN: dict[str, type[Chart]] = {
    "trial": Chart,
    "production": Production,
    "several-gateways": SeveralGateways,
    "regions": Regions,
}


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Chart:
    """Return how everything is deployed."""
    chosen = os.environ.get(CHOSEN, "trial")
    if chosen not in KNOWN:
        raise ValueError(f"{CHOSEN}: expected one of {', '.join(KNOWN)}, and not {chosen!r}")
    return KNOWN[chosen](tmp_path_factory.mktemp("deployment"))


@pytest.fixture(scope="session")
@needs("kubernetes")
def gris(deployment: Chart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """Deploy everything as docs/deploying.md or docs/chart.md says, and delete it in the end."""
    folder = tmp_path_factory.mktemp("gris")
    prepare(folder)
    secrets = folder / ".gris" / "compose"
    (folder / "budget.yaml").write_text((ROOT / "examples" / "budget.yaml").read_text() + BUDGETS)
    shown = secrets / "certificates"
    certificates.make(shown)
    made = Namespace(NAMESPACE)
    described = yaml.safe_load((FOLDER / "namespace.yaml").read_text())
    described["metadata"]["name"] = NAMESPACE
    kubectl("apply", "--filename=-", given=json.dumps(described))
    try:
        made.put(SECRET, "gris-noise-key", **{"noise.key": secrets / "noise.key"})
        made.put(SECRET, "gris-store", address=secrets / "store.address")
        made.put(SECRET, "gris-redis", **{"redis.conf": secrets / "redis.conf"})
        made.put(SECRET, "gris-releases", **{"releases.key": secrets / "releases" / "releases.key"})
        made.put(SECRET, "gris-gateway", **files(shown / "gateway", "gateway"))
        made.put(SECRET, "gris-analyst", **files(shown / "ana", "ana") | files(shown / "eve", "eve"))
        deployment.install(made, folder / "budget.yaml")
        made.rolled_out("redis", "pinot", "dp-service", "budget-service", "gateway")
        yield made
        deployment.uninstall(made)
    finally:
        kubectl("delete", "--ignore-not-found", "namespace", NAMESPACE)


@pytest.fixture(scope="session")
def application(gris: Namespace, deployment: Chart) -> str:
    """Start a pod that is an application and waits for what is asked of it; return its name."""
    return _waiting_pod(gris, "application", "application", secret=deployment.secret)


@pytest.fixture(scope="session")
def analyst(gris: Namespace) -> str:
    """Start a pod that is an analyst, with Ana's certificate and Eve's, and return its name."""
    return _waiting_pod(gris, "analyst", "analyst", like="analyst")


@pytest.fixture(scope="session")
def stranger(gris: Namespace) -> str:
    """Start a pod in the same namespace that is no application; return its name."""
    return _waiting_pod(gris, "stranger", "stranger")


@pytest.fixture(scope="session")
@needs("kubernetes")
def outsider() -> Iterator[Namespace]:
    """Start a pod called `outsider`, which says it is an application, in a namespace without policies."""
    elsewhere = Namespace(f"{NAMESPACE}-elsewhere")
    kubectl("create", "namespace", elsewhere.name)
    try:
        _waiting_pod(elsewhere, "outsider", "application")
        yield elsewhere
    finally:
        kubectl("delete", "namespace", elsewhere.name)


def files(folder: Path, name: str) -> dict[str, Path]:
    """Return a certificate, its key and whom it trusts, by the names that they have in a pod."""
    return {each: folder / each for each in (f"{name}.pem", f"{name}.key", "ca.pem")}


def _waiting_pod(
    namespace: Namespace, name: str, component: str, *, secret: str | None = None, like: str = "application"
) -> str:
    made = pod(name, component, "-c", SLEEP, secret=secret, like=like)
    namespace.kubectl("apply", "--filename=-", given=made)
    namespace.wait_for("--for=condition=Ready", f"pod/{name}")
    return name


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """Return a copy of the example policy, to be changed."""
    copied = tmp_path / "policy.yaml"
    copied.write_text((ROOT / "examples" / "policy.yaml").read_text())
    return copied
