"""Every gateway that is deployed keeps what was paid for: a restart draws no release anew, and replicas share them."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.compose.prepare import prepare
from deploy.kubernetes.chart import ALL, CHART, EXAMPLES, ROOT, helm
from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.release_stores import release_store_of, store_keys_of
from gris_serving.documents import read_document
from tests.deploy.manifests import EVERYTHING, Objects, charted, made_by, objects, text_of
from tests.support.release_stores import ANA, in_month, kept, key_file

pytestmark = pytest.mark.usefixtures("starts_processes")

ONE = ("compose", "trial", "production", "clients", "regions", "one-region")
SEVERAL_GATEWAYS = ("several-gateways", "everything")


@dataclass(frozen=True)
class Deployed:
    """A gateway as it is deployed.

    `mounts` says what is at each path: the name of a Secret, a volume that outlives the gateway (`kept`), or whatever
    else there is. `objects` are those of Kubernetes, by kind and name.
    """

    text: str
    mounts: Mapping[str, str]
    objects: Objects

    def configuration(self, folder: Path) -> GatewayConfiguration:
        """Return its configuration, with the files of mounted folders in one folder here."""
        text = self.text
        # `/tmp` first: the folder may be below it.
        for path in sorted(self.mounts, key=len):
            text = text.replace(f"{path}/", f"{folder}/")
        (folder / "gateway.yaml").write_text(text)
        return read_document(folder / "gateway.yaml", GatewayConfiguration)

    def at(self, path: str | None) -> str:
        """Return what is mounted where a file is."""
        return self.mounts.get(str(path).rpartition("/")[0], "nothing")

    @property
    def own(self) -> Any:
        """Return the keys of its release store, with the paths in its container."""
        return yaml.safe_load(self.text)["releases"]


def deployed(name: str) -> Deployed:
    """Return what compose or the chart makes of the gateway."""
    if name == "compose":
        return composed()
    if name == "everything" and helm() is None:
        pytest.skip("needs helm")
    made = charted(EVERYTHING) if name == "everything" else objects(made_by(name))
    pod = made["Deployment", "gateway"]["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    (container,) = pod["containers"]
    mounts = {each["mountPath"]: held(volumes[each["name"]]) for each in container["volumeMounts"]}
    return Deployed(made["ConfigMap", "gris-gateway"]["data"]["gateway.yaml"], mounts, made)


def held(volume: Mapping[str, Any]) -> str:
    """Return what a volume of Kubernetes holds."""
    if "secret" in volume:
        assert volume["secret"]["defaultMode"] == 0o440
        return str(volume["secret"]["secretName"])
    return "kept" if "persistentVolumeClaim" in volume else next(each for each in volume if each != "name")


def composed() -> Deployed:
    """Return the gateway of compose.yaml; folders of the machine outlive it."""
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["gateway"]
    mounts = {}
    for each in service["volumes"]:
        source, path, *mode = each.split(":")
        mounts[path] = source if mode == ["ro"] else "kept"
    return Deployed((ROOT / "examples" / "gateway.yaml").read_text(), mounts, {})


@pytest.mark.parametrize("name", ONE)
async def test_one_gateway_keeps_its_releases_on_a_volume(name: str, tmp_path: Path) -> None:
    """Encrypted, in a file that outlives it, under a key from elsewhere; what is paid for is there when it returns."""
    made = deployed(name)
    assert made.at(made.own["file"]) == "kept"
    assert made.at(made.own["key_file"]) in ("gris-releases", "./.gris/compose/releases")
    key_file(tmp_path)
    configuration = made.configuration(tmp_path)
    store = release_store_of(configuration)
    await store.keep("question", kept("release"))
    await store.mark_paid("question", ANA, in_month(0))
    await store.close()
    again = release_store_of(configuration)
    found = await again.find("question", ANA)
    await again.close()
    assert found is not None
    assert (found.kept.release_id, found.payment) == ("release", in_month(0))
    if made.objects:
        # One at a time has the file, and a pod that ends gives it up first.
        spec = made.objects["Deployment", "gateway"]["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
        assert ("PersistentVolumeClaim", "gateway-history") in made.objects


@pytest.mark.parametrize("name", SEVERAL_GATEWAYS)
def test_several_gateways_share_a_database(name: str, tmp_path: Path) -> None:
    """One PostgreSQL and one key for all, from a Secret; nothing is in a pod, so one goes on while another ends."""
    made = deployed(name)
    assert "file" not in made.own
    secret = made.at(made.own["connection_file"])
    assert secret == made.at(made.own["key_file"]) == made.mounts["/run/releases"]
    assert secret.startswith("gris-releases")
    configuration = made.configuration(tmp_path).releases
    assert configuration.connection_file == str(tmp_path / "connection")
    spec = made.objects["Deployment", "gateway"]["spec"]
    assert spec["replicas"] > 1
    assert spec["strategy"] == {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert set(made.mounts.values()) & {"kept", "emptyDir"} == set()
    assert ("PersistentVolumeClaim", "gateway-history") not in made.objects
    (rule,) = made.objects["NetworkPolicy", "gateway-to-releases"]["spec"]["egress"]
    assert rule["to"]
    assert [each["port"] for each in rule["ports"]] == [6432 if name == "everything" else 5432]


def test_every_deployment_is_looked_at() -> None:
    """A new example says above how its gateways keep their releases."""
    examples = {each.stem for each in EXAMPLES.iterdir()}
    assert {"compose", *examples, "everything"} == {*ONE, *SEVERAL_GATEWAYS}
    assert examples == {each.name for each in ALL}


def test_several_gateways_are_those_of_production_but_for_where_releases_are() -> None:
    """And for nothing else that they read."""
    one, several = (
        yaml.safe_load(text_of(each, "gris-gateway", "gateway.yaml"))
        for each in ("production", "several-gateways")
    )
    assert one.keys() == several.keys()
    assert {key for key in several if several[key] != one[key]} == {"releases"}


def test_compose_makes_the_key_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    """Apart from the releases; a second run keeps it, because under another one nothing kept could be read."""
    prepare(tmp_path)
    folder, key = (tmp_path / ".gris" / "compose" / each for each in ("releases", "releases/releases.key"))
    assert [stat.S_IMODE(each.stat().st_mode) for each in (folder, key)] == [0o700, 0o400]
    made = key.read_bytes()
    assert len(made) == 32
    assert made != (tmp_path / ".gris" / "compose" / "noise.key").read_bytes()
    prepare(tmp_path)
    assert key.read_bytes() == made
    configuration = Deployed(
        (ROOT / "examples" / "gateway.yaml").read_text(), {"/run/releases": ""}, {}
    ).configuration(folder)
    assert store_keys_of(configuration.releases) is not None


def test_a_key_is_rotated_by_the_values(tmp_path: Path) -> None:
    """Keys that are still read are files of the same Secret, whichever writes."""
    made = deployed("everything")
    assert made.own["previous_key_files"] == ["/run/releases/old.key"]
    key_file(tmp_path)
    key_file(tmp_path, b"o" * 32, "old.key")
    keys = store_keys_of(made.configuration(tmp_path).releases)
    assert keys is not None
    assert [each.secret for each in keys.all] == [b"k" * 32, b"o" * 32]


def test_the_secret_is_made_as_documented() -> None:
    """By the same kind of command as the noise key; with the connection where there is one."""
    text = (ROOT / "docs" / "deploying.md").read_text()
    assert "head -c 32 /dev/urandom > releases.key" in text
    assert "create secret generic gris-releases --from-file=.gris/compose/releases/releases.key" in text
    assert "create secret generic gris-releases --from-file=releases.key" in text
    assert "--from-file=connection=/dev/stdin" in text


def test_the_application_of_compose_shares_the_gateways_store() -> None:
    """A question that was paid for at the one is answered by the other for nothing."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    gateway, application = services["gateway"], services["gris"]
    own = composed().own
    named = {"GRIS_RELEASES": own["file"], "GRIS_RELEASES_KEY_FILE": own["key_file"]}
    assert named.items() <= application["environment"].items()
    assert set(application["volumes"]) <= set(gateway["volumes"])
    paths = {each.split(":")[1] for each in application["volumes"]}
    assert paths == {str(Path(each).parent) for each in named.values()}
    assert application["user"].startswith("${GRIS_USER:?")


def test_an_alert_comes_before_the_volume_is_full() -> None:
    """The size at which somebody is called leaves room on the volume that the chart asks for."""
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    (limit,) = re.findall(r"gris_release_store_bytes\) > (\d+)\n", alerts)
    values = yaml.safe_load((CHART / "values.yaml").read_text())["gateway"]["volume"]["size"]
    assert int(limit) * 1.5 <= int(values.removesuffix("Gi")) * 2**30
