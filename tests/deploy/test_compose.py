"""What `make images` makes for `docker compose up`."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deploy.compose.prepare import prepare
from tests.support.paths import ROOT
from tests.support.some import some

FILES = ("noise.key", "redis.conf", "store.address")


def contents(root: Path) -> dict[str, bytes]:
    """Return what was made."""
    return {name: (root / ".gris" / "compose" / name).read_bytes() for name in FILES}


def test_secrets_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    """A second run keeps them: another noise key would be other noise for every question."""
    prepare(tmp_path)
    made = contents(tmp_path)
    assert len(made["noise.key"]) == 32
    for name in FILES:
        assert stat.S_IMODE((tmp_path / ".gris" / "compose" / name).stat().st_mode) == 0o400
    prepare(tmp_path)
    assert contents(tmp_path) == made


def test_redis_and_the_ledger_hold_one_password(tmp_path: Path) -> None:
    """Another one in each deployment."""
    roots = [tmp_path / "one", tmp_path / "two"]
    passwords = []
    for root in roots:
        root.mkdir()
        prepare(root)
        made = contents(root)
        password = made["redis.conf"].decode().split("requirepass ")[1].strip()
        assert made["store.address"].decode() == f"redis://:{password}@redis:6379/0\n"
        passwords.append(password)
    assert passwords[0] != passwords[1]


def test_the_containers_run_as_the_owner_of_the_secrets(tmp_path: Path) -> None:
    """And never as root."""
    prepare(tmp_path)
    owner = (tmp_path / ".gris" / "compose" / "noise.key").stat()
    assert (tmp_path / ".env").read_text() == f"GRIS_USER={owner.st_uid}:{owner.st_gid}\n"
    assert owner.st_uid != 0


def test_half_of_a_password_is_not_made_anew(tmp_path: Path) -> None:
    """Where one of the two files is gone, the other one's password is still Redis'."""
    prepare(tmp_path)
    (tmp_path / ".gris" / "compose" / "store.address").unlink()
    with pytest.raises(SystemExit, match=r"one of redis\.conf and store\.address is missing"):
        prepare(tmp_path)


@pytest.mark.usefixtures("starts_processes")
def test_it_needs_nothing_but_pythons_standard_library(tmp_path: Path) -> None:
    """`make images` runs it before any package is installed."""
    program = tmp_path / "deploy" / "compose" / "prepare.py"
    program.parent.mkdir(parents=True)
    program.write_text((ROOT / "deploy" / "compose" / "prepare.py").read_text())
    subprocess.run([sys.executable, "-S", "-I", str(program)], check=True, env={"PATH": os.environ["PATH"]})
    assert len(contents(tmp_path)) == 3


def test_no_container_keeps_rights_or_takes_secrets_from_the_environment() -> None:
    """None can gain a right, and none but Pinot, which writes beside its programs, can change a file of its image."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert set(services) == {
        *(
            "dp-service",
            "budget-service",
            "gateway",
            "certificates",
            "redis",
            "pinot",
            "load",
            "gris",
            "analyst",
            "home",
            "budget-eu",
            "budget-us",
            "dp-eu",
            "dp-us",
            "region-certificates",
            "eu",
            "us",
        )
    }
    for name, service in some(services.items()):
        assert service.get("read_only", False) is (name != "pinot")
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        named = [each for each in service.get("environment", {}) if not each.endswith("_FILE")]
        assert not any("KEY" in each or "PASSWORD" in each for each in named)


def test_the_old_program_is_refused_with_a_word() -> None:
    """The first service asks for a variable that docker compose sets by itself and docker-compose 1 does not have."""
    composed = yaml.safe_load((ROOT / "compose.yaml").read_text())
    assert composed["name"] == "gris"
    first = next(iter(composed["services"].values()))
    assert first["labels"]["gris.project"].startswith("${COMPOSE_PROJECT_NAME:?this is docker-compose 1")


def test_a_ledger_that_was_set_back_is_noticed(tmp_path: Path) -> None:
    """Its high-water mark is in a folder of its own, which `prepare` makes and Redis does not have."""
    prepare(tmp_path)
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    command = services["budget-service"]["command"]
    folder = str(Path(command[command.index("--mark") + 1]).parent)
    (source,) = [
        each.partition(":")[0]
        for each in services["budget-service"]["volumes"]
        if each.endswith(f":{folder}")
    ]
    assert (tmp_path / source).is_dir()
    assert not any(source in each for each in services["redis"]["volumes"])


def test_an_analyst_meets_nothing_but_the_gateway() -> None:
    """One network, and on it the gateway alone."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    (network,) = services["analyst"]["networks"]
    met = {name for name, service in services.items() if network in service.get("networks", ())}
    assert met == {"analyst", "gateway"}


def test_every_folder_that_is_mounted_is_made_with_its_owner(tmp_path: Path) -> None:
    """Docker would make a missing one as root, and the container could not write to it."""
    prepare(tmp_path)
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    for service in some(services.values()):
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            # Its subfolders are made by `certificates` and `region-certificates`.
            made = tmp_path / (source.rpartition("/")[0] if "/certificates/" in source else source)
            assert made.is_dir() or source.startswith("./examples")


def test_regions_start_where_they_are_asked_for() -> None:
    """All that an application of a region needs is of its profile, and of no other one."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    of_regions = {name for name, each in services.items() if each.get("profiles") == ["regions"]}
    assert {"home", "eu", "us", "budget-eu", "dp-us", "region-certificates"} <= of_regions
    for name, each in some(services.items()):
        assert ({*each.get("depends_on", ())} <= of_regions) or name not in of_regions
        assert of_regions.isdisjoint(each.get("depends_on", ())) or name in of_regions
