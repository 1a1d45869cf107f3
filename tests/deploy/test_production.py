"""The example for production is a sound starting point, which trusts nobody yet."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from budget_service.configuration.budget_file import load_configuration
from budget_service.ledger.values import Account
from budget_service.server.process import main as budget_service_main
from deploy.kubernetes.chart import ROOT, helm, render
from deploy.kubernetes.validate import FOLDER, faults, manifests_in
from dp_service.queries.policy import read_policy
from dp_service.server.process import main as dp_service_main
from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.process import main
from gris_serving.documents import read_document
from tests.deploy.manifests import deployments, text_of
from tests.deploy.production import located
from tests.kubernetes.cluster import VOLUMES
from tests.kubernetes.production import Production
from tests.kubernetes.regions import Regions
from tests.kubernetes.several_gateways import SeveralGateways
from tests.support.budget_process import SERVING, health_becomes
from tests.support.pki import Authority, Issuer
from tests.support.processes import process
from tests.support.redis_server import redis_server
from tests.support.release_stores import key_file
from tests.support.some import some

pytestmark = pytest.mark.usefixtures("starts_processes")

EXAMPLES = ROOT / "examples"


@pytest.fixture
def gateway(tmp_path: Path) -> Path:
    """Return its gateway.yaml, with its folders moved here and a certificate of its own."""
    Authority.new(tmp_path).server("gateway")
    (tmp_path / "issuer.jwks").write_text(text_of("production", "gris-gateway", "issuer.jwks"))
    text = text_of("production", "gris-gateway", "gateway.yaml").replace("0.0.0.0:50054", "127.0.0.1:0")
    # What it shows the services: the Secret gris-gateway-client.
    for name, copied in (("client.pem", "gateway.pem"), ("client.key", "gateway.key")):
        shutil.copy(tmp_path / copied, tmp_path / name)
    key_file(tmp_path)
    for folder in ("/run/gris", "/run/services", "/run/releases", "/etc/gris", "/var/lib/gris"):
        assert folder in text
        text = text.replace(folder, str(tmp_path))
    (tmp_path / "gateway.yaml").write_text(text)
    return tmp_path / "gateway.yaml"


def test_its_configuration_can_be_served(tmp_path: Path) -> None:
    """The policy has a table, the budgets a limit for an analyst, and the gateway speaks TLS."""
    policy = read_policy(text_of("production", "gris-policy", "policy.yaml").encode(), "policy.yaml").policy
    assert [table.name for table in policy.tables] == ["engagement"]
    for configuration, name in (("gris-budget", "budget.yaml"), ("gris-gateway", "gateway.yaml")):
        (tmp_path / name).write_text(text_of("production", configuration, name))
    assert load_configuration(tmp_path / "budget.yaml").limit_of(Account(("acme", "ann"))) is not None
    read_document(tmp_path / "gateway.yaml", GatewayConfiguration).require_protected()


def test_its_ledger_demands_tickets_under_a_key_that_its_pods_hold(tmp_path: Path) -> None:
    """The key's file is in a Secret that only the process may read; a pod does not start without it."""
    (tmp_path / "budget.yaml").write_text(text_of("production", "gris-budget", "budget.yaml"))
    demanded = load_configuration(tmp_path / "budget.yaml").charge_tickets
    assert demanded is not None
    pod = deployments("production")["budget-service"]["spec"]["template"]["spec"]
    folder, name = demanded.key_file.rsplit("/", 1)
    mounts = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}
    assert mounts[folder]["readOnly"]
    volume = next(each for each in pod["volumes"] if each["name"] == mounts[folder]["name"])
    assert volume["secret"] == {"secretName": "gris-ticket-key", "defaultMode": 0o440}
    made = f"create secret generic gris-ticket-key --from-file={name}"
    assert made in (ROOT / "docs" / "deploying.md").read_text()


@pytest.mark.parametrize(
    ("name", "main"), [("dp-service", dp_service_main), ("budget-service", budget_service_main)]
)
def test_its_services_start_with_the_options_that_they_are_given(
    tmp_path: Path, name: str, main: Callable[[list[str]], int]
) -> None:
    """TLS, roles and the high-water mark are asked for, with files that are mounted; plain text is not."""
    made = deployments("production")
    pod = made[name]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    words = " ".join(container["args"])
    assert "--insecure" not in words
    assert ("--mark=/var/lib/gris/ledger.mark" in words) is (name == "budget-service")
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    paths = {each.partition("=")[2] for each in container["args"] if "=/" in each}
    named = {each if each in mounted else each.rpartition("/")[0] for each in paths}
    assert named == mounted - {"/run/tickets"}
    moved = located(tmp_path, container["args"])
    assert main([*moved, "--validate"]) == 0


def test_a_restored_ledger_is_confirmed_with_what_its_service_has(tmp_path: Path) -> None:
    """The Job opens the same store, by the same configuration, with the same mark."""
    made = deployments("production")
    service = made["budget-service"]["spec"]["template"]["spec"]
    (job,) = yaml.safe_load_all((FOLDER / "confirm-restored.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    assert set(pod["containers"][0]["args"]) - set(service["containers"][0]["args"]) == {"--confirm-restored"}
    for key in ("securityContext", "serviceAccountName"):
        assert pod[key] == service[key]
    tls = ("transport", "access")
    assert pod["volumes"] == [
        each
        for name in ("budget", "store", "mark", "tickets")
        for each in service["volumes"]
        if each["name"] == name
    ]
    mounted = [each for each in service["containers"][0]["volumeMounts"] if each["name"] not in tls]
    assert pod["containers"][0]["volumeMounts"] == mounted
    options = [each for each in pod["containers"][0]["args"] if each != "--confirm-restored"]
    assert budget_service_main([*located(tmp_path, options), "--validate"]) == 0


@pytest.mark.skipif(helm() is None, reason="needs helm")
@pytest.mark.parametrize("kind", [Production, SeveralGateways, Regions])
def test_what_is_tried_on_a_cluster_is_this_example(
    kind: type[Production], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`deploy/kubernetes/test.sh` changes where things are and whose; pods, options and mounts stay what they are."""
    monkeypatch.setenv(VOLUMES, str(tmp_path))
    tested = kind(tmp_path)
    given = tested.values((EXAMPLES / "budget.yaml").read_text(), (EXAMPLES / "policy.yaml").read_text())
    tried = list(manifests_in("tried", render(given)))
    assert list(faults(tried)) == []
    pods = {
        each.content["metadata"]["name"]: each.content["spec"]["template"]["spec"]
        for each in tried
        if each.content["kind"] == "Deployment"
    }
    made = deployments(tested.example.name)
    assert set(pods) == {*made, "redis", "pinot"}
    for name, deployment in some(made.items()):
        for container in (tried_pod := pods[name])["containers"]:
            container["resources"]["requests"]["cpu"] = "250m"
        expected = deployment["spec"]["template"]["spec"]
        (named,) = expected["containers"]
        named["image"] = named["image"].replace("registry.example/", "").replace(":0.1.0", ":local")
        assert tried_pod == expected


@pytest.mark.usefixtures("starts_redis")
async def test_its_ledger_is_ready_where_it_is_probed_and_has_its_mark(tmp_path: Path) -> None:
    """With exactly the options of its pod, but for addresses and folders; nothing is warned of."""
    made = deployments("production")
    (container,) = made["budget-service"]["spec"]["template"]["spec"]["containers"]
    options = located(tmp_path, container["args"])
    options = [re.sub(r"=(0.0.0.0|127.0.0.1):\d+$", "=127.0.0.1:0", each) for each in options]
    with redis_server(tmp_path) as redis:
        (tmp_path / "address").chmod(0o600)
        (tmp_path / "address").write_text(redis.address)
        short = ["--drain-seconds=0" if each.startswith("--drain") else each for each in options]
        with process("budget_service", short, tmp_path / "log") as ready:
            await health_becomes(ready["health_address"], SERVING)
            async with asyncio.timeout(10):
                while not (tmp_path / "ledger.mark").exists():  # noqa: ASYNC110 - a file tells nobody
                    await asyncio.sleep(0.1)
    assert "WARNING" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("options", [[], ["--validate"]])
def test_a_gateway_whose_issuer_nobody_named_does_not_start(
    gateway: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The file that stands in for the issuer's keys has none, and the gateway says what to replace it by."""
    assert main(["--config", str(gateway), *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"gateway: {gateway.parent / 'issuer.jwks'}: " in said.err
    assert "replace it by your issuer's public keys" in said.err


async def test_a_gateway_with_the_keys_of_an_issuer_starts(gateway: Path) -> None:
    """So nothing but these keys was missing."""
    issuer = Issuer(gateway.parent, key_id="yours")
    (gateway.parent / "issuer.jwks").write_text(json.dumps({"keys": [issuer.jwk()]}))
    assert main(["--config", str(gateway), "--validate"]) == 0
    command = [sys.executable, "-m", "gris_gateway", "--config", str(gateway)]
    started = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, env=os.environ)
    try:
        assert started.stdout is not None
        async with asyncio.timeout(60):
            assert json.loads(await started.stdout.readline())["service"] == "gateway"
    finally:
        started.send_signal(signal.SIGTERM)
        await started.communicate()
    assert started.returncode == 0
