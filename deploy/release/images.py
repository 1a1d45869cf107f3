"""What images hold, asked of each one when it is built: that it starts, its Python packages, and those of its system.

A lock alone does not say it: some packages are installed only for an older Python, and the interpreter is that of the
base image; the image with PostgreSQL has Debian's packages which no lock names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from deploy.release.project import run

LISTED = "images.txt"
_PACKAGES = "/opt/gris/lib/."
# deploy/image/collect.py writes them.
_SYSTEM = ("/var/lib/dpkg/status.d/.", "/usr/lib/os-release")
# As the manifests run them; without arguments each prints its help.
_CONFINED = ("--read-only", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")


@dataclass(frozen=True)
class Image:
    """One of the release's images: what it is called in the project, and its name with the version."""

    title: str
    name: str


def named(prefix: str, version: str, titles: Iterable[str]) -> tuple[Image, ...]:
    """Return the images of a release, called PREFIX-TITLE:VERSION."""
    return tuple(Image(title, f"{prefix}-{title}:{version}") for title in titles)


def list_images(images: Iterable[Image], folder: Path) -> None:
    """Write which images were built, each by the digest of its configuration, once it has started.

    Raises:
        CheckFailedError: One is not here, or does not start.
    """
    lines = []
    for image in images:
        run("docker", "run", "--rm", *_CONFINED, image.name)
        digest = run("docker", "image", "inspect", "--format", "{{.Id}}", image.name).strip()
        lines.append(f"{digest}  {image.name}\n")
    (folder / LISTED).write_text("".join(lines))


@contextmanager
def installed_in(image: Image) -> Iterator[str]:
    """Give an interpreter that has the Python packages of an image, to be read and not imported."""
    with TemporaryDirectory(prefix="gris-image-") as scratch:
        run(sys.executable, "-m", "uv", "--quiet", "venv", "--python", sys.executable, scratch)
        (packages,) = Path(scratch).glob("lib/python*/site-packages")
        _copy(image, _PACKAGES, packages)
        yield f"{scratch}/bin/python"


def system_packages(image: Image) -> list[dict[str, str]]:
    """Return the packages of an image's system of which something is in it, as components of CycloneDX."""
    with TemporaryDirectory(prefix="gris-image-") as scratch:
        described, release = Path(scratch) / "status.d", Path(scratch) / "os-release"
        described.mkdir()
        _copy(image, _SYSTEM[0], described)
        _copy(image, _SYSTEM[1], release)
        system = dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line)
        of = system["ID"].strip('"'), system.get("VERSION_ID", "").strip('"')
        return [_component(each.read_text(), *of) for each in sorted(described.iterdir())]


def add_components(sbom: Path, components: Iterable[dict[str, str]]) -> None:
    """Add components to an SBOM of CycloneDX in JSON."""
    document = json.loads(sbom.read_text())
    document["components"] += components
    sbom.write_text(json.dumps(document, indent=2) + "\n")


def _component(described: str, system: str, release: str) -> dict[str, str]:
    """Return a package that dpkg describes, by the URL of its kind (purl)."""
    fields = message_from_string(described)
    name, version = fields["Package"], fields["Version"]
    where = f"arch={fields['Architecture']}&distro={quote(f'{system}-{release}')}"
    url = f"pkg:deb/{quote(system)}/{quote(name)}@{quote(version)}?{where}"
    return {"bom-ref": url, "type": "library", "name": name, "version": version, "purl": url}


def _copy(image: Image, path: str, target: Path) -> None:
    container = run("docker", "create", image.name).strip()
    try:
        run("docker", "cp", f"{container}:{path}", str(target))
    finally:
        run("docker", "rm", container)
