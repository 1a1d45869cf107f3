"""What an image says about itself to scanners for vulnerabilities."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.image.collect import CERTIFICATES, CLUSTER, describe
from gris_gateway.faces.postgres.catalogue_process import CLUSTER as CLUSTER_OF_THE_GATEWAY

pytestmark = [
    pytest.mark.usefixtures("starts_processes"),
    pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs a system of Debian's kind"),
]


def libc() -> Path:
    """Return the C library of this machine, by the name under which the loader finds it."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return Path(next(line.split()[-1] for line in listed.splitlines() if "libc.so.6 " in line))


def fields(path: Path) -> dict[str, str]:
    """Return the fields of a package's description."""
    lines = path.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line and line[0] != " ")


def test_an_image_says_which_system_it_is_of(tmp_path: Path) -> None:
    """Where scanners look, as files and not as links into nothing."""
    describe(tmp_path, [])
    for name in ("etc/os-release", "usr/lib/os-release"):
        assert (tmp_path / name).read_text() == Path("/etc/os-release").read_text()
        assert not (tmp_path / name).is_symlink()


def test_an_image_names_the_packages_of_what_it_holds_and_no_other(tmp_path: Path) -> None:
    """Name, version and state as dpkg has them; a file that no package owns names none."""
    (tmp_path / "own").write_text("made here")
    describe(tmp_path, [libc(), CERTIFICATES, tmp_path / "own"])
    folder = tmp_path / "var" / "lib" / "dpkg" / "status.d"
    assert {each.name for each in folder.iterdir()} == {"libc6", "ca-certificates"}
    asked = ["dpkg-query", "--show", "--showformat=${Version}", "libc6"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    described = fields(folder / "libc6")
    assert (described["Package"], described["Version"]) == ("libc6", version)
    assert described["Status"] == "install ok installed"


def test_an_image_has_the_licences_of_its_packages(tmp_path: Path) -> None:
    """Word for word, with those that they refer to."""
    licence = Path("/usr/share/doc/libc6/copyright")
    if not licence.exists():
        pytest.skip("this system has been made without the licences of its packages")
    describe(tmp_path, [libc()])
    common = Path("/usr/share/common-licenses/LGPL-2.1")
    for path in (licence, common):
        assert (tmp_path / path.relative_to("/")).read_bytes() == path.read_bytes()


def test_a_cluster_of_an_image_is_the_one_that_a_gateway_makes() -> None:
    """The image has no code of the gateway's when it is made."""
    assert CLUSTER == CLUSTER_OF_THE_GATEWAY
