"""The Helm chart makes what its values say, and refuses values that would leave something open."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from budget_service.configuration.budget_file import load_configuration
from deploy.kubernetes import validate
from deploy.kubernetes.chart import (
    CHART,
    CLIENTS,
    PRODUCTION,
    REGIONS,
    ROOT,
    TRIAL,
    HelmError,
    Values,
    helm,
    lint,
    render,
)
from deploy.kubernetes.validate import Manifest, faults, manifests_in
from gris_gateway.configuration import GatewayConfiguration, HistorySettings, LimitSettings
from gris_serving.authorisation import Callers
from gris_serving.documents import read_document
from tests.deploy.manifests import EVERYTHING, Objects, charted
from tests.deploy.network import Party, let_through, policies
from tests.support.some import some

pytestmark = [
    pytest.mark.usefixtures("starts_processes"),
    pytest.mark.skipif(helm() is None, reason="needs helm"),
]


def pod_of(made: Objects, name: str) -> Mapping[str, Any]:
    """Return the specification of a Deployment's pods."""
    found: Mapping[str, Any] = made["Deployment", name]["spec"]["template"]["spec"]
    return found


def gateway_configuration(made: Objects, folder: Path) -> GatewayConfiguration:
    """Return the gateway's configuration as the gateway reads it."""
    (folder / "gateway.yaml").write_text(made["ConfigMap", "gris-gateway"]["data"]["gateway.yaml"])
    return read_document(folder / "gateway.yaml", GatewayConfiguration)


def test_the_gateway_of_a_trial_is_the_one_of_compose(tmp_path: Path) -> None:
    """Whatever the chart writes out is what the file leaves to the defaults."""
    file = ROOT / "examples" / "gateway.yaml"
    assert gateway_configuration(charted(TRIAL), tmp_path) == read_document(file, GatewayConfiguration)


def test_what_the_settings_do_not_state_is_the_gateways_own_default(tmp_path: Path) -> None:
    """The values hold no copy of a default, which could become another one; part of a mapping may be stated."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["gateway"]["settings"] == values["pinot"]["settings"] == {}
    made = gateway_configuration(charted(PRODUCTION.but("gateway.settings.history.megabytes=64")), tmp_path)
    assert made.history == HistorySettings(megabytes=64)
    assert (made.limits, made.confidence) == (
        LimitSettings(),
        GatewayConfiguration.model_fields["confidence"].default,
    )


def test_every_part_of_the_chart_is_valid() -> None:
    """Also what neither set of values to start from has; and helm finds nothing to warn of."""
    manifests = [*manifests_in("everything", render(EVERYTHING))]
    assert list(faults(manifests)) == []
    lint(EVERYTHING)


def test_with_tls_nothing_speaks_plain_text(tmp_path: Path) -> None:
    """No --insecure, mounted files, and a gateway that shows a certificate; probes ask an address of health alone."""
    made = charted(PRODUCTION)
    for name in ("dp-service", "budget-service"):
        pod = pod_of(made, name)
        (container,) = pod["containers"]
        assert "--insecure" not in container["args"]
        mounted = {each["mountPath"] for each in container["volumeMounts"]}
        paths = [each.split("=")[1] for each in container["args"] if each.startswith(("--tls-", "--access="))]
        assert len(paths) == 4
        assert all(path.rpartition("/")[0] in mounted for path in paths)
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["grpc"]["port"] == 9465
        assert "--health-listen=0.0.0.0:9465" in container["args"]
    configuration = gateway_configuration(made, tmp_path)
    mounted = {each["mountPath"] for each in pod_of(made, "gateway")["containers"][0]["volumeMounts"]}
    for service in (configuration.dp, configuration.budget):
        for path in (service.ca_file, service.certificate_file, service.key_file):
            assert path is not None
            assert path.rpartition("/")[0] in mounted
    access = tmp_path / "access.yaml"
    access.write_text(made["ConfigMap", "gris-access"]["data"]["access.yaml"])
    assert Callers(access).wants_certificates


def test_a_store_that_was_set_back_is_refused_unless_somebody_says_otherwise() -> None:
    """The mark is on a volume that all replicas share and `helm uninstall` leaves; `keep: false` is to do without."""
    made = charted(PRODUCTION)
    (container,) = pod_of(made, "budget-service")["containers"]
    assert "--mark=/var/lib/gris/ledger.mark" in container["args"]
    assert {"name": "mark", "mountPath": "/var/lib/gris"} in container["volumeMounts"]
    claim = made["PersistentVolumeClaim", "ledger-mark"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    without = charted(PRODUCTION.but("store.mark.keep=false"))
    assert ("PersistentVolumeClaim", "ledger-mark") not in without
    marked = [each for each in pod_of(without, "budget-service")["containers"][0]["args"] if "mark" in each]
    assert marked == ["--no-mark"]


def test_a_ledger_in_a_file_has_one_writer_and_outlives_its_release() -> None:
    """One pod ends before the next one begins; the volume stays; nothing but DNS is reached; no address is needed."""
    made = charted(EVERYTHING)
    deployment = made["Deployment", "budget-service"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    (container,) = pod_of(made, "budget-service")["containers"]
    assert "--store=sqlite:/var/lib/gris/ledger.db" in container["args"]
    # Its high-water mark is beside it.
    assert not any("mark" in each for each in container["args"])
    assert {"name": "ledger", "mountPath": "/var/lib/gris"} in container["volumeMounts"]
    claim = made["PersistentVolumeClaim", "budget-ledger"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    ours = Party("budget-service", "gris", deployment["template"]["metadata"]["labels"])
    others = [
        Party("store", address="10.20.0.5"),
        Party("dns", "kube-system"),
        Party("pinot", "pinot", {"app": "pinot"}),
    ]
    manifests = [Manifest("chart", each) for each in made.values()]
    reached = let_through(policies(manifests, "gris"), "Egress", [(ours, other) for other in others])
    assert set(reached) == {("budget-service", "dns")}


def test_every_option_of_the_values_is_used() -> None:
    """Keys of a rotation, digests, log, where pods run, what a load balancer asks for."""
    made = charted(EVERYTHING)
    for name, digit in (("dp-service", "0"), ("budget-service", "1"), ("gateway", "2")):
        pod = pod_of(made, name)
        (container,) = pod["containers"]
        assert container["image"] == f"registry.example/gris-{name}@sha256:{digit * 64}"
        assert {"--log-format=json", "--log-level=warning"} <= set(container["args"])
        assert pod["imagePullSecrets"] == [{"name": "registry-login"}]
        assert pod["nodeSelector"] == {"kubernetes.io/arch": "arm64"}
        assert pod["tolerations"][0]["key"] == "example.org/private"
        assert pod["priorityClassName"] == "important"
        metadata = made["Deployment", name]["spec"]["template"]["metadata"]
        assert metadata["annotations"]["example.org/team"] == "privacy"
    assert "--previous-key-file=/run/gris/other.key" in pod_of(made, "dp-service")["containers"][0]["args"]
    assert made["Service", "gateway"]["spec"]["type"] == "LoadBalancer"
    assert made["Service", "gateway"]["metadata"]["annotations"] == {"example.org/internal": "true"}


def test_what_pinot_asks_for_reaches_the_gateway(tmp_path: Path) -> None:
    """Login and certificates are files of a Secret; the options are the gateway's own."""
    made = charted(EVERYTHING)
    pinot = gateway_configuration(made, tmp_path).engine.pinot
    assert pinot is not None
    assert (pinot.authorization_file, pinot.ca_file, pinot.certificate_file) == (
        "/run/pinot/authorization",
        "/run/pinot/ca.pem",
        "/run/pinot/client.pem",
    )
    assert (pinot.server_admin, pinot.server_admin_port) == (True, 8097)
    volumes = {each["name"]: each for each in pod_of(made, "gateway")["volumes"]}
    assert volumes["pinot"]["secret"] == {"secretName": "gris-pinot", "defaultMode": 0o440}


def test_keys_of_tokens_may_be_fetched_from_their_issuer(tmp_path: Path) -> None:
    """Then no file holds them, the gateway may reach the issuer, and it trusts an authority of the values."""
    to = ("gateway.issuer.to[0].ipBlock.cidr=10.40.0.0/16", "gateway.issuer.port=8443")
    keys = ("gateway.identity.jwt.keys=", "gateway.identity.jwt.discover=true", "gateway.identity.jwt.ca=PEM")
    made = charted(PRODUCTION.but(*keys, *to))
    jwt = gateway_configuration(made, tmp_path).identity.jwt
    assert jwt is not None
    assert (jwt.key_file, jwt.discover, jwt.ca_file) == (None, True, "/etc/gris/issuer-ca.pem")
    files = made["ConfigMap", "gris-gateway"]["data"]
    assert {"gateway.yaml", "issuer-ca.pem"} == set(files)
    (way,) = made["NetworkPolicy", "gateway-to-issuer"]["spec"]["egress"]
    assert way["to"] == [{"ipBlock": {"cidr": "10.40.0.0/16"}}]
    assert way["ports"] == [{"port": 8443, "protocol": "TCP"}]
    assert ("NetworkPolicy", "gateway-to-issuer") not in charted(PRODUCTION)


def test_clients_of_pinot_and_postgresql_have_ports_of_their_own(tmp_path: Path) -> None:
    """By the gateway's certificate, and a catalogue with a folder to write to; none unless it is asked for."""
    made = charted(CLIENTS)
    configuration = gateway_configuration(made, tmp_path)
    configuration.require_protected()
    listening = {name: each.listen for name, each in configuration.faces.items()}
    assert listening == {"broker": "0.0.0.0:50057", "postgres": "0.0.0.0:50058"}
    assert all(configuration.tls_of(each) == configuration.tls for each in configuration.faces.values())
    numbers = {"grpc": 50054, "broker": 50057, "postgres": 50058}
    served = made["Service", "gateway"]["spec"]["ports"]
    assert {each["name"]: each["port"] for each in served} == numbers
    pod = pod_of(made, "gateway")
    (container,) = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == numbers | {"metrics": 9464}
    assert all(each["targetPort"] in ports for each in served)
    assert "-gateway-catalogue:" in container["image"]
    assert {"name": "catalogue", "mountPath": "/tmp"} in container["volumeMounts"]  # noqa: S108 - its own
    assert "emptyDir" in next(each for each in pod["volumes"] if each["name"] == "catalogue")
    assert configuration.postgres is not None
    assert configuration.postgres.catalogue is None
    without = charted(CLIENTS.but("gateway.postgres.catalogue=false", "gateway.broker.enabled=false"))
    configuration = gateway_configuration(without, tmp_path)
    assert configuration.postgres is not None
    assert (configuration.broker, configuration.postgres.catalogue) == (None, False)
    (container,) = pod_of(without, "gateway")["containers"]
    assert "-gateway:" in container["image"]
    assert "catalogue" not in {each["name"] for each in container["volumeMounts"]}


def test_no_secret_is_made_and_none_is_in_the_environment() -> None:
    """Secrets are files that others make, and no wider than the services accept."""
    for values in (TRIAL, PRODUCTION, EVERYTHING):
        made = charted(values)
        assert not any(kind == "Secret" for kind, _ in made)
        for name in ("dp-service", "budget-service", "gateway"):
            pod = pod_of(made, name)
            assert all("env" not in each and "envFrom" not in each for each in some(pod["containers"]))
            modes = [each["secret"]["defaultMode"] for each in pod["volumes"] if "secret" in each]
            assert set(modes) == {0o440}


def test_a_gateway_starts_anew_when_its_configuration_changes() -> None:
    """It reads the file once; a changed policy or budget is read by the running services, whose pods stay."""
    before, after = charted(PRODUCTION), charted(PRODUCTION.but("gateway.settings.limits.burst=21"))
    changed = [
        name
        for name in ("dp-service", "budget-service", "gateway")
        if before["Deployment", name] != after["Deployment", name]
    ]
    assert changed == ["gateway"]
    other = charted(PRODUCTION.but("policy.text=tables: {}"))
    assert other["ConfigMap", "gris-policy"] != before["ConfigMap", "gris-policy"]
    assert all(other[key] == before[key] for key in before if key[0] == "Deployment")


def test_without_a_gateway_there_is_none() -> None:
    """Applications that use the connector themselves need only the services."""
    made = charted(PRODUCTION.but("gateway.enabled=false"))
    assert not [
        key
        for key in made
        if key[1] in ("gateway", "gris-gateway", "gateway-history") and key[0] != "NetworkPolicy"
    ]
    assert ("Deployment", "dp-service") in made


def test_only_a_trial_may_forget_what_was_paid_for() -> None:
    """Then its file ends with its pod; the other volumes and the key are what they were."""
    made = charted(TRIAL.but("gateway.volume.keep=false"))
    assert ("PersistentVolumeClaim", "gateway-history") not in made
    volumes = {each["name"]: each for each in pod_of(made, "gateway")["volumes"]}
    assert volumes["history"] == {"name": "history", "emptyDir": {"sizeLimit": "16Gi"}}
    assert volumes["releases"]["secret"] == {"secretName": "gris-releases", "defaultMode": 0o440}


def test_a_policy_with_domains_is_a_configmap_of_ones_own() -> None:
    """It takes the place of the text."""
    made = charted(TRIAL.but("policy.text=", "policy.configMap=own-policy"))
    assert ("ConfigMap", "gris-policy") not in made
    volumes = {each["name"]: each for each in pod_of(made, "dp-service")["volumes"]}
    assert volumes["policy"]["configMap"] == {"name": "own-policy"}


TICKETS = "add `charge_tickets: {key_file: /run/tickets/ticket.key}`"
REFUSED: dict[str, tuple[Values, tuple[str, ...], str]] = {
    "nothing filled in": (Values("nothing"), (), "images.prefix: say where the images are"),
    "a key that does not exist": (TRIAL, ("budgetService.replica=2",), "replica"),
    "a key of the top that does not exist": (TRIAL, ("dpservice.x=2",), "dpservice"),
    "a number as text": (TRIAL, ("budgetService.replicas=two",), "budgetService"),
    "no memory limit": (TRIAL, ("dpService.resources.limits.memory=null",), "memory"),
    "a peer that is everybody": (TRIAL, ("store.network.to[0]=null",), "to"),
    "a secret in an address": (TRIAL, ("pinot.broker=http://me:secret@pinot:8000",), "broker"),
    "no tickets in production": (PRODUCTION, ("budget.text=accounts: []",), TICKETS),
    "tickets switched off in production": (
        PRODUCTION,
        ("chargeTickets.demanded=false", "budget.text=accounts: []"),
        "chargeTickets.demanded=false: only for a trial",
    ),
    "tickets demanded without a key": (
        PRODUCTION,
        ("trial=true", "chargeTickets.demanded=false"),
        "mounts no key to check them with",
    ),
    "tickets under another key": (
        PRODUCTION,
        ("budget.text=charge_tickets: {key_file: /tmp/x}",),
        TICKETS,
    ),
    "a store that forgets": (
        PRODUCTION,
        ("budget.text=allow_volatile: true\ncharge_tickets: {key_file: /run/tickets/ticket.key}",),
        "allow_volatile",
    ),
    "plain text that nobody asked for": (TRIAL, ("transport.insecure=false",), "insecure=true"),
    "half of TLS": (PRODUCTION, ("transport.tls.gatewaySecret=",), "transport.tls: give all of"),
    "plain text and TLS": (PRODUCTION, ("transport.insecure=true",), "contradict"),
    "a mark that only one machine can write": (
        PRODUCTION,
        ("store.mark.accessMode=ReadWriteOnce",),
        "store.mark.accessMode",
    ),
    "no store": (PRODUCTION, ("store.kind=",), "store.kind: choose"),
    "a store that is everywhere": (PRODUCTION, ("store.network.to=null",), "store.network.to: say where"),
    "a ledger in a file with two writers": (PRODUCTION, ("store.kind=sqlite",), "exactly one writer"),
    "Pinot that is everywhere": (PRODUCTION, ("pinot.network.to=null",), "pinot.network.to: say where"),
    "no policy": (TRIAL, ("policy.text=",), "policy: give text"),
    "two policies": (TRIAL, ("policy.configMap=x",), "policy: give text"),
    "nobody who may call": (PRODUCTION, ("gateway.identity.jwt=null",), "gateway.identity: say who"),
    "certificates that nobody checks": (TRIAL, ("gateway.tls.clientCa=false",), "gateway.tls.clientCa"),
    "an issuer without keys": (PRODUCTION, ("gateway.identity.jwt.keys=",), "gateway.identity.jwt.keys"),
    "keys in two places": (
        PRODUCTION,
        ("gateway.identity.jwt.discover=true", "gateway.issuer.to[0].ipBlock.cidr=10.40.0.0/16"),
        "or instead one of keys_url and discover",
    ),
    "an issuer that is everywhere": (
        PRODUCTION,
        ("gateway.identity.jwt.keys=", "gateway.identity.jwt.discover=true"),
        "gateway.issuer.to: say where",
    ),
    "a shared secret as a key": (PRODUCTION, ("gateway.identity.jwt.algorithms={HS256}",), "algorithms"),
    "a trial's servers in production": (PRODUCTION, ("trialServers.enabled=true",), "trialServers.enabled"),
    "neither a ledger nor a region": (PRODUCTION, ("budgetService.enabled=false",), "name a region"),
    "a region whose home is nowhere": (
        REGIONS,
        ("budgetService.enabled=false",),
        "regions.network.to: say where the home is",
    ),
    "a gateway of a region that is not here": (
        REGIONS,
        ("gateway.region=asia",),
        "gateway.region: name the region",
    ),
    "a gateway without a ledger": (
        REGIONS,
        ("budgetService.enabled=false", "gateway.region="),
        "gateway.region: name the region",
    ),
    "a region without roles": (REGIONS, ("regions.access=",), "regions: they are called with TLS and roles"),
    "a region without tickets": (
        REGIONS,
        ("regions.budget=accounts: []",),
        "regions.budget: the ledger would not",
    ),
    "clients of Pinot by any name": (
        PRODUCTION,
        ("gateway.broker.enabled=true",),
        "gateway.broker.settings.hosts: give the names",
    ),
    "another address for clients": (CLIENTS, ("gateway.postgres.settings.listen=0.0.0.0:1",), "listen"),
    "two gateways with one file": (PRODUCTION, ("gateway.replicas=2",), "is for one gateway: set 1"),
    "a gateway that forgets what was paid for": (
        PRODUCTION,
        ("gateway.volume.keep=false",),
        "gateway.volume.keep=false: releases would be drawn anew",
    ),
    "a database of releases that is everywhere": (
        PRODUCTION,
        ("gateway.releases.kind=postgresql",),
        "gateway.releases.network.to: say where",
    ),
    "releases in memory": (PRODUCTION, ("gateway.releases.kind=memory",), "kind"),
    "releases without a key": (PRODUCTION, ("gateway.releases.secret=",), "secret"),
    "releases by another key of gateway.yaml": (
        PRODUCTION,
        ("gateway.settings.releases.file=/tmp/x",),
        "releases",
    ),
    "a key of releases outside the Secret": (PRODUCTION, ("gateway.releases.previous={../x}",), "previous"),
    "a file outside the Secret": (TRIAL, ("noiseKey.previous={../x}",), "previous"),
    "fewer than no replicas": (TRIAL, ("dpService.replicas.min=11",), "min is above max"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_values_that_leave_something_open_are_refused(case: str) -> None:
    """With the key that is wrong, before anything reaches a cluster."""
    values, settings, said = REFUSED[case]
    with pytest.raises(HelmError) as refusal:
        render(values.but(*settings))
    assert said in str(refusal.value)


def test_every_value_is_explained_and_in_the_schema() -> None:
    """A comment stands before each key, or before the keys that it is with, and the schema knows no others."""
    text = (CHART / "values.yaml").read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(yaml.safe_load(text)) == set(schema["properties"]) - {"global"}

    def closed(part: Mapping[str, Any]) -> bool:
        inner = part.get("properties", {}).values()
        return (not inner or part["additionalProperties"] is False) and all(map(closed, inner))

    assert closed(schema)
    assert all(map(closed, schema["definitions"].values()))


def test_the_budgets_of_production_are_loaded_as_they_are(tmp_path: Path) -> None:
    """A text goes through the chart byte for byte, so that what `--validate` has checked is what is served."""
    made = charted(PRODUCTION)
    for name, key in (("gris-budget", "budget"), ("gris-policy", "policy")):
        given = yaml.safe_load(PRODUCTION.files[0].read_text())[key]["text"]
        assert made["ConfigMap", name]["data"] == {f"{key}.yaml": given}
    (tmp_path / "budget.yaml").write_text(made["ConfigMap", "gris-budget"]["data"]["budget.yaml"])
    assert load_configuration(tmp_path / "budget.yaml").charge_tickets is not None


def test_the_chart_has_the_version_of_the_project() -> None:
    """So the images that it names by default are those that were released with it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {chart["version"], chart["appVersion"]} == {project["version"]}


def test_a_chart_that_cannot_be_rendered_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what helm says."""

    def refuse(values: Values) -> None:
        raise HelmError("templates: nothing fits")

    monkeypatch.setattr(validate, "lint", refuse)
    assert validate.main() == 1
    assert capsys.readouterr().err == "deploy/chart: templates: nothing fits\n"
