"""The deployments with regions: what the home lends by, who may borrow, and that both start as they are described."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from budget_service.configuration.budget_file import load_configuration
from budget_service.configuration.region_file import load_region
from budget_service.server.process import main
from deploy.compose.prepare import prepare
from deploy.kubernetes.chart import REGIONS as REGIONS_EXAMPLE
from deploy.kubernetes.chart import ROOT, helm
from examples import certificates
from tests.deploy.manifests import charted, deployments, text_of
from tests.deploy.production import located
from tests.support.processes import process

pytestmark = pytest.mark.usefixtures("starts_processes")

EXAMPLES = ROOT / "examples"
REGIONS = ("eu", "us")
UNIT = "0123456789abcdef" * 2


def composed() -> Mapping[str, Any]:
    """Return the services of compose.yaml."""
    found: Mapping[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return found


@pytest.mark.parametrize("where", ["kubernetes", "compose"])
def test_the_home_lends_what_its_regions_know(where: str, tmp_path: Path) -> None:
    """A region names the accounts of the home, with its limits, and lends nothing itself."""
    if where == "kubernetes":
        home, region = (
            text_of("regions", name, "budget.yaml") for name in ("gris-budget", "gris-region-budget")
        )
    else:
        home, region = ((EXAMPLES / name).read_text() for name in ("regions/home.yaml", "budget.yaml"))
    lending, borrowing = yaml.safe_load(home), yaml.safe_load(region)
    assert lending.pop("leases") == {"share_percent": 10, "outstanding_percent": 50, "seconds": 600}
    assert lending == borrowing
    (tmp_path / "home.yaml").write_text(home)
    assert load_configuration(tmp_path / "home.yaml").leases is not None


def test_a_region_of_its_own_cluster_knows_the_same_accounts() -> None:
    """Also without the budget-service, whose place its ledger takes."""
    assert text_of("one-region", "gris-region-budget", "budget.yaml") == text_of(
        "regions", "gris-region-budget", "budget.yaml"
    )
    assert set(deployments("one-region")) == {"dp-service", "gateway", "region-eu"}
    assert (
        yaml.safe_load(text_of("one-region", "gris-region-eu", "region.yaml"))["home"]
        == "home.example.org:50052"
    )
    for example in ("regions", "one-region"):
        gateway = yaml.safe_load(text_of(example, "gris-gateway", "gateway.yaml"))
        assert gateway["budget"]["address"] == "dns:///region-eu:50052"


@pytest.mark.skipif(helm() is None, reason="needs helm")
def test_what_else_a_region_reads_is_given_by_values(tmp_path: Path) -> None:
    """What they do not state is the region's own default."""
    made = charted(REGIONS_EXAMPLE.but("regions.settings.report_seconds=2"))
    path = tmp_path / "region.yaml"
    path.write_text(made["ConfigMap", "gris-region-eu"]["data"]["region.yaml"])
    stated = load_region(path)
    path.write_text(text_of("regions", "gris-region-eu", "region.yaml"))
    plain = load_region(path)
    assert (stated.report_seconds, plain.report_seconds) == (2, 1)
    assert stated.model_copy(update={"report_seconds": 1}) == plain


@pytest.mark.parametrize("where", ["kubernetes", "compose"])
def test_only_its_regions_may_borrow_from_a_home(where: str, tmp_path: Path) -> None:
    """By a name in a certificate that ends with the region's own, and with the roles that docs/security.md asks for."""
    on_kubernetes = where == "kubernetes"
    access = (
        text_of("regions", "gris-access", "access.yaml")
        if on_kubernetes
        else (EXAMPLES / "regions" / "access.yaml").read_text()
    )
    named = yaml.safe_load(access)["certificates"]
    found = {name.rsplit("/", 1)[1]: roles for name, roles in named.items() if "region" in "".join(roles)}
    assert found == {each: ["spend", "read", f"region:{each}"] for each in REGIONS}
    for each in REGIONS:
        path = tmp_path / f"{each}.yaml"
        path.write_text(
            text_of("regions", f"gris-region-{each}", "region.yaml")
            if on_kubernetes
            else (EXAMPLES / "regions" / path.name).read_text()
        )
        region = load_region(path)
        assert region.name == each
        assert region.tls is not None
        assert region.tls.certificate_file is not None


def test_regions_start_with_the_options_that_they_are_given(tmp_path: Path) -> None:
    """All files are mounted; the ledger is on a volume that one pod has at a time."""
    made = deployments("regions")
    for each in REGIONS:
        (folder := tmp_path / each).mkdir()
        deployment = made[f"region-{each}"]
        assert deployment["spec"]["strategy"] == {"type": "Recreate"}
        assert deployment["spec"]["replicas"] == 1
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        assert mounted["/var/lib/gris"]["persistentVolumeClaim"] == {"claimName": f"ledger-{each}"}
        assert mounted["/run/tls"]["secret"]["secretName"] == f"gris-region-{each}-tls"
        assert mounted["/etc/region"]["configMap"] == {"name": f"gris-region-{each}"}
        options = located(folder, container["args"])
        budgets = text_of("regions", "gris-region-budget", "budget.yaml").replace("/run/tickets", str(folder))
        (folder / "budget.yaml").write_text(budgets)
        (folder / "access.yaml").write_text(text_of("regions", "gris-region-access", "access.yaml"))
        text = text_of("regions", f"gris-region-{each}", "region.yaml").replace("/run/tls", str(folder))
        (folder / "region.yaml").write_text(text)
        paths = [f"--store=sqlite:{folder}/ledger.db" if "=sqlite:" in word else word for word in options]
        assert main([*paths, "--validate"]) == 0


def test_only_the_ledgers_of_regions_meet_the_home() -> None:
    """An application is on the network of its region alone."""
    services = composed()
    on = {name: set(each.get("networks", ())) for name, each in services.items()}
    assert {name for name, networks in on.items() if "wide-area" in networks} == {
        *("home", "budget-eu", "budget-us")
    }
    for each in REGIONS:
        assert on[each] == on[f"dp-{each}"] == {each}
        assert on[f"budget-{each}"] == {each, "wide-area"}


async def test_the_ledgers_of_compose_lend_and_charge(tmp_path: Path) -> None:
    """With the options of compose.yaml, but for addresses and folders, and TLS between home and region."""
    prepare(tmp_path)
    certificates.make_regions(tmp_path / ".gris" / "compose" / "regions" / "certificates", REGIONS)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    services = composed()
    home, region = (on_this_machine(tmp_path, services[name]) for name in ("home", "budget-eu"))
    with process("budget_service", home, tmp_path / "home.log") as lending:
        file = tmp_path / "eu.yaml"
        port = lending["address"].rpartition(":")[2]
        text = (
            (EXAMPLES / "regions" / "eu.yaml")
            .read_text()
            .replace("home: home:50052", f"home: localhost:{port}")
        )
        shown = tmp_path / ".gris" / "compose" / "regions" / "certificates" / "eu"
        file.write_text(text.replace("/run/tls", str(shown)))
        region[region.index("--region") + 1] = str(file)
        with process("budget_service", region, tmp_path / "region.log") as borrowing:
            port = borrowing["address"].rpartition(":")[2]
            async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
                stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
                account = budget_pb2.Account(path=["demo", "ana"])
                cost = cost_pb2.Cost(information=21, calls=1, unit_id=UNIT)
                asked = budget_pb2.UpdateBudgetRequest(account=account, cost=cost, request_id="one")
                await stub.UpdateBudget(asked)
                shares = budget_pb2.GetBudgetRequest(account=account, with_region_shares=True)
                found = await stub.GetBudget(shares)
    assert found.levels[-1].spent.information == 21
    assert [(each.region, each.held.calls) for each in found.region_shares] == [("eu", 29)]


def on_this_machine(folder: Path, service: Mapping[str, Any]) -> list[str]:
    """Return a command of a compose file with the folders that it mounts, below `folder`, and free ports."""
    text = "\n".join(service["command"])
    for each in service["volumes"]:
        source, target, *_ = each.split(":")
        text = text.replace(target, str((folder / source).resolve()))
    return re.sub(r"(0\.0\.0\.0|127\.0\.0\.1):\d+", "127.0.0.1:0", text).split("\n")
